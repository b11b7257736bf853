package trees_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/work"
)

// errDead is the error of every call of a ledger whose process is dead.
var errDead = errors.New("the process is dead")

// record is the record of a run in memory. It gives the lowest free bucket of the partition that is under way.
type record struct {
	mu        sync.Mutex
	plan      *work.Plan
	partition int
	begun     bool
	buckets   map[int64]bool // that are done or open
	done      int64
	permits   map[work.Ask]bool
	parts     []part
	moved     chan struct{} // closed when a bucket has ended or comes back
}

// part sums up a partition.
type part struct {
	counters map[string]int64
	items    work.Counts
	errors   []work.ItemError
}

// attempt is the ledger of one attempt.
type attempt struct {
	*record
	bucket int64
	calls  int
	dies   int  // with the call of this number; 0 = never
	tells  bool // the record still hears of that call
}

func newRecord() *record {
	return &record{
		buckets: map[int64]bool{},
		permits: map[work.Ask]bool{},
		moved:   make(chan struct{}),
	}
}

// call counts a call, and says whether the record hears of it and its answer.
func (a *attempt) call() (heard, answered bool) {
	a.calls++
	switch {
	case a.dies == 0 || a.calls < a.dies:
		return true, true
	case a.calls == a.dies:
		return a.tells, false
	}
	return false, false
}

func answer(answered bool) error {
	if !answered {
		return errDead
	}
	return nil
}

func (a *attempt) Open(_ context.Context, plan work.Plan) (work.Opened, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	heard, answered := a.call()
	if heard && a.plan == nil {
		a.plan = &plan
		for range plan.Partitions {
			a.parts = append(a.parts, part{counters: map[string]int64{}})
		}
	}
	if a.plan != nil {
		plan = *a.plan
	}
	return work.Opened{Run: 1, Started: time.Unix(0, 0), Plan: plan}, answer(answered)
}

func (a *attempt) Begin(context.Context, work.Beginning) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	heard, answered := a.call()
	a.begun = a.begun || heard
	return answer(answered)
}

func (a *attempt) Next(_ context.Context, report work.Report) (work.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	heard, answered := a.call()
	if heard && report.Bucket != 0 {
		a.take(report)
	}
	if !heard || report.Last {
		return work.Answer{}, answer(answered)
	}
	next := a.next()
	return next, answer(answered)
}

func (a *attempt) take(report work.Report) {
	a.bucket = 0
	close(a.moved)
	a.moved = make(chan struct{})
	if report.Returned {
		delete(a.buckets, report.Bucket)
		return
	}
	a.done++
	p := &a.parts[report.Partition]
	p.items.Done += report.Items.Done
	p.items.Failed += report.Items.Failed
	p.items.Skipped += report.Items.Skipped
	p.errors = append(p.errors, report.Errors...)
	if a.done == a.plan.Partitions[a.partition].Buckets {
		a.partition++
		a.begun, a.done, a.buckets = false, 0, map[int64]bool{}
	}
}

func (a *attempt) next() work.Answer {
	switch {
	case a.partition == len(a.plan.Partitions):
		return work.Answer{State: work.Finished}
	case !a.begun:
		return work.Answer{State: work.Starting, Partition: a.partition}
	}
	for n := range a.plan.Partitions[a.partition].Buckets {
		if !a.buckets[n+1] {
			a.bucket = n + 1
			a.buckets[a.bucket] = true
			return work.Answer{State: work.Working, Partition: a.partition, Bucket: a.bucket}
		}
	}
	return work.Answer{State: work.Waiting}
}

func (a *attempt) Permit(_ context.Context, ask work.Ask) (granted bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	heard, answered := a.call()
	if !heard {
		return false, errDead
	}
	for _, t := range a.plan.Partitions[ask.Partition].Thresholds {
		switch counters := a.parts[ask.Partition].counters; {
		case t.Counter != ask.Counter:
		case a.permits[ask]:
			granted = true
		case counters[t.Counter] < t.Limit:
			counters[t.Counter]++
			a.permits[ask], granted = true, true
		}
	}
	return granted, answer(answered)
}

// end gives the bucket of a dead attempt back.
func (a *attempt) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bucket != 0 {
		delete(a.buckets, a.bucket)
		close(a.moved)
		a.moved = make(chan struct{})
	}
}

// sums returns what the run did, as the program tells it.
func (r *record) sums() (s trees.Sums) {
	for i, p := range r.parts {
		s.Add(r.plan.Partitions[i].Mode, p.counters, p.items.Failed)
	}
	return s
}

// skipped returns the number of items that were skipped in a partition.
func (r *record) skipped(id string) int64 {
	for i, p := range r.plan.Partitions {
		if p.ID == id {
			return r.parts[i].items.Skipped
		}
	}
	return 0
}

// open opens two trees for the test.
func open(t testing.TB, p trees.Params) *trees.Pair {
	t.Helper()
	pair, err := trees.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pair.Close() })
	return pair
}

// attempt makes one attempt in a process of its own, which dies with a call of the ledger.
func (r *record) attempt(
	ctx context.Context, p trees.Params, l trees.Limits, dies int, tells bool,
) (work.State, error) {
	pair, err := trees.Open(p)
	if err != nil {
		return work.Stopped, err
	}
	defer pair.Close()
	a := &attempt{record: r, dies: dies, tells: tells}
	defer a.end()
	return pair.Work(l).Attempt(ctx, a, p, work.Attempt{Number: 1})
}

// work makes attempts until the run has ended.
func (r *record) work(ctx context.Context, p trees.Params, l trees.Limits) error {
	for {
		r.mu.Lock()
		moved := r.moved
		r.mu.Unlock()
		state, err := r.attempt(ctx, p, l, 0, false)
		if err != nil || state == work.Finished {
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// mirror makes a run to its end, in one process, and returns what it did.
func mirror(t testing.TB, p trees.Params, l trees.Limits) *record {
	t.Helper()
	r := newRecord()
	if state, err := r.attempt(t.Context(), p, l, 0, false); err != nil || state != work.Finished {
		t.Fatalf("the run ended with %v, %v", state, err)
	}
	for i, of := range r.parts {
		for _, e := range of.errors {
			t.Errorf("partition %s: %s: %s", r.plan.Partitions[i].ID, e.Item, e.Message)
		}
	}
	return r
}
