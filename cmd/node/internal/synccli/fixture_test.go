package synccli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/logcli"
	"taskledger/cmd/node/internal/output"
	"taskledger/cmd/node/internal/synccli"
	"taskledger/collections"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/taskstore/taskstoretest/model"
)

// cluster is one of collections alone, with one node.
type cluster struct {
	stores *model.Cluster

	mu      sync.Mutex
	all     map[string]schedule.Schedule
	last    schedule.Version
	changes int
	lacks   []collections.Need // what the node lacks
	fails   error              // whatever is asked
	byHand  []schedule.ByHand
	runs    []task.Task // the newest first
}

func (c *cluster) client() *synccli.Client {
	return &synccli.Client{
		Schedules: schedules{of: c},
		Stores:    c.stores,
		Nodes:     c,
		Runs:      c,
	}
}

// schedules is a cluster as its schedules are asked.
type schedules struct {
	operations.Schedules
	of *cluster
}

func (s schedules) SetWith(
	_ context.Context, name string, d schedule.Definition, how schedule.Setting,
) (schedule.Version, bool, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	c := s.of
	was, there := c.all[name]
	if there != (how.Seen == was.Version) || there == (how.Seen == schedule.Absent) {
		return 0, false, schedule.ErrChanged
	}
	c.last++
	c.changes++
	was.Name, was.Definition, was.Version = name, d, c.last
	c.all[name] = was
	return c.last, true, nil
}

func (s schedules) Get(_ context.Context, name string) (schedule.Schedule, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	is, there := s.of.all[name]
	if !there {
		return is, cmp.Or(s.of.fails, fmt.Errorf("schedule %s: %w", name, schedule.ErrNotFound))
	}
	return is, s.of.fails
}

func (s schedules) List(
	_ context.Context, f schedule.Filter, after string, limit int,
) (all []schedule.Schedule, more bool, err error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.of.all)) {
		is := s.of.all[name]
		switch {
		case name <= after || !strings.HasPrefix(name, f.Prefix) || f.Behavior != is.Definition.Behavior:
		case len(all) == min(limit, 2):
			return all, true, s.of.fails
		default:
			all = append(all, is)
		}
	}
	return all, false, s.of.fails
}

func (s schedules) Steer(
	_ context.Context, verb operations.ScheduleVerb, name, reason string, _ schedule.Version,
) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	is := s.of.all[name]
	switch verb {
	case operations.PauseSchedule:
		is.Paused = &schedule.Pause{Reason: reason}
	case operations.ResumeSchedule:
		is.Paused = nil
	case operations.DeleteSchedule:
		delete(s.of.all, name)
		s.of.changes++
		return nil
	default:
		return fmt.Errorf("verb %s", verb)
	}
	s.of.all[name] = is
	return nil
}

// handle is a run.
type handle struct {
	operations.Handle
	id     events.TaskID
	joined bool
}

func (h handle) ID() events.TaskID { return h.id }
func (h handle) Joined() bool      { return h.joined }
func (h handle) Close()            {}

func (s schedules) RunWith(
	_ context.Context, name string, by schedule.ByHand, _ schedule.Version,
) (operations.Handle, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.byHand = append(s.of.byHand, by)
	return handle{id: runID(name, len(s.of.byHand)), joined: len(s.of.byHand) > 1}, s.of.fails
}

// runID returns the id of the n-th run of a collection.
func runID(name string, n int) events.TaskID {
	return events.TaskID(fmt.Sprintf("%s/00000000-0000-0000-0000-%012d", name, n))
}

func (c *cluster) Nodes(context.Context) ([]store.NodeInfo, error) {
	return []store.NodeInfo{{ID: "a-1", Name: "a", Slots: 1, Behaviors: []string{collections.Behavior}}}, c.fails
}

func (c *cluster) Ask(_ context.Context, _, _ string, question []byte) ([]byte, error) {
	needs, err := collections.ReadNeeds(question)
	if err != nil {
		return nil, err
	}
	return json.Marshal(slices.DeleteFunc(needs, func(n collections.Need) bool { return !slices.Contains(c.lacks, n) }))
}

func (c *cluster) ListPage(_ context.Context, f task.Filter, _ string) (page task.Page, err error) {
	for _, t := range c.runs {
		if t.ID.Affinity() == f.Affinity && len(page.Tasks) < f.Limit {
			page.Tasks = append(page.Tasks, t)
		}
	}
	page.Through = true
	return page, c.fails
}

// Log tells which run was asked for.
func (c *cluster) Log(_ context.Context, id events.TaskID, _ tasklog.Selection) (told tasklog.Told, err error) {
	told.Lines = []tasklog.TaskLine{{Line: tasklog.Line{Text: "of " + string(id)}}}
	return told, c.fails
}

// line is a command line with a cluster of its own.
type line struct {
	*testing.T
	cluster
	in     string
	asJSON bool
	away   bool // there is no cluster to ask
	waited []events.TaskID
}

func newLine(t *testing.T) *line {
	return &line{T: t, cluster: cluster{
		stores: model.New(rand.New(rand.NewPCG(1, 2))),
		all:    map[string]schedule.Schedule{},
	}}
}

// run runs a command, and returns what it has printed.
func (l *line) run(args ...string) (out, said string, err error) {
	var printed, other bytes.Buffer
	show := func(columns ...string) *output.Printer { return output.New(&printed, l.asJSON, columns...) }
	terminal := &synccli.Terminal{
		In:        strings.NewReader(l.in),
		Err:       &other,
		Print:     show,
		Principal: func() string { return "somebody" },
		Ask: func(
			c *cobra.Command, _ func() bool, run func(context.Context, *synccli.Client, []string) error,
		) *cobra.Command {
			c.RunE = func(_ *cobra.Command, args []string) error {
				if l.away {
					return store.ErrUnavailable
				}
				return run(l.Context(), l.client(), args)
			}
			return c
		},
		Await: func(_ context.Context, _ *synccli.Client, run operations.Handle) error {
			l.waited = append(l.waited, run.ID())
			return nil
		},
		Logs: &logcli.Terminal{Print: show, Err: io.Discard, Sleep: func(context.Context, time.Duration) {}},
	}
	c := terminal.Command()
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(&other)
	err = c.Execute()
	return printed.String(), other.String(), err
}

func (l *line) must(args ...string) (out, said string) {
	l.Helper()
	out, said, err := l.run(args...)
	if err != nil {
		l.Fatalf("%q: %v", args, err)
	}
	return out, said
}

// failsWith runs a command that must fail with an exit code, and returns what it said, and its error.
func (l *line) failsWith(code int, args ...string) string {
	l.Helper()
	_, said, err := l.run(args...)
	if exitcode.Of(err) != code {
		l.Errorf("%q: %v, want exit code %d", args, err, code)
	}
	return said + fmt.Sprint(err)
}

// file writes a file of collections, and returns its path.
func (l *line) file(text string) string {
	l.Helper()
	path := filepath.Join(l.TempDir(), "sync.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
	return path
}
