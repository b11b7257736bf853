package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
	workprogress "taskledger/work/progress"
)

const (
	lookEvery = 500 * time.Millisecond
	// tellEvery is the time between two lines that tell how far the work has come.
	tellEvery = 3 * time.Second
	// silentFor is the time after which a process that has joined takes the first one for dead.
	silentFor = 30 * time.Second
)

// follower looks again and again how far the work has come, and tells it in lines.
type follower struct {
	task   events.TaskID
	ask    func(context.Context) (workprogress.Work, error)
	out    io.Writer
	joined bool // the process fails once nobody has answered for long
	counts bool // the work goes on without an end: what it has done is told where it has done more
	told   string
}

// follow looks until ctx ends. In a process that has joined it fails once nobody has answered for silentFor.
func (f *follower) follow(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	told := time.Now()
	for answered := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, silentFor/2)
		of, err := f.ask(asking)
		cancel()
		since := time.Since(answered)
		switch {
		case err == nil:
			answered = time.Now()
			if time.Since(told) >= tellEvery {
				told = time.Now()
				f.tell(&of)
			}
		case errors.Is(err, task.ErrNotFound): // nothing is planned yet
			answered = time.Now()
		case f.joined && ctx.Err() == nil && since > silentFor:
			return silent(since, err)
		}
	}
}

// silent returns the error of a process that has joined, and that nobody has answered for a time.
func silent(since time.Duration, err error) error {
	const say = "the first process of the mirror has not answered for %s: %w: %w"
	return fmt.Errorf(say, since.Round(time.Second), store.ErrUnavailable, err)
}

// tell prints a line, in the words of work show, or with the counts.
func (f *follower) tell(of *workprogress.Work) {
	if f.counts {
		s := sum(of)
		line := fmt.Sprintf("%s: %d copied, %d deleted, %d failed\n", f.task, s.Copied, s.Deleted, s.Failed)
		if line != f.told && s != (trees.Sums{}) {
			fmt.Fprint(f.out, line)
		}
		f.told = line
		return
	}
	words := of.Progress
	if of.State == workprogress.Suspended {
		words = "suspended, " + words
	}
	i := &of.Items
	fmt.Fprintf(f.out, "%s: %s; %d items done, %d skipped, %d failed\n", f.task, words, i.Done, i.Skipped, i.Failed)
}
