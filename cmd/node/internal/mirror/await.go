package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/cmd/node/internal/team"
	"taskledger/events"
)

// awaitProcesses waits until as many processes are there as have to be, and tells meanwhile how many are not.
func awaitProcesses(ctx context.Context, cfg *Config, nodes *team.Team, invitation string) error {
	want := len(nodes.Members) + max(cfg.Processes, 1) - 1
	var missing atomic.Int64
	missing.Store(int64(max(cfg.Processes, 1) - 1))
	g, ctx := errgroup.WithContext(ctx)
	waiting, stop := context.WithCancel(ctx)
	g.Go(func() error {
		defer stop()
		return nodes.Await(ctx, func(alive int) bool {
			missing.Store(int64(max(want-alive, 0)))
			return alive >= want
		})
	})
	g.Go(func() error {
		tellMissing(waiting, cfg, &missing, invitation)
		return nil
	})
	return g.Wait()
}

// tellMissing tells every few seconds how many processes are not there yet, until ctx ends.
func tellMissing(ctx context.Context, cfg *Config, missing *atomic.Int64, invitation string) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch n := missing.Load(); n {
		case 0:
		case 1:
			fmt.Fprintf(cfg.Err, "waits for 1 more process: %s\n", invitation)
		default:
			fmt.Fprintf(cfg.Err, "waits for %d more processes: %s\n", n, invitation)
		}
	}
}

// tellFollowed tells that a mirror that was interrupted goes on where it was.
func (r *run) tellFollowed() {
	if r.Dir != "" {
		const say = "%s follows no more: it goes on with the same arguments and --data %s\n"
		fmt.Fprintf(r.Err, say, r.Task, r.Dir)
	}
}

// tellInterrupted tells what an interrupt leaves, if one has ended the first process.
func tellInterrupted(cfg *Config, id events.TaskID, err error) {
	switch {
	case !errors.Is(err, context.Canceled):
	case cfg.Dir == "":
		const say = "%s has not come to its end, and its temporary cluster is removed: with --data a mirror goes on\n"
		fmt.Fprintf(cfg.Err, say, id)
	default:
		const say = "%s has not come to its end: it goes on with the same arguments and --data %s\n"
		fmt.Fprintf(cfg.Err, say, id, cfg.Dir)
	}
}
