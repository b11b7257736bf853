package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/workledger"
)

// totals is a ledger that tells what was counted once the run has come to its end.
type totals struct{ *attempt }

func (l totals) Next(ctx context.Context, r work.Report) (work.Answer, error) {
	a, err := l.attempt.Next(ctx, r)
	if a.State == work.Finished {
		a.Totals = []workledger.Total{{Buckets: 5, Items: l.total()}}
	}
	return a, err
}

// opening returns the context of an attempt that finds a ledger, or an error in its place.
func opening(ctx context.Context, l work.Ledger, worker bool, err error) context.Context {
	open := func(_ context.Context, a task.Attempt) (workledger.Access, error) {
		return workledger.Access{Ledger: l, Worker: worker, Params: a.Params}, err
	}
	return context.WithValue(ctx, workledger.Key{}, workledger.Opener(open))
}

func TestRun_SaysWhatComesAfterTheAttempt(t *testing.T) {
	broken := func(_ context.Context, _ int, _ work.Bucket) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) { yield(0, errDisk) }
	}
	failing := func(context.Context, int) error { return errDisk }
	for name, c := range map[string]struct {
		partition partition
		worker    bool
		open      error
		next      error // of the ledger
		ended     error // of the context
		waits     bool
		suspended bool
		want      string
	}{
		"to its end": {
			want: `result {"run":7,"partitions":[{"id":"1","mode":"full","buckets":5,` +
				`"items_done":10,"items_failed":0,"items_skipped":0}]}`,
		},
		"a worker to its end": {worker: true, want: "success"},
		"others have buckets": {waits: true, want: "snooze 1h0m0s"},
		"a worker, and others have buckets": {
			worker: true,
			waits:  true,
			want:   "success",
		},
		"suspended":         {suspended: true, want: "release 1ms"},
		"no ledger":         {open: store.ErrUnavailable, want: "release 1s"},
		"the work is gone":  {worker: true, open: workledger.ErrGone, want: "success"},
		"the owner is away": {next: store.ErrUnavailable, want: "release 1s"},
		"the shard is full": {next: &task.OverloadError{RetryAfter: 3 * time.Second}, want: "release 3s"},
		"an outdated node":  {next: &task.StateError{Problem: "n1 cannot read it"}, want: "release 10s"},
		"over":              {next: workledger.ErrOver, want: "release 1s"},
		"a refused plan":    {next: &store.InvalidError{Field: "partitions"}, want: "final rejected"},
		"stopped":           {ended: errors.New("the node stops"), want: "release 1ms"},
		"items":             {partition: partition{Items: broken}, want: "retry items"},
		"a rule": {
			partition: partition{Process: failing, Rules: []work.Rule{{React: work.Stop}}},
			want:      "final stopped",
		},
		"a threshold": {
			partition: partition{
				Process:    func(ctx context.Context, _ int) error { return work.Permit(ctx, "c") },
				Thresholds: []work.Threshold{{Counter: "c", Limit: 3}},
			},
			want: "final threshold",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.partition
			if p.Items == nil {
				p.Items = numbers
			}
			if p.Process == nil {
				p.Process = func(context.Context, int) error { return nil }
			}
			p.Segmentation = cut(10, 5)
			r := newRecord()
			r.failNext, r.suspended = c.next, c.suspended
			l := r.attempt()
			if c.waits {
				other := &attempt{record: r}
				for n := range int64(5) {
					r.open[n+1] = other
				}
			}
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			if c.ended != nil {
				end(c.ended)
			}
			w := work.Define("numbers", nil, p)
			policy, err := w.Policy().Complete()
			if err != nil {
				t.Fatal(err)
			}
			out := w.Run(opening(ctx, totals{l}, c.worker, c.open), task.Attempt{
				Task:   "a/p",
				Number: 1,
				Policy: policy,
				Params: []byte("0"),
			})
			if got := said(&out); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func said(o *task.Outcome) string {
	switch {
	case o.Release:
		return fmt.Sprint("release ", max(o.Wait, time.Millisecond))
	case o.Snooze > 0:
		return fmt.Sprint("snooze ", o.Snooze)
	case o.Err != nil && (o.Wait > 0 || !o.Next.IsZero()):
		return "retry " + o.Err.Code
	case o.Err != nil:
		return "final " + o.Err.Code
	case o.Result != nil:
		return "result " + string(o.Result)
	}
	return "success"
}

func TestRun_WithoutALedgerIsRefused(t *testing.T) {
	w := work.Define("numbers", nil, partition{Items: numbers, Process: func(context.Context, int) error { return nil }})
	out := w.Run(t.Context(), task.Attempt{Task: "a/p"})
	if got := said(&out); got != "final "+events.CodeRejected {
		t.Error(got)
	}
}

func TestPlan_RefusesAWrongDefinitionAndBoundsTheID(t *testing.T) {
	var behavior task.Behavior = work.Define("numbers", nil, partition{Items: numbers, Workers: 300})
	if _, err := behavior.Plan(nil, time.Time{}); err == nil || !strings.Contains(err.Error(), "partitions[0]") {
		t.Errorf("%v, want the field that is wrong", err)
	}
	behavior = work.Define("numbers", nil, partition{Items: numbers, Mode: work.DryRun})
	plan, err := behavior.Plan([]byte("3"), time.Time{})
	if err != nil || plan.IDLimit != events.MaxWorkParentBytes {
		t.Errorf("%+v, %v", plan, err)
	}
	if _, err := behavior.Plan([]byte(`"three"`), time.Time{}); err == nil {
		t.Error("parameters of another type are taken")
	}
}

func TestResult_HasStableNames(t *testing.T) {
	text, err := json.Marshal(work.Result{Run: 1, Partitions: []work.PartitionResult{{ID: "a", Mode: "full"}}})
	const want = `{"run":1,"partitions":[{"id":"a","mode":"full","buckets":0,` +
		`"items_done":0,"items_failed":0,"items_skipped":0}]}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}
