package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"taskledger/events"
)

// apply folds an event of the work's own task, or says what forbids it.
func (of *job) apply(ev *events.Event) string {
	switch b := ev.Body.(type) {
	case *events.WorkPlanned:
		return cmp.Or(of.mayPlan(b), of.plan(b))
	case *events.PartitionStarted:
		return of.startPart(b)
	case *events.PartitionEnded:
		p := of.part()
		if p == nil || int(b.Partition) != of.current || uint64(len(p.done)) != p.total() {
			return fmt.Sprintf("partition %d ends, %d is under way, and not all of its buckets are done", b.Partition, of.current)
		}
		p.ended, of.permits = true, nil
	case *events.BucketsMoved:
		return of.move(ev, b)
	case *events.PermitsGranted:
		return of.grant(b)
	case *events.WorkReset:
		if problem := of.mayReset(b); problem != "" {
			return problem
		}
		if b.What == events.ResetToken {
			of.setToken(b.Token)
		} else {
			of.reset(b.What)
		}
	case *events.TokenMoved:
		return of.moveToken(b)
	case *events.ChangeHeld:
		if problem := of.streams(b.Attempt); problem != "" {
			return "a change is held: " + problem
		}
		return of.stream.hold(b)
	case *events.HoldMoved:
		return of.stream.move(b)
	case *events.Failed:
		return of.judgeTrip(b)
	case *events.Deleted:
		if len(of.open) > 0 {
			return fmt.Sprintf("it is deleted while %d buckets are open", len(of.open))
		}
	}
	return ""
}

// streams says what keeps an attempt from telling of a stream; "" for nothing.
func (of *job) streams(attempt events.Ref) string {
	p := of.part()
	has, open := of.open[1]
	switch {
	case p == nil || p.plan.Form == events.FormBuckets:
		return "no stream is under way"
	case !open || has.attempt != attempt:
		return fmt.Sprintf("attempt %d tells of a stream whose bucket attempt %d has", attempt, has.attempt)
	}
	if w := of.workers[has.worker]; w == nil || w.attempt != attempt {
		return fmt.Sprintf("attempt %d tells of a stream, and does not run", attempt)
	}
	return ""
}

// moveToken folds how far a stream has come, or says what forbids it.
func (of *job) moveToken(b *events.TokenMoved) string {
	if problem := of.streams(b.Attempt); problem != "" {
		return "a token moves: " + problem
	}
	p := of.part()
	if simulates := p.plan.Mode != events.ModeFull && !p.plan.MovesToken; b.Token != "" && b.Simulated != simulates {
		return fmt.Sprintf("a token moves in partition %q, and that it is simulated is %t", p.plan.ID, b.Simulated)
	}
	p.items.Done += b.Items.Done
	p.items.Failed += b.Items.Failed
	p.items.Skipped += b.Items.Skipped
	stands := &of.stream.token
	if b.Simulated {
		stands = &p.simulated
	}
	switch {
	case b.Token == "" && of.leavesBehind(p, b):
	case b.Token == "" || b.Token == *stands:
		return ""
	default:
		*stands = b.Token
	}
	for _, w := range of.workers {
		w.forgive()
	}
	return ""
}

// leavesBehind reports whether a pushed stream has acknowledged each message that was there when the attempt began.
func (of *job) leavesBehind(p *part, b *events.TokenMoved) bool {
	return p.plan.Form == events.FormPushed && b.Items != (events.ItemCounts{}) && (b.Open == 0 || b.Oldest > of.since)
}

// GoesOn reports whether the attempt of a task has had the bucket of a stream for an hour, at a time: those before count
// no more.
func (s *WorkFold) GoesOn(id events.TaskID, at events.Millis) bool {
	of := s.byID[id]
	if of == nil {
		return false
	}
	p := of.part()
	_, open := of.open[1]
	return p != nil && p.plan.Form != events.FormBuckets && open && at >= of.since.Add(time.Hour)
}

// mayReset says what keeps a work from being reset.
func (of *job) mayReset(b *events.WorkReset) string {
	switch {
	case len(of.open) > 0 || of.own.attempt != 0:
		return fmt.Sprintf("a reset of a work that runs, or has %d open buckets", len(of.open))
	case b.What != events.ResetToken && !of.planned:
		return "a reset of a work that was reset"
	case b.What == events.ResetToken && !of.own.suspended && !of.own.final:
		return "the token of a stream is set that may go on"
	}
	return ""
}

// setToken folds that an operator has set the token.
func (of *job) setToken(token string) {
	of.stream.token = token
	for i := range of.parts {
		of.parts[i].simulated = ""
	}
}

// mayPlan says what keeps a further run from being planned.
func (of *job) mayPlan(b *events.WorkPlanned) string {
	failed := uint64(0)
	for i := range of.parts {
		failed += of.parts[i].failed.count()
	}
	switch {
	case len(of.open) > 0:
		return fmt.Sprintf("a run is planned while %d buckets are open", len(of.open))
	case b.Failed && (!of.over() || failed == 0 || !of.own.final && !of.own.over):
		return "a run over failed buckets of a work that has none, or has not ended"
	case !b.Failed && of.planned && !of.finished:
		return "a run is planned while one is under way: what it has counted is forgotten"
	}
	return ""
}

// plan begins a run.
func (of *job) plan(b *events.WorkPlanned) string {
	switch {
	case b.Run != of.run+1:
		return fmt.Sprintf("run %d is planned after run %d", b.Run, of.run)
	case !b.Failed && of.own.attempt == 0:
		return "a run is planned without an attempt of the task"
	case b.Failed && of.parts == nil:
		return "a run over failed buckets of a work that has none"
	}
	before := of.parts
	plans := b.Partitions
	if b.Failed {
		plans = nil
		for i := range before {
			plans = append(plans, before[i].plan)
		}
	}
	of.parts = make([]part, len(plans))
	for i := range plans {
		of.parts[i].plan = plans[i]
		of.parts[i].counted = make([]uint64, len(plans[i].Thresholds))
		if b.Failed {
			of.parts[i].within = &before[i].failed
		}
	}
	of.run = b.Run
	of.planned, of.finished, of.current, of.permits = true, false, 0, nil
	return ""
}

// startPart begins a partition, or says what forbids it.
func (of *job) startPart(b *events.PartitionStarted) string {
	switch {
	case !of.planned || of.part() != nil || int(b.Partition) != of.current+1 || int(b.Partition) > len(of.parts):
		return fmt.Sprintf("partition %d of %d starts, %d did last, and has not ended unless a run has just begun", b.Partition, len(of.parts), of.current)
	case of.bars() != "":
		return "a partition starts: " + of.bars()
	case of.own.attempt == 0:
		return "a partition starts without an attempt of the task"
	}
	of.current++
	p := of.part()
	p.done, p.low = map[uint64]bool{}, 1
	return ""
}

// total returns the number of buckets of the run.
func (p *part) total() uint64 {
	if p.within != nil {
		return p.within.count()
	}
	return p.plan.Buckets
}

// isOf reports whether a bucket is one of the run.
func (p *part) isOf(bucket uint64) bool {
	return bucket <= p.plan.Buckets && (p.within == nil || p.within.has(bucket))
}

// least returns the free bucket with the least number; 0 = none is free.
func (of *job) least(p *part) uint64 {
	for p.low <= p.plan.Buckets && (p.done[p.low] || !p.isOf(p.low)) {
		p.low++
	}
	for n := p.low; n <= p.plan.Buckets; n++ {
		if _, open := of.open[n]; !open && !p.done[n] && p.isOf(n) {
			return n
		}
	}
	return 0
}

// move folds what becomes of buckets, or says what forbids it.
func (of *job) move(ev *events.Event, b *events.BucketsMoved) string {
	p := of.part()
	if p == nil {
		return "a bucket moves while no partition is under way"
	}
	if b.Worker == 0 {
		if !of.own.over {
			return "the buckets of all workers are returned, and the run goes on"
		}
		clear(of.open)
		return ""
	}
	w := of.workers[b.Worker]
	if w == nil {
		return fmt.Sprintf("worker %d has never been there, or has gone", b.Worker)
	}
	if gone := max(b.Ended, b.Returned); gone != 0 {
		if has, open := of.open[gone]; !open || has != (holder{b.Worker, b.Attempt}) {
			return fmt.Sprintf("bucket %d of attempt %d of worker %d ends or is returned, it is of attempt %d of worker %d", gone, b.Attempt, b.Worker, has.attempt, has.worker)
		}
		if problem := w.judgeEnd(ev, b); problem != "" {
			return problem
		}
		delete(of.open, gone)
	}
	if b.Ended != 0 {
		of.end(p, b)
		for _, all := range of.workers {
			all.forgive()
		}
	}
	if b.Started != 0 {
		of.since = ev.At
		return of.give(p, w, b)
	}
	return ""
}

// judgeEnd says what keeps an attempt from ending or returning its bucket like that.
func (w *hand) judgeEnd(ev *events.Event, b *events.BucketsMoved) string {
	runs := w.attempt == b.Attempt
	inEntry := w.endedIn == ev.Position.Ref.Entry()
	switch {
	case b.Ended != 0 && !runs:
		return fmt.Sprintf("bucket %d is ended by an attempt that is over", b.Ended)
	case b.Ended != 0:
		return ""
	case runs != (b.Cause == events.ReturnedByWorker):
		return fmt.Sprintf("bucket %d is returned for cause %d, and that its attempt runs is %t", b.Returned, b.Cause, runs)
	case !runs && inEntry && w.lost != (b.Cause == events.ReturnedLost):
		const problem = "bucket %d is returned for cause %d, and that its attempt was lost is %t"
		return fmt.Sprintf(problem, b.Returned, b.Cause, w.lost)
	case !runs && inEntry && w.failed != (b.Cause == events.ReturnedFailed):
		return fmt.Sprintf("bucket %d is returned for cause %d, and that its attempt has failed is %t", b.Returned, b.Cause, w.failed)
	}
	return ""
}

// end takes a bucket as done.
func (of *job) end(p *part, b *events.BucketsMoved) {
	p.done[b.Ended] = true
	p.items.Done += b.Items.Done
	p.items.Failed += b.Items.Failed
	p.items.Skipped += b.Items.Skipped
	for is := range of.permits {
		if is.bucket == b.Ended {
			delete(of.permits, is)
		}
	}
	if b.Items.Failed == 0 {
		return
	}
	p.failed.add(b.Ended)
	ranges := 0
	for i := range of.parts {
		ranges += of.parts[i].failed.ranges
	}
	if ranges > mostRanges {
		p.failed.span()
	}
}

// give opens a bucket for an attempt, or says what forbids it.
func (of *job) give(p *part, w *hand, b *events.BucketsMoved) string {
	least := of.least(p)
	has, open := of.open[b.Started]
	switch {
	case of.bars() != "":
		return fmt.Sprintf("bucket %d starts: %s", b.Started, of.bars())
	case w.cancelled:
		return fmt.Sprintf("bucket %d starts for worker %d, which is cancelled", b.Started, b.Worker)
	case w.attempt != b.Attempt:
		return fmt.Sprintf("bucket %d starts for attempt %d of worker %d, which does not run", b.Started, b.Attempt, b.Worker)
	case p.done[b.Started]:
		return fmt.Sprintf("bucket %d starts, and is done", b.Started)
	case open:
		return fmt.Sprintf("bucket %d starts, and worker %d has it", b.Started, has.worker)
	case !p.isOf(b.Started):
		return fmt.Sprintf("bucket %d starts, and is none of the run", b.Started)
	case b.Started != least:
		return fmt.Sprintf("bucket %d starts, and bucket %d is free", b.Started, least)
	case len(of.open) >= int(p.plan.Workers):
		return fmt.Sprintf("bucket %d starts beside %d others, of at most %d workers", b.Started, len(of.open), p.plan.Workers)
	}
	for bucket, other := range of.open {
		if other.worker == b.Worker {
			return fmt.Sprintf("bucket %d starts for worker %d, which has bucket %d", b.Started, b.Worker, bucket)
		}
	}
	of.open[b.Started] = holder{b.Worker, b.Attempt}
	return ""
}

// grant counts items, or says what forbids it.
func (of *job) grant(b *events.PermitsGranted) string {
	p := of.part()
	if p == nil {
		return "a permit while no partition is under way"
	}
	counter := slices.IndexFunc(p.plan.Thresholds, func(t events.WorkThreshold) bool { return t.Counter == b.Counter })
	has, open := of.open[b.Bucket]
	w := of.workers[has.worker]
	switch {
	case counter < 0:
		return fmt.Sprintf("a permit of counter %q, which partition %q does not have", b.Counter, p.plan.ID)
	case !open || w == nil || w.attempt != has.attempt:
		return fmt.Sprintf("a permit in bucket %d, which is not open for an attempt that runs", b.Bucket)
	case of.bars() != "":
		return "a permit: " + of.bars()
	case w.cancelled:
		return fmt.Sprintf("a permit of worker %d, which is cancelled", has.worker)
	case b.Simulate != (p.plan.Mode == events.ModeSimulate):
		return fmt.Sprintf("a permit of another mode than that of partition %q", p.plan.ID)
	case p.counted[counter]+uint64(len(b.Items)) > p.plan.Thresholds[counter].Limit:
		return fmt.Sprintf("%d permits of counter %q beyond %d, of at most %d", len(b.Items), b.Counter, p.counted[counter], p.plan.Thresholds[counter].Limit)
	}
	p.counted[counter] += uint64(len(b.Items))
	if of.permits == nil {
		of.permits = map[permit]bool{}
	}
	for _, item := range b.Items {
		is := permit{counter, b.Bucket, item}
		if of.permits[is] {
			return fmt.Sprintf("item %x of bucket %d is counted twice by %q", item, b.Bucket, b.Counter)
		}
		if len(of.permits) < mostPermits {
			of.permits[is] = true
		}
	}
	return ""
}

// judgeTrip says what is wrong with a failure that names a counter which has reached its limit.
func (of *job) judgeTrip(b *events.Failed) string {
	p := of.part()
	if b.Error.Code != events.CodeThreshold || p == nil || b.Error.Properties["partition"] != p.plan.ID {
		return ""
	}
	for i, t := range p.plan.Thresholds {
		if t.Counter == b.Error.Properties["counter"] && p.counted[i] != t.Limit {
			return fmt.Sprintf("counter %q trips at %d, its limit is %s", t.Counter, p.counted[i], strconv.FormatUint(t.Limit, 10))
		}
	}
	return ""
}

// reset forgets what the run has done.
func (of *job) reset(what events.ResetScope) {
	if what != events.ResetCounts {
		of.permits = nil
	}
	for i := range of.parts {
		if !of.parts[i].ended || what == events.ResetAll {
			clear(of.parts[i].counted)
		}
	}
	if what != events.ResetAll {
		return
	}
	of.planned, of.current = false, 0
	for i := range of.parts {
		of.parts[i] = part{plan: of.parts[i].plan, counted: of.parts[i].counted}
	}
}
