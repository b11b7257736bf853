package work_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"taskledger/work"
)

var started = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// record is the record of a work in memory. It gives the lowest free bucket, and complains of reports that no engine
// would take.
type record struct {
	mu        sync.Mutex
	plan      *work.Plan
	partition int
	begun     bool
	done      map[int64]bool
	open      map[int64]*attempt // by bucket
	permits   map[work.Ask]bool
	counts    map[string]int64 // by partition, mode and counter

	beginnings []work.Beginning
	reports    []work.Report
	asks       []work.Ask
	wrong      []string

	suspended bool
	failNext  error // of the next call of Next
	failAsk   error // of each call of Permit
}

// attempt is the ledger of one attempt.
type attempt struct {
	*record
	bucket int64
}

func newRecord() *record {
	return &record{
		done:    map[int64]bool{},
		open:    map[int64]*attempt{},
		permits: map[work.Ask]bool{},
		counts:  map[string]int64{},
	}
}

func (r *record) attempt() *attempt { return &attempt{record: r} }

func (a *attempt) Open(_ context.Context, plan work.Plan) (work.Opened, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.plan == nil {
		a.plan = &plan
	}
	return work.Opened{Run: 7, Started: started, Plan: *a.plan}, nil
}

func (a *attempt) Begin(_ context.Context, b work.Beginning) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b.Partition != a.partition {
		a.complain("partition %d begins, %d is under way", b.Partition, a.partition)
	}
	if a.begun { // of attempts that were asked side by side one begins the partition
		return nil
	}
	a.begun = true
	a.beginnings = append(a.beginnings, b)
	return nil
}

func (r *record) complain(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (a *attempt) Next(ctx context.Context, report work.Report) (work.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.failNext; err != nil {
		a.failNext = nil
		return work.Answer{}, err
	}
	if ctx.Err() != nil {
		a.complain("a report by a context that has ended: %+v", report)
	}
	a.take(report)
	switch {
	case report.Last || a.suspended:
		return work.Answer{}, nil
	case a.plan.Partitions[a.partition].Buckets == int64(len(a.done)):
		a.partition++
		a.begun, a.done = false, map[int64]bool{}
	}
	return a.next(), nil
}

// take takes a report.
func (a *attempt) take(report work.Report) {
	if report.Bucket != a.bucket || report.Bucket != 0 && report.Partition != a.partition {
		a.complain("the attempt with bucket %d reports %+v", a.bucket, report)
	}
	if report.Returned && (report.Cause == nil || report.Items != work.Counts{} || report.Errors != nil) {
		a.complain("a bucket comes back with %+v", report)
	}
	if report.Bucket == 0 {
		return
	}
	a.reports = append(a.reports, report)
	delete(a.open, a.bucket)
	a.done[a.bucket] = !report.Returned
	if report.Returned {
		delete(a.done, a.bucket)
	}
	a.bucket = 0
}

func (a *attempt) next() work.Answer {
	if a.partition == len(a.plan.Partitions) {
		a.partition--
		for n := range a.plan.Partitions[a.partition].Buckets {
			a.done[n+1] = true
		}
		return work.Answer{State: work.Finished}
	}
	if !a.begun {
		return work.Answer{State: work.Starting, Partition: a.partition}
	}
	for n := range a.plan.Partitions[a.partition].Buckets {
		if b := n + 1; !a.done[b] && a.open[b] == nil {
			a.bucket = b
			a.open[b] = a
			return work.Answer{State: work.Working, Partition: a.partition, Bucket: b}
		}
	}
	return work.Answer{State: work.Waiting}
}

func (a *attempt) Permit(_ context.Context, ask work.Ask) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failAsk != nil {
		return false, a.failAsk
	}
	if ask.Bucket != a.bucket || ask.Partition != a.partition {
		a.complain("a permit for %+v by the attempt with bucket %d", ask, a.bucket)
	}
	a.asks = append(a.asks, ask)
	if a.permits[ask] {
		return true, nil
	}
	for _, t := range a.plan.Partitions[ask.Partition].Thresholds {
		if of := fmt.Sprint(ask.Partition, ask.Mode, t.Counter); t.Counter == ask.Counter {
			if a.counts[of] == t.Limit {
				return false, nil
			}
			a.counts[of]++
			a.permits[ask] = true
			return true, nil
		}
	}
	return false, errors.New("no such counter")
}

// total sums up the reports.
func (r *record) total() (c work.Counts) {
	for _, report := range r.reports {
		c.Done += report.Items.Done
		c.Failed += report.Items.Failed
		c.Skipped += report.Items.Skipped
	}
	return c
}
