package shard

import (
	"context"
	"sync"
	"time"

	"taskledger/engine/internal/command"
)

// readAgain bounds how long a batch of questions waits for what takes long. What is not known by then is asked again.
const readAgain = time.Second

// laterRead answers a question outside the owner's goroutine; it ends with its context at the latest.
type laterRead struct {
	at   int // in the batch
	read func(ctx context.Context) command.Answer
}

// readAll adds to answers of the given size what is read side by side, until the time is over or they are too large
// together.
func readAll(ctx context.Context, answers []command.Answer, later []laterRead, size int) {
	ctx, enough := context.WithTimeout(ctx, readAgain)
	defer enough()
	var reads sync.WaitGroup
	var mu sync.Mutex
	for _, l := range later {
		reads.Go(func() {
			a := l.read(ctx)
			mu.Lock()
			defer mu.Unlock()
			if size = a.Fit(size); size > command.MaxReadBytes {
				enough()
			}
			answers[l.at] = a
		})
	}
	reads.Wait()
}

// tryLater lets a question be asked again after a pause.
func tryLater(ctx context.Context) command.Answer {
	select {
	case <-ctx.Done():
	case <-time.After(readAgain):
	}
	return command.Answer{Code: command.AnswerTryAgain}
}
