package works

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"taskledger/events"
	"taskledger/projection/extension"
)

// allows returns an error for an event of a work that the state does not allow. The task is as it was before it.
func (s *Works) allows(t extension.Task, ev *events.Event) error {
	of := s.byParent[t.ID]
	if b, plans := ev.Body.(*events.WorkPlanned); plans {
		return s.mayPlan(of, t, b)
	}
	if of == nil {
		return fmt.Errorf("%s of a task without a work", ev.Kind())
	}
	switch b := ev.Body.(type) {
	case *events.PartitionStarted:
		return of.mayStart(b)
	case *events.PartitionEnded:
		p, _ := of.Part()
		if p == nil || int(b.Partition) != of.Current || p.Done != p.Total {
			return fmt.Errorf("partition %d ends, %d is under way", b.Partition, of.Current)
		}
	case *events.BucketsMoved:
		return of.mayMove(t, b)
	case *events.PermitsGranted:
		return of.mayPermit(t, b)
	case *events.WorkReset:
		return of.mayReset(t, b)
	case *events.TokenMoved:
		return of.mayMoveToken(b)
	case *events.ChangeHeld:
		return of.mayHold(b)
	case *events.HoldMoved:
		return of.mayMoveHold(b)
	}
	return nil
}

func (s *Works) mayPlan(of *Work, t extension.Task, b *events.WorkPlanned) error {
	switch {
	case of == nil && b.Failed, of != nil && b.Failed && (!of.Over() || of.FailedBuckets() == 0):
		return errors.New("a run over failed buckets, of which there are none")
	case of != nil && len(of.open) > 0:
		return fmt.Errorf("a run is planned while %d buckets are open", len(of.open))
	case of != nil && b.Run < of.Run:
		return fmt.Errorf("run %d follows run %d", b.Run, of.Run)
	case of == nil && len(t.ID) > events.MaxWorkParentBytes:
		return fmt.Errorf("a work of an id of %d bytes, want %d at most", len(t.ID), events.MaxWorkParentBytes)
	case of == nil && s.Full():
		return fmt.Errorf("%d works, want %d at most", len(s.byParent)+1, MaxWorks)
	}
	return nil
}

func (w *Work) mayStart(b *events.PartitionStarted) error {
	under, _ := w.Part()
	if !w.Planned || under != nil || int(b.Partition) != w.Current+1 || int(b.Partition) > len(w.Parts) {
		return fmt.Errorf("partition %d of %d starts after %d", b.Partition, len(w.Parts), w.Current)
	}
	return nil
}

func (w *Work) mayMove(t extension.Task, b *events.BucketsMoved) error {
	p, plan := w.Part()
	if p == nil {
		return errors.New("a bucket moves while no partition is under way")
	}
	if b.Worker == 0 {
		return nil
	}
	has := w.Has(b.Worker)
	if gone := max(b.Ended, b.Returned); gone != 0 {
		if has == nil || has.Bucket != gone || has.Attempt != b.Attempt {
			return fmt.Errorf("bucket %d of attempt %d of worker %d, which has %+v", gone, b.Attempt, b.Worker, has)
		}
		has = nil
	}
	switch {
	case b.Started == 0:
	case has != nil:
		return fmt.Errorf("worker %d has bucket %d, and begins %d", b.Worker, has.Bucket, b.Started)
	case b.Started > plan.Buckets || p.taken.Has(b.Started):
		return fmt.Errorf("bucket %d is done, open, or none of the run", b.Started)
	case t.Suspended || t.Final:
		return fmt.Errorf("bucket %d of a work that is suspended or has ended", b.Started)
	}
	return nil
}

func (w *Work) mayPermit(t extension.Task, b *events.PermitsGranted) error {
	_, plan := w.Part()
	counter := w.Counter(b.Counter)
	switch {
	case counter < 0 || w.find(b.Bucket) < 0 || t.Suspended:
		return fmt.Errorf("permits of counter %q in bucket %d, which is not open", b.Counter, b.Bucket)
	case b.Simulate != (plan.Mode == events.ModeSimulate):
		return fmt.Errorf("permits of another mode than that of partition %q", plan.ID)
	}
	if limit, is := plan.Thresholds[counter].Limit, w.Parts[w.Current-1].Counters[counter]; is+uint64(len(b.Items)) > limit {
		return fmt.Errorf("%d permits beyond %d of counter %q, want %d at most", len(b.Items), is, b.Counter, limit)
	}
	for i, item := range b.Items {
		if w.Permitted(counter, b.Bucket, item) || slices.Contains(b.Items[:i], item) {
			return fmt.Errorf("item %x of bucket %d is counted twice by %q", item, b.Bucket, b.Counter)
		}
	}
	return nil
}

// apply changes the state by an event that it allows.
func (s *Works) apply(of *Work, t extension.Task, ev *events.Event) {
	switch b := ev.Body.(type) {
	case *events.WorkPlanned:
		if of == nil {
			of = s.begin(t)
		}
		s.clearPermits(of)
		of.plan(b, ev.At)
	case *events.PartitionStarted:
		of.Current++
		p := &of.Parts[of.Current-1]
		p.Started, p.Counted, p.Expected = ev.At, b.Counted, b.Expected
		p.Counters = make([]uint64, len(of.Partitions[of.Current-1].Thresholds))
	case *events.PartitionEnded:
		p, _ := of.Part()
		p.Ended, p.taken = ev.At, Ranges{}
		of.tries = nil
		s.clearPermits(of)
	case *events.BucketsMoved:
		s.move(of, b, ev.At)
	case *events.PermitsGranted:
		s.permit(of, b)
	case *events.WorkReset:
		if b.What == events.ResetToken {
			of.setToken(b.Token, ev.At)
		} else {
			s.reset(of, b.What)
		}
	case *events.TokenMoved:
		s.moveToken(of, b, ev.At)
	case *events.ChangeHeld:
		of.hold(b, ev.At)
	case *events.HoldMoved:
		s.moveHold(of, b)
	}
}

// begin makes the work of a task.
func (s *Works) begin(t extension.Task) *Work {
	if len(s.byParent) >= MaxWorks {
		s.drop(s.oldestFinal())
	}
	id := events.TaskID(strings.Clone(string(t.ID)))
	of := &Work{
		ID:      id,
		Life:    t.Life,
		permits: newPermits(),
	}
	of.workers = map[uint32]*Worker{1: of.own()}
	s.byParent[id] = of
	return of
}

// own returns the first worker, which is the work's own task, as it begins.
func (w *Work) own() *Worker {
	return &Worker{
		Number: 1,
		ID:     w.ID,
		Life:   w.Life,
		Active: true,
	}
}

// plan begins a run.
func (w *Work) plan(b *events.WorkPlanned, now events.Millis) {
	before := w.Parts
	if !b.Failed {
		w.Definition, w.Partitions = strings.Clone(b.Definition), clonePartitions(b.Partitions)
	}
	w.Planned, w.Run, w.PlannedAt, w.Retried = true, b.Run, now, b.Failed
	w.Current, w.ErrorBytes, w.Uncertain, w.Finished, w.tries = 0, 0, 0, false, nil
	w.Parts = make([]Part, len(w.Partitions))
	for i := range w.Parts {
		p, buckets := &w.Parts[i], w.Partitions[i].Buckets
		p.Total = buckets
		if b.Failed {
			p.Total = before[i].failed.Count()
			p.taken = before[i].failed.Complement(buckets)
		}
	}
}

// clonePartitions returns partitions in memory of their own: the rest of the entry shall be freed.
func clonePartitions(all []events.WorkPartition) []events.WorkPartition {
	all = slices.Clone(all)
	for i := range all {
		p := &all[i]
		p.ID, p.Segments, p.Rules = strings.Clone(p.ID), slices.Clone(p.Segments), slices.Clone(p.Rules)
		p.Thresholds = slices.Clone(p.Thresholds)
		for j := range p.Thresholds {
			p.Thresholds[j].Counter = strings.Clone(p.Thresholds[j].Counter)
		}
	}
	return all
}

// move applies what became of buckets.
func (s *Works) move(of *Work, b *events.BucketsMoved, now events.Millis) {
	p, _ := of.Part()
	switch {
	case b.Worker == 0:
		for _, o := range of.open {
			p.taken.Remove(o.Bucket)
		}
		of.open = nil
	case b.Ended != 0:
		s.end(of, p, b, now)
	case b.Returned != 0:
		if of.goesOn(b.Worker, now) {
			of.tries = nil
		}
		of.close(b.Returned)
		p.taken.Remove(b.Returned)
		switch b.Cause {
		case events.ReturnedFailed:
			of.tried(b.Returned).failed++
		case events.ReturnedLost:
			of.tried(b.Returned).lost++
		}
	}
	if b.Started != 0 {
		at := -1 - of.find(b.Started)
		of.open = slices.Insert(slices.Clone(of.open), at, Open{ // a snapshot may have the one before
			Bucket:  b.Started,
			Worker:  b.Worker,
			Attempt: b.Attempt,
			Since:   now,
		})
		p.taken.Add(b.Started)
	}
	switch busy := len(of.open) > 0; {
	case busy && p.BusyFrom == 0:
		p.BusyFrom = now
	case !busy && p.BusyFrom != 0:
		if b.Cause == events.ReturnedLost { // nobody knows how long a node that was lost had been gone
			now = max(of.alive, p.BusyFrom)
		}
		p.Busy += now - p.BusyFrom
		p.BusyFrom = 0
	}
}

// end applies the end of a bucket.
func (s *Works) end(of *Work, p *Part, b *events.BucketsMoved, now events.Millis) {
	of.close(b.Ended)
	p.Done++
	p.Moved = now
	p.Items.Done += b.Items.Done
	p.Items.Failed += b.Items.Failed
	p.Items.Skipped += b.Items.Skipped
	if b.Items.Failed > 0 {
		p.FailedIn++
		p.failed.Add(b.Ended)
		of.boundFailed(p)
	}
	of.ErrorBytes += TextBytes(b.Errors)
	if at, found := slices.BinarySearchFunc(of.tries, b.Ended, byTry); found {
		of.tries = slices.Delete(slices.Clone(of.tries), at, at+1)
	}
	for _, w := range of.workers { // the work gets on: what one bucket costs is counted by tries
		w.forgive()
	}
	if of.precise() {
		s.clearPermits(of)
		return
	}
	s.dropPermits(of, b.Ended)
}

// close takes a bucket from those that are open.
func (w *Work) close(bucket uint64) {
	at := w.find(bucket)
	w.open = slices.Delete(slices.Clone(w.open), at, at+1)
}

// tried returns what counts the attempts that have failed, or were lost, with a bucket.
func (w *Work) tried(bucket uint64) *try {
	w.tries = slices.Clone(w.tries)
	at, found := slices.BinarySearchFunc(w.tries, bucket, byTry)
	if !found {
		w.tries = slices.Insert(w.tries, at, try{bucket: bucket})
	}
	return &w.tries[at]
}

// boundFailed makes spans of the failed buckets of partitions, those with most ranges first, where a run has too many
// ranges of them. That of p may have been made before.
func (w *Work) boundFailed(p *Part) {
	if p.Spanned {
		p.failed.span()
	}
	for w.failedRanges() > MaxFailedRanges {
		most := &w.Parts[0]
		for i := range w.Parts {
			if w.Parts[i].failed.Len() > most.failed.Len() {
				most = &w.Parts[i]
			}
		}
		most.failed.span()
		most.Spanned = true
	}
}

// failedRanges counts the ranges of failed buckets of all partitions.
func (w *Work) failedRanges() (n int) {
	for i := range w.Parts {
		n += w.Parts[i].failed.Len()
	}
	return n
}

// permit counts items.
func (s *Works) permit(of *Work, b *events.PermitsGranted) {
	p, _ := of.Part()
	counter := of.Counter(b.Counter)
	p.Counters = slices.Clone(p.Counters)
	p.Counters[counter] += uint64(len(b.Items))
	for _, item := range b.Items {
		if of.permits.Len() >= MaxPermits || s.permits >= MaxShardPermits {
			of.Uncertain++
			continue
		}
		of.permits.Set(permit{bucket: of.lastStage(b.Bucket), counter: counter, item: item})
		s.permits++
	}
}

// reset forgets what a run has done.
func (s *Works) reset(of *Work, what events.ResetScope) {
	if what != events.ResetCounts {
		s.clearPermits(of)
		of.Uncertain = 0
	}
	of.Cleared = true
	for i := range of.Parts {
		if p := &of.Parts[i]; p.Ended == 0 { // what others have counted stays told
			p.Counters = make([]uint64, len(p.Counters))
		}
	}
	if what != events.ResetAll {
		return
	}
	of.Planned, of.Current, of.tries = false, 0, nil
	of.ErrorBytes, of.Retried = 0, false
	of.Parts = make([]Part, len(of.Partitions))
	for i := range of.Parts {
		of.Parts[i].Total = of.Partitions[i].Buckets
	}
}
