package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
)

// makeAll makes histories, some at a time, and tells of each in their order. An error of tell, or the end of ctx, ends
// it.
func makeAll(ctx context.Context, all []cluster.Settings, atATime int, one func(context.Context, cluster.Settings) made, tell func(made) error) (err error) {
	making, stop := context.WithCancel(ctx)
	queue, results := make(chan int, len(all)), make([]chan made, len(all))
	for i := range all {
		queue <- i
		results[i] = make(chan made, 1)
	}
	close(queue)
	var workers sync.WaitGroup
	for range atATime {
		workers.Go(func() {
			for i := range queue {
				results[i] <- one(making, all[i])
			}
		})
	}
	for _, result := range results {
		if err = tell(<-result); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			break
		}
	}
	stop()
	for range queue { // nobody makes what is left
	}
	workers.Wait()
	return err
}

// draws bounds the histories that are made of a seed until one proves something.
const draws = 3

// redrawing makes a history again that proves nothing, since a busy machine did too little in its time: that is no
// failure of the product. The last one counts, whatever it is.
func redrawing(one func(context.Context, cluster.Settings) made) func(context.Context, cluster.Settings) made {
	return func(ctx context.Context, s cluster.Settings) made {
		for n := 1; ; n++ {
			m := one(ctx, s)
			rejected := m.history == nil || m.err == nil && m.Verdict() == check.Rejected
			if !rejected || n == draws || ctx.Err() != nil {
				return m
			}
			fmt.Fprintf(os.Stderr, "the history of seed %d proves nothing, and is made again: %v %q\n", s.Seed, m.err, m.Problems)
			if m.dir == "" {
				continue
			}
			if err := os.RemoveAll(m.dir); err != nil {
				m.err = errors.Join(m.err, err)
				return m
			}
		}
	}
}
