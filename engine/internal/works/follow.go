package works

import (
	"fmt"
	"strconv"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/works"
)

// Reasons that owners give.
const (
	endedReason     = "its work has ended"
	suspendedReason = "its work is suspended"
)

// follow records what follows an event in its entry: the end of workers whose work ends, their suspension, and the
// failure of a work one of whose buckets has failed too often. What the entry has no room for is left to the next.
func follow(d *command.Decider, ev *events.Event) {
	all := works.Of(d.State)
	of := all.Work(ev.Task)
	if of == nil {
		if b, failed := ev.Body.(*events.Failed); failed && all.Len() > 0 {
			failWithWorker(d, ev.Task, b)
		}
		return
	}
	switch b := ev.Body.(type) {
	case *events.Rescheduled:
		endWorkers(d, of)
		failSpent(d, of)
	case *events.Failed, *events.Succeeded, *events.CancelRequested:
		endWorkers(d, of)
	case *events.Joined:
		failSpent(d, of)
	case *events.Suspended:
		suspend(d, of)
	case *events.Resumed:
		alignWorkers(d, of)
	case *events.BucketsMoved:
		switch b.Cause {
		case events.ReturnedFailed:
			failTried(d, of, b.Worker)
		case events.ReturnedLost:
			failLost(d, of)
		}
	}
}

// over reports whether nothing goes on of the work of a task: its run has ended, or is about to.
func over(t *projection.Task) bool { return t == nil || t.Final() || t.RunEnded || t.Cancelled }

// endWorkers ends the workers of a work that has ended, or is about to.
func endWorkers(d *command.Decider, of *works.Work) {
	parent := d.State.Task(of.ID)
	if !over(parent) {
		return
	}
	if parent != nil && parent.Final() && len(of.Open()) > 0 &&
		d.MayRecord(events.KindBucketsMoved) { // its retry was taken away
		d.Emit(parent, &events.BucketsMoved{Cause: events.ReturnedGivenUp})
	}
	eachActive(d, of, func(t *projection.Task) {
		if !t.Cancelled {
			d.Cancel(t, endedReason)
		}
	})
}

// eachActive yields the workers that have not ended, as long as the entry has room.
func eachActive(d *command.Decider, of *works.Work, yield func(t *projection.Task)) {
	if of.Active() == 0 {
		return
	}
	for _, w := range of.Workers() {
		if d.Err != nil || d.EntryFull() {
			return
		}
		if t := d.State.Task(w.ID); w.Active && t != nil && t.Created == w.Life {
			yield(t)
		}
	}
}

// suspend ends the attempts of a work, whose nodes give them back, and suspends its workers.
func suspend(d *command.Decider, of *works.Work) {
	if t := d.State.Task(of.ID); t != nil && t.OnNode() {
		d.EndAttempt(t, suspendedReason)
	}
	alignWorkers(d, of)
}

// alignWorkers suspends the workers of a work that is suspended, and lets those of one that is not go on.
func alignWorkers(d *command.Decider, of *works.Work) {
	parent := d.State.Task(of.ID)
	if over(parent) {
		return
	}
	eachActive(d, of, func(t *projection.Task) {
		switch {
		case t.Suspended == parent.Suspended:
		case parent.Suspended:
			if t.OnNode() {
				d.EndAttempt(t, suspendedReason)
			}
			d.Emit(t, &events.Suspended{Reason: suspendedReason})
		default:
			d.Emit(t, &events.Resumed{})
		}
	})
}

// failSpent fails a work one of whose buckets has cost as many attempts as the policy allows by now: a submit that
// joins may have changed it.
func failSpent(d *command.Decider, of *works.Work) {
	failTried(d, of, 0)
	failLost(d, of)
}

// failTried fails a work of which attempts on one bucket have failed as often as the policy allows, whichever workers
// had it. The work takes the code of the last failure, by a worker of a number: items, where the items could not be
// had, or no worker is known.
func failTried(d *command.Decider, of *works.Work, last uint32) {
	t := d.State.Task(of.ID)
	if over(t) {
		return
	}
	bucket, failed := of.MostTried()
	_, plan := of.Part()
	if plan == nil || int(failed) < t.Kind.Policy.MaxAttempts {
		return
	}
	why := events.Error{Code: events.CodeItems}
	if w := of.Worker(last); w != nil {
		if t := d.State.Task(w.ID); t != nil && t.Error != nil {
			why = *t.Error
		}
	}
	text := attemptsOn(plan, bucket) + " have failed " + times(uint64(failed))
	if why.Message != "" {
		text += fmt.Sprintf(", the last with %s: %s", why.Code, why.Message)
	}
	failWork(d, of, events.Error{
		Code:       why.Code,
		Message:    events.Head(text, failureBytes/2),
		Properties: bucketOf(plan, bucket),
	})
}

// attemptsOn names the attempts on a bucket. A stream has one, which nobody knows.
func attemptsOn(plan *events.WorkPartition, bucket uint64) string {
	if plan.Form != events.FormBuckets {
		return fmt.Sprintf("stream %s: attempts", plan.ID)
	}
	return fmt.Sprintf("partition %s: attempts on bucket %d", plan.ID, bucket)
}

// bucketOf returns the properties of a failure that name a bucket.
func bucketOf(plan *events.WorkPartition, bucket uint64) map[string]string {
	return map[string]string{"partition": plan.ID, "bucket": strconv.FormatUint(bucket, 10)}
}

// failLost fails a work of which attempts on one bucket were lost as often as the policy allows, whichever workers had
// it.
func failLost(d *command.Decider, of *works.Work) {
	t := d.State.Task(of.ID)
	if over(t) {
		return
	}
	bucket, lost := of.MostLost()
	_, plan := of.Part()
	if plan == nil || int(lost) < t.Kind.Policy.MaxLost {
		return
	}
	failWork(d, of, events.Error{
		Code:       events.CodeLost,
		Message:    attemptsOn(plan, bucket) + " were lost with their nodes " + times(uint64(lost)),
		Properties: bucketOf(plan, bucket),
	})
}

// failWithWorker fails the work of a worker that was lost too often while no bucket of the work ended, or was rejected:
// one in its place would end alike.
func failWithWorker(d *command.Decider, worker events.TaskID, b *events.Failed) {
	of, _ := works.Of(d.State).WorkerOf(worker)
	if of == nil || b.Run == 0 || b.Error.Code != events.CodeLost && b.Error.Code != events.CodeRejected {
		return
	}
	failWork(d, of, events.Error{
		Code:       b.Error.Code,
		Message:    events.Head("worker "+string(worker)+": "+b.Error.Message, failureBytes/2),
		Properties: map[string]string{"worker": string(worker)},
	})
}

// failWork ends the work's task as failed, whatever its attempt does.
func failWork(d *command.Decider, of *works.Work, why events.Error) {
	if t := d.State.Task(of.ID); !over(t) && d.Err == nil {
		d.FailTask(t, why)
	}
}
