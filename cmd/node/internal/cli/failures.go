package cli

import (
	"context"
	"fmt"
	"time"

	"taskledger/cmd/node/internal/output"
	"taskledger/events"
	"taskledger/task"
)

const (
	// tellFailuresAfter is the time after which a task that is waited for is looked at first.
	tellFailuresAfter = time.Second
	// tellFailuresEvery is the longest time between two looks.
	tellFailuresEvery = 15 * time.Second
	// toldOfFailure bounds the text of a failure that is told.
	toldOfFailure = 200
)

// getter tells of a task.
type getter interface {
	Get(ctx context.Context, id events.TaskID) (task.Task, error)
}

// tellFailures says on standard error which attempts of a task have failed while its outcome is waited for. stop ends
// that.
func (a *app) tellFailures(ctx context.Context, client getter, id events.TaskID) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		told := uint32(0)
		for pause := tellFailuresAfter; ; pause = min(2*pause, tellFailuresEvery) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			t, err := client.Get(ctx, id)
			if err != nil || t.Failures == told || t.Error == nil {
				continue
			}
			told = t.Failures
			fmt.Fprintf(a.Err, "%s: %s\n", a.Name, output.Clean(failure(&t)))
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// failure says that an attempt has failed, and when the next one is.
func failure(t *task.Task) string {
	text := fmt.Sprintf("attempt %d of %s has failed: %s", t.Failures, t.ID, events.Head(t.Error.Message, toldOfFailure))
	if t.ScheduleNotBefore != 0 {
		text += "; the next one is due at " + output.Time(t.ScheduleNotBefore)
	}
	return text
}
