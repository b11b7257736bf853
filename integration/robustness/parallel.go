package main

import (
	"context"
	"sync"

	"taskledger/integration/robustness/cluster"
)

// makeAll makes histories, some at a time, and tells of each in their order. An error of tell, or the end of ctx, ends it.
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
