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
	"taskledger/task"
	"taskledger/work"
	workprogress "taskledger/work/progress"
)

// maxTold bounds the failures that are told.
const maxTold = 20

// run is a mirror as a process takes part in it.
type run struct {
	*Config
	shared
	work   *work.Work[trees.Params, trees.Item]
	client *engine.Client
	future *behaviors.Future[work.Result]
	joined bool
	ended  bool // the outcome is known
}

// end waits for the outcome and tells it.
func (r *run) end(ctx context.Context) error {
	_, err := r.await(ctx)
	failure, failed := errors.AsType[*task.Error](err)
	if err != nil && !failed {
		return err
	}
	r.ended = true
	of, err := r.client.Operations().WorkLinear(ctx, r.Task)
	if err != nil {
		return fmt.Errorf("read what the work has done: %w", err)
	}
	sums := sum(&of)
	var outcome error
	switch {
	case failed && failure.Code == events.CodeThreshold:
		outcome = &LimitError{
			Limit:   *r.shared.Limits.MaxDeletes,
			Applied: failure.Properties["partition"] != trees.PartitionLimit,
		}
	case failed:
		outcome = failure
	case sums.Failed > 0:
		outcome = &FailedError{Items: sums.Failed}
	}
	if err := r.report(ctx, sums, outcome); err != nil {
		return err
	}
	return outcome
}

// await waits for the outcome, and shows meanwhile how far the work has come.
func (r *run) await(ctx context.Context) (result work.Result, err error) {
	g, following := errgroup.WithContext(ctx)
	waiting, stop := context.WithCancel(following)
	f := follower{
		task:   r.Task,
		ask:    func(ctx context.Context) (workprogress.Work, error) { return r.client.Operations().Work(ctx, r.Task) },
		out:    r.Err,
		joined: r.joined,
	}
	g.Go(func() error { return f.follow(waiting) })
	g.Go(func() (err error) {
		defer stop()
		for {
			result, err = r.future.Wait(following)
			if !r.joined || !errors.Is(err, task.ErrNotFound) {
				return err
			}
			select { // the first process has not submitted it yet
			case <-time.After(lookEvery):
				r.future = r.work.Attach(r.client, r.Task)
			case <-following.Done():
				return context.Cause(following)
			}
		}
	})
	err = g.Wait()
	return result, err
}
