package mirror

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"taskledger/cluster"
	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// shared tells the processes of a mirror what they work on. While it is under way this lies beside the data of the
// servers, for this user alone.
type shared struct {
	Task   events.TaskID `json:"task"` // of the work
	Params trees.Params  `json:"params"`
	Limits trees.Limits  `json:"limits"`
	Follow bool          `json:"follow,omitempty"`
	Since  time.Time     `json:"since,omitzero"` // when a mirror that follows began
}

// follows returns the task of the work that follows the source.
func (s *shared) follows() events.TaskID { return s.Task + "-follow" }

func pathIn(dir string) string { return filepath.Join(dir, "mirror.json") }

// read reads what the first process wrote.
func read(dir string) (s shared, err error) {
	text, err := os.ReadFile(pathIn(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("no mirror is under way in %s: %w", dir, cluster.ErrNoNode)
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read what is mirrored: %w", err)
	}
	return s, nil
}

// write writes it for the others. The file is whole or not there.
func (s shared) write(dir string) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	to := pathIn(dir)
	if err := os.WriteFile(to+".new", text, 0o600); err != nil {
		return fmt.Errorf("write what is mirrored: %w", err)
	}
	return os.Rename(to+".new", to)
}

// name names the task: it is that of the mirror in the directory that did not come to its end, which has to be the same
// one, or else a new one.
func (s *shared) name(dir string) error {
	was, err := read(dir)
	switch {
	case errors.Is(err, cluster.ErrNoNode):
		s.Task = newTask()
		return nil
	case err != nil:
		return err
	case was.Params != s.Params || !was.Limits.Equal(s.Limits) || was.Follow != s.Follow:
		const say = "in %s a mirror of %s to %s may not have come to its end: it goes on with the same arguments, %s; " +
			"another one needs another directory"
		return refuse("data", say, dir, was.Params.Source, was.Params.Target, strings.Join(s.differs(&was), ", "))
	}
	s.Task, s.Since = was.Task, was.Since
	return nil
}

func newTask() events.TaskID { return events.TaskID(fmt.Sprintf("mirror-%016x", rand.Uint64())) }

// renew names a new task if the one in the directory has ended: whoever ran it died before it removed what it wrote,
// and a submit would only be told its outcome. A mirror that follows goes on behind the task that made the trees equal.
func (s *shared) renew(ctx context.Context, client *engine.Client) error {
	if s.Follow {
		return nil
	}
	was, err := client.GetLinear(ctx, s.Task)
	switch {
	case errors.Is(err, task.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("look whether the mirror has ended: %w", err)
	case was.Final():
		s.Task = newTask()
	}
	return nil
}

// differs names the arguments that were others.
func (s *shared) differs(was *shared) (all []string) {
	arguments := func(of *shared) [][2]string {
		deletes := "not given"
		if most := of.Limits.MaxDeletes; most != nil {
			deletes = fmt.Sprint(*most)
		}
		return [][2]string{
			{"SRC", of.Params.Source},
			{"DST", of.Params.Target},
			{"--workers", fmt.Sprint(cmp.Or(of.Limits.Workers, trees.DefaultWorkers))},
			{"--threads", fmt.Sprint(cmp.Or(of.Limits.Threads, trees.DefaultThreads))},
			{"--max-deletes", deletes},
			{"--follow", fmt.Sprint(of.Follow)},
		}
	}
	is := arguments(s)
	for i, of := range arguments(was) {
		if of != is[i] {
			all = append(all, fmt.Sprintf("of which %s was %s and is %s now", of[0], of[1], is[i][1]))
		}
	}
	return all
}

// remove removes what a mirror has written that has ended.
func remove(dir string) error {
	err := os.Remove(pathIn(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func refuse(field, format string, args ...any) error {
	return &store.InvalidError{
		Field:   field,
		Problem: fmt.Sprintf(format, args...),
	}
}
