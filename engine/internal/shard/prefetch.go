package shard

import (
	"iter"
	"sync"
)

// prefetch runs an iterator in a goroutine of its own, at most n values ahead of the consumer.
func prefetch[V any](seq iter.Seq2[V, error], n int) iter.Seq2[V, error] {
	type result struct {
		value V
		err   error
	}
	return func(yield func(V, error) bool) {
		results, unwanted := make(chan result, n), make(chan struct{})
		var producer sync.WaitGroup
		defer producer.Wait()
		defer close(unwanted)
		producer.Go(func() {
			defer close(results)
			for value, err := range seq {
				select {
				case results <- result{value, err}:
				case <-unwanted:
					return
				}
			}
		})
		for r := range results {
			if !yield(r.value, r.err) {
				return
			}
		}
	}
}
