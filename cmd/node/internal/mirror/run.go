package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors"
	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work"
	workprogress "taskledger/work/progress"
)

const (
	// maxTold bounds the failures that are told.
	maxTold = 20
	// endWithin bounds the time in which a work that follows is cancelled, and its counts are read.
	endWithin = 15 * time.Second
)

// run is a mirror as a process takes part in it.
type run struct {
	*Config
	shared
	client *engine.Client
	mirror stage // makes the trees equal
	follow stage // keeps them equal
	joined bool

	ended       bool // the outcome is known
	interrupted bool // it was an interrupt that ended a work that follows
}

// stage is a work of a mirror.
type stage struct {
	// future submits the work, or attaches this process to it.
	future func(context.Context) (*behaviors.Future[work.Result], error)
	made   *behaviors.Future[work.Result] // nil = not yet
}

// ending tells how a work of a mirror has ended.
type ending struct {
	task    events.TaskID
	sums    trees.Sums
	outcome error // nil = a success
}

// end waits for the outcome and tells it.
func (r *run) end(ctx context.Context) error {
	all, err := r.stages(ctx)
	if err != nil {
		return err
	}
	r.ended = true
	var sums trees.Sums
	var outcome error
	for _, e := range all {
		sums.Copied += e.sums.Copied
		sums.Deleted += e.sums.Deleted
		sums.Failed += e.sums.Failed
		sums.AtMost = sums.AtMost || e.sums.AtMost
		if _, failed := errors.AsType[*FailedError](e.outcome); e.outcome != nil && !failed {
			outcome = e.outcome
		}
	}
	if outcome == nil && sums.Failed > 0 {
		outcome = &FailedError{Items: sums.Failed}
	}
	if err := r.report(context.WithoutCancel(ctx), all, sums, outcome); err != nil {
		return err
	}
	return outcome
}

// stages waits for the works of the mirror, one after the other.
func (r *run) stages(ctx context.Context) (all []ending, err error) {
	e := ending{task: r.Task}
	if r.joined && r.shared.Follow && r.following(ctx) { // what made the trees equal has ended, perhaps long ago
		e.sums, err = r.sums(ctx, r.Task)
		if errors.Is(err, task.ErrNotFound) {
			err = nil
		}
	} else {
		e, err = r.stage(ctx, r.Task, &r.mirror)
	}
	if err != nil {
		return nil, err
	}
	all = append(all, e)
	if _, failed := errors.AsType[*FailedError](e.outcome); !r.shared.Follow || e.outcome != nil && !failed {
		return all, nil
	}
	e, err = r.stage(ctx, r.follows(), &r.follow)
	if err != nil && ctx.Err() != nil && !r.joined && r.follow.made != nil {
		e, err = r.interrupt(ctx)
	}
	return append(all, e), err
}

// following reports whether the work that follows is under way.
func (r *run) following(ctx context.Context) bool {
	of, err := r.ask(ctx)
	return err == nil && of.State != workprogress.Failed
}

// ask asks for the work that follows.
func (r *run) ask(ctx context.Context) (workprogress.Work, error) {
	ctx, cancel := context.WithTimeout(ctx, silentFor/2)
	defer cancel()
	return r.client.Operations().Work(ctx, r.follows())
}

// awaitFollowing waits until the first process has begun to follow, or begun anew if it had ended before.
func (r *run) awaitFollowing(ctx context.Context) error {
	before := true
	for answered := time.Now(); ; {
		of, err := r.ask(ctx)
		switch {
		case err == nil && (!before || of.State != workprogress.Failed):
			return nil
		case errors.Is(err, task.ErrNotFound):
			if err := r.replaced(); err != nil {
				return err
			}
			before = false
			answered = time.Now()
		case err == nil:
			answered = time.Now()
		case time.Since(answered) > silentFor:
			return silent(time.Since(answered), err)
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// replaced returns an error if another mirror is under way in the directory that this process has joined: what it waits
// for never begins there.
func (r *run) replaced() error {
	of, err := read(r.Join)
	if err != nil || of.Task == r.Task {
		return nil
	}
	const say = "the mirror is gone: %w: in %s is %s now, another one"
	return fmt.Errorf(say, store.ErrUnavailable, r.Join, of.Task)
}

// sums returns what a work has done so far.
func (r *run) sums(ctx context.Context, id events.TaskID) (s trees.Sums, err error) {
	ctx, cancel := context.WithTimeout(ctx, silentFor)
	defer cancel()
	of, err := r.client.Operations().WorkLinear(ctx, id)
	if err != nil {
		return s, fmt.Errorf("read what the work has done: %w", err)
	}
	return sum(&of), nil
}

// interrupt ends the work that follows, as ctx has ended.
func (r *run) interrupt(ctx context.Context) (e ending, err error) {
	r.interrupted = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	err = r.client.Operations().Cancel(ctx, r.follows(), "the mirror was interrupted")
	if _, ended := errors.AsType[*task.StateError](err); err != nil && !ended {
		return e, fmt.Errorf("end the work that follows: %w", err)
	}
	return r.stage(ctx, r.follows(), &r.follow)
}

// stage waits for the outcome of a work.
func (r *run) stage(ctx context.Context, id events.TaskID, s *stage) (e ending, err error) {
	e.task = id
	err = r.await(ctx, id, s)
	failure, failed := errors.AsType[*task.Error](err)
	if err != nil && !failed {
		return e, err
	}
	if e.sums, err = r.sums(ctx, id); err != nil {
		return e, err
	}
	switch {
	case failed && id == r.follows() && errors.Is(failure, task.ErrCancelled):
	case failed && failure.Code == events.CodeThreshold:
		e.outcome = &LimitError{
			Limit:   *r.shared.Limits.MaxDeletes,
			Applied: failure.Properties["partition"] != trees.PartitionLimit,
		}
	case failed:
		e.outcome = failure
	}
	if e.outcome == nil && e.sums.Failed > 0 {
		e.outcome = &FailedError{Items: e.sums.Failed}
	}
	return e, nil
}

// await waits for the outcome of a work, and shows meanwhile how far it has come.
func (r *run) await(ctx context.Context, id events.TaskID, s *stage) (err error) {
	if s.made == nil {
		if s.made, err = s.future(ctx); err != nil {
			return fmt.Errorf("submit the work: %w", err)
		}
		if id == r.follows() {
			fmt.Fprintf(r.Err, "%s: follows %s until it is interrupted\n", id, r.Params.Source)
		}
	}
	g, following := errgroup.WithContext(ctx)
	waiting, stop := context.WithCancel(following)
	f := follower{
		task:   id,
		ask:    func(ctx context.Context) (workprogress.Work, error) { return r.client.Operations().Work(ctx, id) },
		out:    r.Err,
		joined: r.joined,
		counts: id == r.follows(),
	}
	g.Go(func() error { return f.follow(waiting) })
	g.Go(func() (err error) {
		defer stop()
		for {
			_, err = s.made.Wait(following)
			if !r.joined || !errors.Is(err, task.ErrNotFound) {
				return err
			}
			select { // the first process has not submitted it yet
			case <-time.After(lookEvery):
			case <-following.Done():
				return context.Cause(following)
			}
			if err = r.replaced(); err == nil {
				s.made, err = s.future(following)
			}
			if err != nil {
				return err
			}
		}
	})
	return g.Wait()
}
