package engine

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/projection"
)

// maxLiveTasks bounds the unfinished tasks of a shard, and so its memory.
const maxLiveTasks = 1_000_000

// leastRepeat is the least time from the start of an attempt to the next one that the behavior asks for, by a repetition, a snooze
// or a retry after a wait or at a time: a behavior that asks for it at once, again and again, shall not fill the journal. A retry
// by policy is not held to it: its back-off has full jitter, and its attempts are counted.
const leastRepeat = 50 * time.Millisecond

// decider decides the commands of one entry, each against the state as the events before it in the entry left it. It is
// pure: the same state, commands and time lead to the same events. It runs no user code.
type decider struct {
	state     *projection.Shard
	entry     *events.Builder
	now       events.Millis
	wall      events.Millis // of the owner's clock; entry time may be ahead of it
	origin    int           // of the batch being decided; 0 = the owner itself
	brake     string        // why no submit adds anything; "" = submits do
	storeFull bool          // the store is known to be full: nothing can be recorded
	drop      bool          // what the journal alone holds may be dropped any time, and the parameters of a final task with it

	liveLimit int64                                      // bytes of live tasks; 0 = any
	note      func(t *projection.Task, ev *events.Event) // told of every event and the task after it
	err       error                                      // of the first event that the fold refused: a bug; nothing of the entry may be used
}

// emit records an event of a task, nil for Created, and returns the task as it is after it.
func (d *decider) emit(id events.TaskID, t *projection.Task, requestID string, body events.Body) *projection.Task {
	ev := events.Event{Task: id, Seq: 1, Origin: d.origin, RequestID: requestID, Body: body}
	if t != nil {
		ev.Seq, ev.Prev = t.Seq+1, t.Last
	}
	if d.err != nil {
		return t
	}
	added := d.entry.Add(ev)
	after, err := d.state.Apply(t, added)
	if err != nil {
		d.err = err
		return t
	}
	if after == nil { // Deleted
		d.note(t, added)
		return nil
	}
	d.note(after, added)
	return after
}

// decide answers one command of laneSubmit or laneWork.
func (d *decider) decide(c command) answer {
	switch c.(type) {
	case *operateCommand, *pauseCommand, *mergeCommand:
		if d.storeFull { // what needs an entry would wait for room, and hold up all behind it
			return d.noSpace()
		}
	}
	switch c := c.(type) {
	case *submitCommand:
		return d.submit(c)
	case *mergeCommand:
		return d.merge(c)
	case *completeCommand:
		return d.complete(c)
	case *progressCommand:
		return d.progress(c)
	case *operateCommand:
		return d.operate(c)
	case *pauseCommand:
		return d.pause(c)
	case *rollCallCommand:
		return answer{} // the owner decides it: it depends on when its ownership began
	}
	return refused(answerInvalid, "command %d is not for this lane", c.op())
}

func (d *decider) submit(c *submitCommand) answer {
	if !c.checked {
		if err := c.check(); err != nil {
			return refused(answerInvalid, "%v", err)
		}
	}
	t := d.state.Task(c.Task)
	switch {
	case t == nil:
		if full, refused := d.noRoom(true, len(c.Params)); refused {
			return full
		}
		t = d.emit(c.Task, nil, c.RequestID, d.entry.Created(events.Created{Behavior: c.Behavior, Policy: c.Policy, Priority: c.Priority,
			NotBefore: max(c.NotBefore, d.now), Params: c.Params}))
		if t == nil {
			return answer{}
		}
		return answer{life: t.Created, run: 1}
	case t.Kind.Behavior != c.Behavior:
		return refused(answerState, "exists with behavior %s, not %s", t.Kind.Behavior, c.Behavior)
	case t.Requested(c.RequestID):
		return joined(t)
	case t.Final() && c.Policy.Existing == events.ReturnRecorded:
		return joined(t)
	case d.forgot(t):
		return d.rerun(t, c, false)
	case c.Merges:
		return answer{code: answerMerge, joined: true}
	}
	if t.Final() {
		if full, refused := d.noRoom(true, len(t.Params)); refused {
			return full
		}
	}
	return d.join(t, c)
}

// noRoom refuses a submit that asks for a live task more, or adds bytes of parameters to one, where there is no room for them.
// Operators' commands are not held to it: they have to work in a shard that is full.
func (d *decider) noRoom(task bool, adds int) (full answer, refused bool) {
	with := d.state.LiveBytes() + int64(adds)
	switch {
	case d.brake != "":
		return overload("%s", d.brake), true
	case task && d.state.Live() >= maxLiveTasks:
		return overload("shard holds %d unfinished tasks", maxLiveTasks), true
	case d.liveLimit > 0 && with >= d.liveLimit:
		return overload("tasks of the shard would take %d bytes, the store has room for %d", with, d.liveLimit), true
	}
	return answer{}, false
}

// forgot reports that a task has ended and nothing keeps its parameters for a further run.
func (d *decider) forgot(t *projection.Task) bool { return d.drop && t.Final() && t.ParamsElided }

// rerun gives a task that has ended a new run with parameters of its own.
func (d *decider) rerun(t *projection.Task, c *submitCommand, operator bool) answer {
	if full, refused := d.noRoom(true, len(c.Params)); refused && !operator {
		return full
	}
	t = d.emit(t.ID, t, c.RequestID, &events.Rescheduled{At: max(c.NotBefore, d.now)})
	t = d.emit(t.ID, t, "", &events.Merged{Params: c.Params})
	return joined(t)
}

// noSpace refuses what cannot be recorded.
func (d *decider) noSpace() answer { return overload("%s", cmp.Or(d.brake, fullStore)) }

// overload refuses a submit for now.
func overload(format string, args ...any) answer {
	a := refused(answerOverload, format, args...)
	a.number = 1000
	return a
}

// join lets a submit share an existing task with its stored parameters.
func (d *decider) join(t *projection.Task, c *submitCommand) answer {
	at := max(c.NotBefore, d.now)
	sooner := at < t.Due && (t.Status == projection.Created || c.RunNow && t.Status != projection.Running)
	switch {
	case (t.Final() || sooner) && d.storeFull:
		return d.noSpace()
	case t.Final(), sooner: // of two schedules the earlier one holds
		t = d.emit(t.ID, t, c.RequestID, &events.Rescheduled{At: at})
	}
	return joined(t)
}

// joined answers a submit that shares an existing task: with the outcome of the run that is due or under way, or with
// the one recorded last.
func joined(t *projection.Task) answer {
	a := answer{joined: true, life: t.Created, run: t.Runs}
	if !t.Final() {
		a.run++
	}
	if t.Rerun { // a further run is promised, and parameters of this task are for that one
		a.run++
	}
	if a.run > t.Runs {
		a.number = int64(t.Last)
	}
	return a
}

// check returns an *InvalidError or a *LimitError.
func (c *submitCommand) check() error {
	if c.Task == events.Settings {
		return &InvalidError{Field: "id", Problem: "cluster/settings is reserved"}
	}
	if err := c.Task.Validate(); err != nil {
		return &InvalidError{Field: "id", Problem: err.Error()}
	}
	if err := events.ValidateBehavior(c.Behavior); err != nil {
		return &InvalidError{Field: "behavior", Problem: err.Error()}
	}
	if !c.Policy.IsComplete() {
		return &InvalidError{Field: "policy", Problem: "a field is missing or out of range"}
	}
	switch {
	case len(c.Params) > events.MaxPayloadBytes+1:
		return &LimitError{Field: "parameters", Limit: events.MaxPayloadBytes, Got: int64(len(c.Params)) - 1}
	case len(c.RequestID) > events.MaxNameBytes:
		return &LimitError{Field: "request id", Limit: events.MaxNameBytes, Got: int64(len(c.RequestID))}
	case c.Priority < 0 || c.Priority > events.MaxPriority:
		return &LimitError{Field: "priority", Limit: events.MaxPriority, Got: c.Priority}
	}
	return nil
}

func (d *decider) merge(c *mergeCommand) answer {
	if err := c.Submit.check(); err != nil {
		return refused(answerInvalid, "%v", err)
	}
	t := d.state.Task(c.Submit.Task)
	if t == nil || t.Created != c.Life || t.Seq != c.Seq {
		return answer{code: answerChanged}
	}
	switch {
	case t.Requested(c.Submit.RequestID): // by a copy of the submit
		return joined(t)
	case t.Final() && !c.Operator && c.Submit.Policy.Existing == events.ReturnRecorded: // the run has ended meanwhile
		return joined(t)
	case d.forgot(t):
		return d.rerun(t, &c.Submit, c.Operator)
	}
	changes := t.ParamsElided || !bytes.Equal(t.Params, c.Submit.Params)
	adds := len(c.Submit.Params)
	if !t.Final() { // the limit counts the parameters of live tasks, and so these already
		adds -= len(t.Params)
	}
	if !c.Operator && (t.Final() || adds > 0 || changes && d.brake != "") { // whatever is merged takes its bytes in the journal
		if full, refused := d.noRoom(t.Final(), adds); refused {
			return full
		}
	}
	if changes {
		t = d.emit(t.ID, t, c.Submit.RequestID, &events.Merged{Params: c.Submit.Params})
	}
	return d.join(t, &c.Submit)
}

// complete records how an attempt ended, if it is still the task's attempt: the first committed outcome wins.
func (d *decider) complete(c *completeCommand) answer {
	t := d.state.Task(c.Task)
	if t == nil || !t.OnNode() || t.Started != c.Started || t.Node != c.Node {
		return answer{code: answerStale}
	}
	switch c.How {
	case succeeded:
		d.succeed(t, c)
	case failed:
		d.fail(t, *c.Error, d.nextTry(t, c))
	case snoozed:
		d.giveBack(t, &events.Snoozed{Until: d.waited(t, c)})
	case released:
		d.giveBack(t, &events.Released{Until: d.now})
	}
	return answer{}
}

func (d *decider) succeed(t *projection.Task, c *completeCommand) {
	if len(c.Result) > events.MaxPayloadBytes+1 {
		d.fail(t, events.Error{Code: events.CodeRejected, Message: (&LimitError{Field: "result", Limit: events.MaxPayloadBytes,
			Got: int64(len(c.Result)) - 1}).Error()}, 0)
		return
	}
	next := d.chosen(t, c)
	rerun := t.Rerun && !t.Cancelled
	if t.Cancelled {
		next = 0
	}
	t = d.emit(t.ID, t, "", d.entry.Succeeded(events.Succeeded{Result: c.Result, Next: next, Run: t.Runs + 1}))
	if rerun {
		d.emit(t.ID, t, "", &events.Rescheduled{At: d.now})
	}
}

// fail ends an attempt, or a waiting task's run. What was cancelled ends as cancelled, whatever else went wrong.
func (d *decider) fail(t *projection.Task, e events.Error, next events.Millis) {
	rerun := t.Rerun && !t.Cancelled
	if t.Cancelled && e.Code != events.CodeCancelled {
		e = events.Error{Code: events.CodeCancelled, Message: "cancelled; the attempt ended with " + e.Code + ": " + e.Message}
	}
	body := &events.Failed{Error: e.Fit(), Next: next}
	if t.Cancelled {
		body.Next = 0
	}
	if body.Next == 0 {
		body.Run = t.Runs + 1
	}
	t = d.emit(t.ID, t, "", body)
	if rerun && body.Next == 0 {
		d.emit(t.ID, t, "", &events.Rescheduled{At: d.now})
	}
}

// chosen is when a task starts again as its behavior chose; 0 = never.
func (d *decider) chosen(t *projection.Task, c *completeCommand) events.Millis {
	if c.Next == 0 {
		return 0
	}
	return max(c.Next, d.waited(t, c))
}

// waited is when a completion's wait is over. It counts from now, not from the clock of the worker, which may be wrong.
func (d *decider) waited(t *projection.Task, c *completeCommand) events.Millis {
	return max(d.now.Add(max(c.Wait, 0)), t.StartedAt.Add(leastRepeat))
}

// nextTry is when a failed attempt is tried again; 0 = never.
func (d *decider) nextTry(t *projection.Task, c *completeCommand) events.Millis {
	policy, failures := &t.Kind.Policy, int(t.Failures)+1
	switch {
	case !c.ByPolicy && c.Next == 0, c.ByPolicy && failures >= policy.MaxAttempts:
		return 0
	case !c.ByPolicy:
		return d.chosen(t, c)
	}
	return d.now.Add(policy.Backoff.Delay(failures, float64(c.Random)/(1<<32)))
}

// giveBack lets a task wait that ran without coming to an end; one that was cancelled ends instead.
func (d *decider) giveBack(t *projection.Task, body events.Body) *projection.Task {
	cancelled := t.Cancelled
	t = d.emit(t.ID, t, "", body)
	if cancelled && d.err == nil {
		d.fail(t, events.Error{Code: events.CodeCancelled, Message: "cancelled"}, 0)
	}
	return t
}

// lose gives up the attempts of a node whose session has ended; false when the entry is full before all are given up.
func (d *decider) lose(node string) bool {
	for _, t := range d.runningOn(node) {
		if d.full() {
			return false
		}
		t = d.giveBack(t, &events.Lost{Until: d.now.Add(t.Kind.Policy.LostDelay)})
		if d.err == nil && t.Phase() == projection.Waiting && int(t.Lost) >= t.Kind.Policy.MaxLost {
			d.fail(t, events.Error{Code: events.CodeLost, Message: "the nodes that ran it were lost too often"}, 0)
		}
	}
	return true
}

// full reports that the entry takes no further command.
func (d *decider) full() bool { return d.entry.Size() >= events.SealEntryBytes }

// runningOn returns the tasks on a node in the order they started.
func (d *decider) runningOn(node string) []*projection.Task {
	return slices.SortedFunc(d.state.Running(node), byStart)
}

func byStart(a, b *projection.Task) int { return cmp.Compare(a.Started, b.Started) }

// rollCall compares what a node runs with what the state says it runs. It releases the attempts that the node does not
// know although their assignment must have reached it: those that answered an offer which the node counts as answered,
// and those that an owner before this one started on its own node (began is the first entry of this ownership). Attempts
// that the roll call does not cover are left alone, and what a full entry leaves over is for the next one. It returns the
// node's attempts that are over or cancelled.
func (d *decider) rollCall(c *rollCallCommand, self string, began uint64) (over []attemptName, all bool) {
	present := make(map[attemptName]bool, len(c.Attempts))
	for _, a := range c.Attempts {
		present[a] = true
		if t := d.state.Task(a.Task); t == nil || t.Started != a.Started || t.Node != c.Node || t.Cancelled {
			over = append(over, a)
		}
	}
	var missing []*projection.Task
	for t := range d.state.Running(c.Node) {
		answered := t.Offer > 0 && t.Offer <= c.Answered
		earlier := t.Offer == 0 && (c.Node != self || t.Started.Entry() < began)
		if (answered || earlier) && c.covers(t.Started) && !present[attemptName{t.ID, t.Started}] {
			missing = append(missing, t)
		}
	}
	slices.SortFunc(missing, byStart)
	for _, t := range missing {
		if d.full() {
			return over, false
		}
		d.giveBack(t, &events.Released{Until: d.now})
	}
	return over, true
}

func (d *decider) progress(c *progressCommand) answer {
	t := d.state.Task(c.Task)
	if t == nil || !t.OnNode() || t.Started != c.Started || t.Node != c.Node {
		return answer{code: answerStale}
	}
	report := c.Progress // the command belongs to its sender, which may send it again
	report.Note = report.Note[:min(len(report.Note), events.MaxNameBytes)]
	d.emit(t.ID, t, "", &report)
	return answer{}
}

func (d *decider) operate(c *operateCommand) answer {
	t := d.state.Task(c.Task)
	if t == nil {
		return answer{code: answerNotFound}
	}
	if c.Task == events.Settings {
		return refused(answerState, "the settings of the cluster are no task to %s", c.Do)
	}
	if c.Do == doRetry && d.forgot(t) {
		return answer{code: answerMerge}
	}
	body, ok := d.operation(t, c)
	if !ok {
		return refused(answerState, "cannot %s while %s", c.Do, describe(t))
	}
	if body != nil {
		d.emit(t.ID, t, "", body)
	}
	return answer{life: t.Created}
}

// operation returns the event of what an operator asks; none when it is so already; false when the state forbids it.
func (d *decider) operation(t *projection.Task, c *operateCommand) (events.Body, bool) {
	waits := t.Phase() == projection.IsCreated || t.Phase() == projection.Waiting
	switch c.Do {
	case doCancel:
		switch {
		case waits:
			return &events.Failed{Error: events.Error{Code: events.CodeCancelled, Message: cmp.Or(c.Reason, "cancelled")}.Fit(), Run: t.Runs + 1}, true
		case t.OnNode() && t.Cancelled:
			return nil, true
		case t.OnNode():
			return &events.CancelRequested{Reason: c.Reason[:min(len(c.Reason), events.MaxNameBytes)]}, true
		}
		return &events.Rescheduled{}, !t.Final()
	case doRunNow:
		if t.OnNode() || t.Final() {
			return nil, false
		}
		return d.reschedule(t), true
	case doRetry:
		if t.Status != projection.Success && t.Status != projection.Failure {
			return nil, false
		}
		return d.reschedule(t), true
	case doSuspend:
		return unless(t.Suspended, &events.Suspended{}), !t.Final()
	case doResume:
		return unless(!t.Suspended, &events.Resumed{}), true
	}
	return &events.Deleted{}, t.Status != projection.Running
}

func (d *decider) reschedule(t *projection.Task) events.Body {
	return unless(t.Due != 0 && t.Due <= d.now, &events.Rescheduled{At: d.now})
}

func unless(done bool, body events.Body) events.Body {
	if done {
		return nil
	}
	return body
}

func describe(t *projection.Task) string {
	if t.Final() {
		return t.Phase().String() + ", final"
	}
	return t.Phase().String()
}

// start gives a ready task to a node; offer 0 is the owner's own.
func (d *decider) start(t *projection.Task, node string, offer uint64, lease time.Duration) *projection.Task {
	origin := d.origin
	d.origin = 0
	defer func() { d.origin = origin }()
	return d.emit(t.ID, t, "", d.entry.Started(events.Started{Node: node, Attempt: t.Attempt + 1, Offer: offer, Lease: events.Millis(lease.Milliseconds())}))
}
