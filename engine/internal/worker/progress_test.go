package worker_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
)

func TestProgress_IsSentOnceASecondAndTheLastOneArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, nil, &script{"b", func(_ context.Context, a task.Attempt) task.Outcome {
			for i := range int64(25) {
				a.Progress(i, 25, "note")
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			a.Progress(99, 25, strings.Repeat("n", 1000))
			return task.Outcome{}
		}})
		w.launch("b", task.Policy{})
		var sent []int64
		for range 60 {
			synctest.Wait()
			for _, c := range w.reported() {
				if report, ok := c.(*command.Progress); ok {
					sent = append(sent, report.Progress.Done)
					if len(report.Progress.Note) > events.MaxNameBytes {
						t.Errorf("note of %d bytes", len(report.Progress.Note))
					}
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		// At a full second either the report of that moment is sent or the one before it.
		if len(sent) != 5 || !slices.IsSorted(sent) || sent[0] != 0 || sent[3] != 24 || sent[4] != 99 {
			t.Errorf("reports %v were sent, want the first, one a second, and the last before each pause", sent)
		}
	})
}

// A shard that cannot be served for long gets the first report and the latest one.
func TestProgress_OneReportWaitsUntilItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, 1, nil, &script{"b", func(ctx context.Context, a task.Attempt) task.Outcome {
			for i := range int64(1000) {
				a.Progress(i, 1000, "")
				time.Sleep(100 * time.Millisecond)
			}
			<-ctx.Done()
			return task.Outcome{}
		}})
		w.launch("b", task.Policy{})
		time.Sleep(2 * time.Minute)
		var sent []int64
		for _, c := range w.reported() {
			sent = append(sent, c.(*command.Progress).Progress.Done)
		}
		if !slices.Equal(sent, []int64{0, 999}) {
			t.Errorf("reports %v were sent, want the first and the latest", sent)
		}
	})
}

func TestProgress_NothingFollowsTheOutcome(t *testing.T) {
	for reports := range int64(3) {
		synctest.Test(t, func(t *testing.T) {
			var report func(done, total int64, note string)
			w := newFixture(t, 1, nil, &script{"b", func(_ context.Context, a task.Attempt) task.Outcome {
				for i := range reports {
					a.Progress(i, 2, "")
				}
				report = a.Progress
				return task.Outcome{}
			}})
			w.launch("b", task.Policy{})
			synctest.Wait()
			all := w.reported()
			if _, ok := all[len(all)-1].(*command.Complete); !ok {
				t.Errorf("the last report is %T", all[len(all)-1])
			}
			report(3, 2, "")
			time.Sleep(time.Minute)
			w.wantNothing("after the outcome")
		})
	}
}
