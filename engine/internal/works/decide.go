package works

import (
	"slices"
	"strconv"
	"strings"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
	"taskledger/projection/works"
	"taskledger/work/workledger"
)

// State says what an attempt of a worker does next.
type State int64

// The states.
const (
	Go       State = iota // it has a bucket
	Wait                  // no bucket is free, and others have some: the work's own task waits, a worker ends
	Next                  // the next partition is to be begun by the work's own task
	Over                  // all partitions have ended
	Stop                  // the work is suspended, cancelled, or has failed, or it is gone
	stateEnd int64 = iota
)

// moved answers the commands of attempts.
type moved struct {
	State     int64
	Run       int64
	Partition int64 // under way, or the one to begin
	Bucket    uint64
	Differs   bool   // the run has another definition than the caller
	Granted   []byte // a bit for each item that was asked for: 1 = it may be counted
	Why       string // of Stop
}

func (m *moved) answer() command.Answer { return command.Answer{Data: message.Encode(m)} }

// asked holds an attempt that asks, and its work.
type asked struct {
	d      *command.Decider
	t      *projection.Task
	of     *works.Work // nil = there is none
	parent *projection.Task
	number uint32
}

// attempt returns an attempt that asks; false = it is over, or runs elsewhere.
func attempt(d *command.Decider, id string, started uint64, node string) (a asked, is bool) {
	t := d.State.Attempt(events.Ref(started))
	if t == nil || t.ID != events.TaskID(id) || t.Node != node {
		d.Stale++
		return a, false
	}
	a = asked{
		d:      d,
		t:      t,
		parent: t,
		number: 1,
	}
	if of, number := works.Of(d.State).WorkerOf(t.ID); of != nil {
		a.of, a.number, a.parent = of, number, d.State.Task(of.ID)
	}
	return a, true
}

func stale() command.Answer { return command.Answer{Code: command.AnswerStale} }

// bars says why no bucket of the work starts; "" = one may.
func (a *asked) bars() string {
	switch {
	case a.of == nil || a.parent == nil:
		return "the work is gone"
	case a.parent.Suspended:
		return "the work is suspended"
	case a.parent.Cancelled || a.t.Cancelled:
		return "the work is cancelled"
	case over(a.parent):
		return "the work has ended"
	}
	return spent(a.of, &a.parent.Kind.Policy)
}

// spent says which bucket of a work has cost as many attempts as the policy allows; "" = none has.
func spent(of *works.Work, p *events.Policy) string {
	if bucket, failed := of.MostTried(); int(failed) >= p.MaxAttempts {
		return "attempts on bucket " + strconv.FormatUint(bucket, 10) + " have failed too often"
	}
	if bucket, lost := of.MostLost(); int(lost) >= p.MaxLost {
		return "attempts on bucket " + strconv.FormatUint(bucket, 10) + " were lost too often"
	}
	return ""
}

// tell returns what the attempt does next, without a further bucket.
func (a *asked) tell() *moved {
	m := &moved{State: int64(Wait)}
	if why := a.bars(); why != "" {
		m.State, m.Why = int64(Stop), why
	}
	if a.of == nil { // nothing is left to do for a worker whose work is gone
		m.State = int64(Over)
		return m
	}
	m.Run, m.Partition = int64(a.of.Run), int64(a.of.Current)
	has := a.of.Has(a.number)
	part, _ := a.of.Part()
	switch {
	case m.State == int64(Stop):
	case has != nil && has.Attempt == a.t.Started:
		m.State, m.Bucket = int64(Go), has.Bucket
	case a.of.Over(), !a.of.Planned && a.number != 1: // what a worker reads of a run that was reset is void
		m.State = int64(Over)
	case part == nil:
		m.State, m.Partition = int64(Next), int64(a.of.Current+1)
	}
	return m
}

// Decide plans a run where none is under way.
func (c *Plan) Decide(d *command.Decider) command.Answer {
	a, is := attempt(d, c.Task, c.Started, c.Node)
	if !is {
		return stale()
	}
	if c.Parent != "" {
		if a.number == 1 { // the work is gone, or has never known this worker
			a.of = nil
		}
		return a.tell().answer()
	}
	if a.number != 1 {
		return command.Refused(command.AnswerState, "it is a worker of %s", a.of.ID)
	}
	if a.of != nil && a.of.Planned && !a.of.Finished {
		m := a.tell()
		m.Differs = a.of.Definition != c.Definition
		return m.answer()
	}
	partitions, err := c.partitions()
	if err != nil {
		return command.Refused(command.AnswerInvalid, "%v", invalid("partitions", err.Error()))
	}
	if refusal, refused := d.Grows(c.Size()); refused {
		return refusal
	}
	if problem := d.Unreadable(events.KindTokenMoved); problem != "" && slices.ContainsFunc(partitions, isStream) {
		return command.Refused(command.AnswerState, "%s", problem)
	}
	if refusal, refused := full(works.Of(d.State), a.of, len(c.Partitions)); refused {
		return refusal
	}
	d.Emit(a.t, &events.WorkPlanned{
		Run:        nextRun(a.of),
		Definition: c.Definition,
		Partitions: partitions,
	})
	a.of = works.Of(d.State).Work(a.t.ID)
	return a.tell().answer()
}

func isStream(p events.WorkPartition) bool { return p.Form != events.FormBuckets }

// nextRun returns the number of a further run of a work. It may be below that of the task: a run of the work goes on
// over a retry of the task.
func nextRun(of *works.Work) uint32 {
	if of == nil {
		return 1
	}
	return of.Run + 1
}

// full refuses a plan of so many bytes where a shard has too many works, or too large ones.
func full(all *works.Works, of *works.Work, bytes int) (refusal command.Answer, refused bool) {
	switch {
	case all.Bytes()+int64(bytes) > works.MaxBytes:
		return command.Overload("works of the shard would take more than %d bytes", works.MaxBytes), true
	case of == nil && all.Full():
		const say = "shard holds %d works that have not ended, or have a token or holds: delete some"
		return command.Overload(say, works.MaxWorks), true
	}
	return command.Answer{}, false
}

// Decide begins the partition, unless it has begun.
func (c *Begin) Decide(d *command.Decider) command.Answer {
	a, is := attempt(d, c.Task, c.Started, c.Node)
	if !is {
		return stale()
	}
	m := a.tell()
	if a.number != 1 {
		return command.Refused(command.AnswerState, "a worker begins no partition")
	}
	if m.State != int64(Next) || m.Partition != c.Partition {
		return m.answer()
	}
	parent := d.Emit(a.parent, &events.PartitionStarted{
		Partition: uint32(c.Partition),
		Counted:   c.Counted,
		Expected:  c.Expected,
	})
	endPartition(d, parent, a.of)
	return a.tell().answer()
}

// endPartition ends the partition under way if all of its buckets are done.
func endPartition(d *command.Decider, parent *projection.Task, of *works.Work) {
	if p, _ := of.Part(); p != nil && p.Done == p.Total {
		d.Emit(parent, &events.PartitionEnded{Partition: uint32(of.Current)})
	}
}

// Decide records what became of the attempt's bucket, and gives it the free one with the least number.
func (c *Bucket) Decide(d *command.Decider) command.Answer {
	a, is := attempt(d, c.Task, c.Started, c.Node)
	if !is {
		return stale()
	}
	if a.of == nil || a.parent == nil {
		return a.tell().answer()
	}
	if c.Run != 0 && c.Run != int64(a.of.Run) {
		d.Stale++
		return stale()
	}
	errs, err := c.errors()
	if err != nil {
		return command.Refused(command.AnswerInvalid, "%v", invalid("errors", err.Error()))
	}
	move := &events.BucketsMoved{Worker: a.number, Attempt: a.t.Started}
	has := a.of.Has(a.number)
	if has != nil && has.Attempt != a.t.Started { // of an attempt whose end could not return it
		if d.Emit(a.parent, back(has, events.ReturnedGivenUp)); d.Err != nil {
			return command.Answer{}
		}
		has = nil
	}
	switch gone := max(c.Ended, c.Returned); {
	case gone != 0 && (has == nil || has.Bucket != gone):
		d.Stale++
		return stale()
	case c.Ended != 0:
		move.Ended, move.Items = c.Ended, c.items()
		if a.of.ErrorBytes+works.TextBytes(errs) <= works.MaxErrorBytes {
			move.Errors = errs
		}
	case c.Returned != 0:
		move.Returned, move.Cause = c.Returned, events.ReturnedByWorker
	case has != nil: // the answer that gave it was lost
		return a.tell().answer()
	}
	if c.Want && a.bars() == "" {
		move.Started = a.next(move.Ended != 0)
	}
	if move.Ended != 0 || move.Returned != 0 || move.Started != 0 {
		a.parent = d.Emit(a.parent, move)
		endPartition(d, a.parent, a.of)
	}
	return a.tell().answer()
}

// next returns the bucket that the attempt gets; 0 = none. leaves tells that it has one, which has ended.
func (a *asked) next(leaves bool) uint64 {
	_, plan := a.of.Part()
	free, least := a.of.Free()
	others := len(a.of.Open())
	if leaves {
		others--
	}
	if free == 0 || others >= int(plan.Workers) {
		return 0
	}
	return least
}

// back returns the event by which an open bucket is free again.
func back(o *works.Open, cause events.ReturnCause) *events.BucketsMoved {
	return &events.BucketsMoved{
		Worker:   o.Worker,
		Attempt:  o.Attempt,
		Returned: o.Bucket,
		Cause:    cause,
	}
}

// Decide grants the items that were granted before, and further ones up to the limit of the counter. The one behind
// the limit fails the work. A stream is failed by its own attempt, once that has told how far it is.
func (c *Permits) Decide(d *command.Decider) command.Answer {
	a, is := attempt(d, c.Task, c.Started, c.Node)
	if !is {
		return stale()
	}
	m := a.tell()
	if m.State != int64(Go) {
		return m.answer()
	}
	part, plan := a.of.Part()
	counter := a.of.Counter(c.Counter)
	if counter < 0 {
		return command.Refused(command.AnswerInvalid, "%v", invalid("counter", "partition "+plan.ID+" has no such threshold"))
	}
	granted := &events.PermitsGranted{
		Counter:  c.Counter,
		Bucket:   m.Bucket,
		Simulate: plan.Mode == events.ModeSimulate,
	}
	left := plan.Thresholds[counter].Limit - part.Counters[counter]
	m.Granted = make([]byte, (len(c.Items)+7)/8)
	fresh := map[uint64]bool{}
	trips := false
	for i, item := range c.Items {
		if !fresh[item] && !a.of.Permitted(counter, m.Bucket, item) {
			if uint64(len(granted.Items)) >= left {
				trips = true
				continue
			}
			fresh[item] = true
			granted.Items = append(granted.Items, item)
		}
		m.Granted[i/8] |= 1 << (i % 8)
	}
	if len(granted.Items) > 0 {
		a.parent = d.Emit(a.parent, granted)
	}
	if trips && plan.Form == events.FormBuckets {
		failWork(d, a.of, tripped(plan, counter, c.Reason))
		m.State, m.Why = int64(Stop), "threshold "+c.Counter
	}
	return m.answer()
}

// tripped returns the failure of a work whose counter would exceed its limit.
func tripped(plan *events.WorkPartition, counter int, reason string) events.Error {
	t := plan.Thresholds[counter]
	limit := strconv.FormatUint(t.Limit, 10)
	if rule, is := strings.CutPrefix(t.Counter, workledger.FailuresPrefix); is {
		return events.Error{
			Code:       events.CodeStopped,
			Message:    "partition " + plan.ID + ": rule " + rule + " stops the work: " + reason,
			Properties: map[string]string{"partition": plan.ID, "rule": rule},
		}
	}
	return events.Error{
		Code:       events.CodeThreshold,
		Message:    "partition " + plan.ID + ": " + t.Counter + " has reached its limit of " + limit,
		Properties: map[string]string{"partition": plan.ID, "counter": t.Counter, "limit": limit},
	}
}

// Decide forgets what the run has done, or sets a token, unless buckets are open or the work's task runs.
func (c *Reset) Decide(d *command.Decider) command.Answer {
	of, t, refusal := operated(d, c.Task, c.Seen)
	if of == nil {
		if c.What == int64(events.ResetToken) && refusal.Code == command.AnswerNotFound &&
			d.State.Task(events.TaskID(c.Task)) != nil {
			const say = "cannot set the token of a work that is not planned: its first attempt does that, behind which it can be suspended"
			return command.Refused(command.AnswerState, say)
		}
		return refusal
	}
	switch {
	case t.OnNode() || len(of.Open()) > 0:
		return command.Refused(command.AnswerState, "cannot reset a work that runs: it has %s open; suspend it first",
			counted(uint64(len(of.Open())), "bucket"))
	case c.What != int64(events.ResetThresholds) && workerRuns(d, of): // it may have read the plan, and asks for a bucket next
		return command.Refused(command.AnswerState, "cannot reset a work that runs: a worker of it does; suspend it first")
	case c.What == int64(events.ResetToken):
		return c.setToken(d, of, t)
	case !of.Planned:
		return command.Answer{Life: t.Created}
	}
	what := events.ResetScope(c.What)
	if what == events.ResetThresholds { // without their permits, the same items would take all of the limit again
		what = events.ResetCounts
	}
	d.Emit(t, &events.WorkReset{What: what})
	return command.Answer{Life: t.Created}
}

// setToken sets the token of a stream that cannot go on meanwhile.
func (c *Reset) setToken(d *command.Decider, of *works.Work, t *projection.Task) command.Answer {
	switch problem := d.Unreadable(events.KindTokenMoved); {
	case problem != "":
		return command.Refused(command.AnswerState, "%s", problem)
	case !of.Streams():
		return command.Refused(command.AnswerState, "cannot set the token of a work that is no stream")
	case of.Pushed():
		return command.Refused(command.AnswerState,
			"cannot set the token of a stream with a source, which knows itself what is acknowledged")
	case !t.Suspended && !t.Final():
		return command.Refused(command.AnswerState, "cannot set the token of a stream that may go on: suspend it before")
	}
	d.Emit(t, &events.WorkReset{What: events.ResetToken, Token: string(c.Token), Reason: c.Reason})
	return command.Answer{Life: t.Created}
}

// workerRuns reports whether an attempt of a worker goes on.
func workerRuns(d *command.Decider, of *works.Work) bool {
	for _, w := range of.Workers() {
		if t := d.State.Task(w.ID); w.Active && t != nil && t.Created == w.Life && t.OnNode() {
			return true
		}
	}
	return false
}

// Decide plans the run, and has the work's task run again.
func (c *Rerun) Decide(d *command.Decider) command.Answer {
	of, t, refusal := operated(d, c.Task, c.Seen)
	if of == nil {
		return refusal
	}
	switch {
	case !t.Final() && !t.RunEnded || len(of.Open()) > 0:
		return command.Refused(command.AnswerState, "cannot run failed buckets again of a work that has not ended")
	case !of.Planned:
		const say = "cannot run failed buckets again: the run was reset, and retry plans another one"
		return command.Refused(command.AnswerState, say)
	case !of.Over():
		return command.Refused(command.AnswerState,
			"cannot run failed buckets again before all buckets were run: retry goes on")
	case of.FailedBuckets() == 0:
		return command.Refused(command.AnswerState, "no bucket had failed items")
	}
	t = d.Emit(t, &events.WorkPlanned{Run: nextRun(of), Failed: true})
	d.Emit(t, &events.Rescheduled{At: d.Now})
	return command.Answer{Life: t.Created, Run: t.Runs + 1}
}

// operated returns the work that an operator names, or why it is left as it is.
func operated(d *command.Decider, id string, seen uint64) (*works.Work, *projection.Task, command.Answer) {
	t := d.State.Task(events.TaskID(id))
	of := works.Of(d.State).Work(events.TaskID(id))
	switch {
	case t == nil || of == nil:
		return nil, nil, command.Answer{Code: command.AnswerNotFound}
	case seen != 0 && t.Last != events.Ref(seen):
		return nil, nil, command.Answer{Code: command.AnswerChanged}
	}
	if refusal, refused := d.Grows(0); refused {
		return nil, nil, refusal
	}
	return of, t, command.Answer{}
}
