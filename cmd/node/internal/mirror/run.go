package mirror

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors"
	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/cmd/node/internal/progress"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work"
	workprogress "taskledger/work/progress"
)

const (
	lookEvery = 500 * time.Millisecond
	// silentFor is the time after which a process that has joined takes the first one for dead.
	silentFor = 30 * time.Second
	// maxTold bounds the failures that are told.
	maxTold = 20
)

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
	if err := r.tell(ctx, sums); err != nil {
		return err
	}
	switch {
	case failed && failure.Code == events.CodeThreshold:
		return &LimitError{
			Limit:   *r.shared.Limits.MaxDeletes,
			Applied: failure.Properties["partition"] != trees.PartitionLimit,
		}
	case failed:
		return failure
	case sums.Failed > 0:
		return &FailedError{Items: sums.Failed}
	}
	return nil
}

// await waits for the outcome, and shows meanwhile how far the work has come.
func (r *run) await(ctx context.Context) (result work.Result, err error) {
	g, following := errgroup.WithContext(ctx)
	waiting, stop := context.WithCancel(following)
	g.Go(func() error { return r.follow(waiting) })
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

// follow looks at the work until ctx ends. In a process that has joined it fails once nobody has answered for long.
func (r *run) follow(ctx context.Context) error {
	bar := progress.NewBar(r.Err, "buckets")
	defer bar.Done()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for answered := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		asking, cancel := context.WithTimeout(ctx, silentFor/2)
		of, err := r.client.Operations().Work(asking, r.Task)
		cancel()
		switch {
		case err == nil:
			done, total := buckets(&of)
			bar.Show(done, total, of.Progress)
			answered = time.Now()
		case errors.Is(err, task.ErrNotFound): // nothing is planned yet
			answered = time.Now()
		case r.joined && ctx.Err() == nil && time.Since(answered) > silentFor:
			const say = "the first process of the mirror has not answered for %s: %w: %w"
			return fmt.Errorf(say, silentFor, store.ErrUnavailable, err)
		}
	}
}

func buckets(of *workprogress.Work) (done, total int64) {
	for i := range of.Partitions {
		done += int64(of.Partitions[i].Buckets.Done)
		total += int64(of.Partitions[i].Buckets.Total)
	}
	return done, total
}
