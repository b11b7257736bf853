package work_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/task"
	"taskledger/work"
)

func TestRun_OfAPartitionThatThisNodeLacksIsGivenBackMoreAndMoreSlowlyAndToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := func(context.Context, int) error { return nil }
		there := work.Define("numbers", nil,
			partition{ID: "old", Items: numbers, Process: ended}, partition{ID: "new", Items: numbers, Process: ended})
		here := work.Define("numbers", nil, partition{ID: "old", Items: numbers, Process: ended})
		r := newRecord()
		plan := there.Planned()
		r.plan, r.partition, r.begun = &plan, 1, true
		var log bytes.Buffer
		attempt := func() string {
			out := here.Run(opening(t.Context(), totals{r.attempt()}, false, nil), task.Attempt{
				Task:   "a/p",
				Number: 1,
				Params: []byte("0"),
				Log:    slog.New(slog.NewTextHandler(&log, nil)),
			})
			return said(&out)
		}
		for _, want := range []string{"1s", "2s", "4s", "8s", "16s", "32s", "1m0s", "1m0s"} {
			for range 3 { // of workers that are given back together
				if got := attempt(); got != "release "+want {
					t.Fatalf("%s, want release %s", got, want)
				}
			}
			time.Sleep(time.Minute)
		}
		for _, say := range []string{"cannot go on with the run", "goes on by the definition it was begun with"} {
			if n := strings.Count(log.String(), say); n != 1 {
				t.Errorf("%q is told %d times, want once:\n%s", say, n, &log)
			}
		}
		if len(r.open) != 0 || len(r.done) != 0 {
			t.Errorf("buckets %v are open, %v done", r.open, r.done)
		}
	})
}
