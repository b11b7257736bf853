package works

import (
	"strings"

	"taskledger/events"
	"taskledger/projection/extension"
)

// saw learns of an event of a task.
func (s *Works) saw(t extension.Task, ev *events.Event) {
	if len(s.byParent)+len(s.spent) == 0 && ev.Kind() != events.KindWorkPlanned {
		return
	}
	of := s.byParent[t.ID]
	switch b := ev.Body.(type) {
	case *events.WorkPlanned:
		if of == nil {
			s.apply(nil, t, ev)
			of = s.byParent[t.ID]
			s.bytes += of.size()
			of.Final = t.Final
			return
		}
	case *events.Created:
		s.join(t, b)
		return
	case *events.Deleted:
		if of != nil {
			s.drop(of)
		} else {
			s.leave(t.ID)
			s.leaveHold(t.ID)
		}
		return
	}
	if of != nil {
		of.live(ev)
		before := of.size()
		s.apply(of, t, ev)
		of.follow(t, ev)
		of.workers[1].follow(ev, of.goesOn(1, ev.At))
		s.bytes += of.size() - before
		return
	}
	if w, is := s.byWorker[t.ID]; is {
		s.sawWorker(w.work, w.work.workers[w.number], t, ev)
	} else if _, h := s.HoldOf(t.ID); h != nil {
		h.saw(t, ev)
	}
}

// leastSleep is less than the time for which the own task of a work snoozes while its workers have the last buckets.
const leastSleep events.Millis = 60_000

// follow notes what an event of the work's own task says of the task.
func (w *Work) follow(t extension.Task, ev *events.Event) {
	w.Final = t.Final
	switch b := ev.Body.(type) {
	case *events.Snoozed: // a shorter one is the attempt's alone, as of one whose parameters cannot be read for now
		w.Asleep = b.Until-ev.At >= leastSleep
	case *events.Started:
		w.Asleep, w.Cleared = false, false
	case *events.Rescheduled, *events.Failed:
		w.Asleep = false
	case *events.Succeeded:
		w.Finished = true
	}
	if t.Final || endsRun(ev) {
		w.tries = nil // who makes it run again tries again
	}
}

// live notes an event that an attempt of the work has caused.
func (w *Work) live(ev *events.Event) {
	switch b := ev.Body.(type) {
	case *events.Started, *events.Progressed, *events.Succeeded, *events.Snoozed:
	case *events.PartitionStarted, *events.PermitsGranted, *events.TokenMoved, *events.ChangeHeld:
	case *events.BucketsMoved:
		if b.Ended == 0 && b.Started == 0 {
			return
		}
	default:
		return
	}
	w.alive = ev.At
}

// endsRun reports whether an event ends a run.
func endsRun(ev *events.Event) bool {
	switch b := ev.Body.(type) {
	case *events.Succeeded:
		return true
	case *events.Failed:
		return b.Run != 0
	}
	return false
}

// follow counts how attempts end. anew tells that those before count no more if one does.
func (t *Tries) follow(ev *events.Event, anew bool) {
	switch b := ev.Body.(type) {
	case *events.Lost:
		if anew {
			t.forgive()
		}
		t.Lost++
	case *events.Succeeded:
		t.forgive()
	case *events.Failed:
		if anew {
			t.forgive()
		}
		if t.Failed++; b.Run != 0 {
			t.forgive()
		}
	}
}

// join notes a task that was created as a worker of another one.
func (s *Works) join(t extension.Task, b *events.Created) {
	of := s.byParent[b.Ties.Parent]
	if of == nil || s.joinHold(of, t) {
		return
	}
	number := events.WorkerNumber(of.ID, t.ID)
	if number < 2 || of.workers[number] != nil {
		return
	}
	id := events.TaskID(strings.Clone(string(t.ID)))
	of.workers[number] = &Worker{
		Number: number,
		ID:     id,
		Life:   t.Life,
		Active: true,
		bytes:  t.Bytes,
	}
	of.last = max(of.last, number)
	s.byWorker[id] = workerOf{work: of, number: number}
	s.bytes += workerBytes
}

func (s *Works) sawWorker(of *Work, w *Worker, t extension.Task, ev *events.Event) {
	s.count(of, w, -1)
	of.live(ev)
	w.follow(ev, false)
	w.Active, w.bytes = !t.Final, t.Bytes
	s.count(of, w, 1)
	s.trim(of)
}

// count counts a worker that has ended, or with sign -1 counts it no more.
func (s *Works) count(of *Work, w *Worker, sign int) {
	if !w.Active {
		of.kept += sign
		s.keptBytes += int64(sign) * w.bytes
	}
}

// trim gives up ended workers that a work has too many of, or that take too much: those with the least numbers.
func (s *Works) trim(of *Work) {
	for of.kept > 0 && (of.kept > MaxKeptWorkers || s.keptBytes > MaxKeptBytes) {
		var first *Worker
		for n, w := range of.workers {
			if n != 1 && !w.Active && (first == nil || n < first.Number) {
				first = w
			}
		}
		s.leave(first.ID)
		s.shard.Reconsider(first.ID)
	}
}

// leave forgets that a task is a worker.
func (s *Works) leave(id events.TaskID) {
	is, there := s.byWorker[id]
	if !there {
		return
	}
	s.count(is.work, is.work.workers[is.number], -1)
	delete(is.work.workers, is.number)
	delete(s.byWorker, id)
	s.bytes -= workerBytes
}

// drop forgets a work. Its workers are left to retention, the tasks of its holds to whoever deletes them.
func (s *Works) drop(of *Work) {
	if of.Stream != nil {
		before := of.size()
		for _, h := range of.Stream.Holds() {
			s.endHold(of, h, true)
		}
		s.bytes += of.size() - before
	}
	delete(s.byParent, of.ID)
	var gone []events.TaskID
	for _, w := range of.Workers() {
		gone = append(gone, w.ID)
		s.leave(w.ID)
	}
	s.bytes -= of.size()
	s.clearPermits(of)
	for _, id := range gone {
		s.shard.Reconsider(id)
	}
}

// forgot forgets the work of a task that retention has forgotten, or a worker.
func (s *Works) forgot(t extension.Task) {
	if of := s.byParent[t.ID]; of != nil && of.Life == t.Life {
		s.drop(of)
		return
	}
	if w, is := s.byWorker[t.ID]; is && w.work.workers[w.number].Life == t.Life {
		s.leave(t.ID)
	}
	if is, gone := s.spent[t.ID]; gone && is.life == t.Life {
		s.leaveHold(t.ID)
	}
}

// holds reports whether a finished task is a worker of a work that is there, has a hold, or a work with a token or
// holds.
func (s *Works) holds(t extension.Task) bool {
	if len(s.byParent) == 0 {
		return false
	}
	if of := s.byParent[t.ID]; of != nil {
		return of.lasts()
	}
	_, works := s.byWorker[t.ID]
	_, has := s.byHold[t.ID]
	return works || has
}

// returnBytes bounds what the event that returns a bucket takes besides the id of its work: batches are reckoned so
// much larger for each attempt that ends. The id is no longer than that of the task, and stands in what a command
// reckons for its events beyond what they take, as a second event of a cancelled work does.
const returnBytes = 64

// endBytes declares what ended adds to an entry: nothing in a shard without works.
func (s *Works) endBytes() int {
	if len(s.byParent) == 0 {
		return 0
	}
	return returnBytes
}

// ended returns the bucket of an attempt that has ended, and those of all workers where a run of the work's own task
// has ended.
func (s *Works) ended(t extension.Task, ev *events.Event) []events.Event {
	if len(s.byParent) == 0 {
		return nil
	}
	of, number := s.WorkerOf(t.ID)
	if of == nil {
		return nil
	}
	var body *events.BucketsMoved
	switch has := of.Has(number); {
	case number == 1 && endsRun(ev):
		if len(of.open) == 0 {
			return nil
		}
		body = &events.BucketsMoved{Cause: events.ReturnedGivenUp}
	case has == nil:
		return nil
	default:
		body = &events.BucketsMoved{
			Worker:   number,
			Attempt:  has.Attempt,
			Returned: has.Bucket,
			Cause:    causeOf(ev),
		}
	}
	return []events.Event{{Task: of.ID, Body: body}}
}

// causeOf returns why an attempt returns its bucket that has ended by an event.
func causeOf(ev *events.Event) events.ReturnCause {
	switch b := ev.Body.(type) {
	case *events.Lost:
		return events.ReturnedLost
	case *events.Failed:
		if b.Error.Code == events.CodeCancelled || b.Error.Code == events.CodeLost {
			return events.ReturnedGivenUp
		}
		return events.ReturnedFailed
	}
	return events.ReturnedGivenUp
}
