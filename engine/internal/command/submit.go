package command

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/projection/requests"
	"taskledger/store"
	"taskledger/task"
)

// Submit asks for a task.
type Submit struct {
	Task      events.TaskID
	Behavior  string
	Policy    events.Policy // complete
	Priority  int64
	NotBefore events.Millis // 0 = now
	Delay     time.Duration // from the decision to the first attempt at least; of it and NotBefore the later one counts
	Params    events.Payload
	RequestID string // made by events.Request.ID or events.RequestsID; "" = none
	Merges    bool   // the submitter can combine parameters, and must be asked when the task exists
	RunNow    bool   // makes a run that waits due, as task.Plan.RunNow says
	Tags      []string
	Deadline  events.Millis // of the run that it begins; 0 = none

	Checked bool // in this process, which is as good as by the owner; never sent
}

func (*Submit) Op() uint64 { return opSubmit }

func (c *Submit) Shard(count int) int { return c.Task.Shard(count) }

func (c *Submit) Size() int {
	n := commandBytes + len(c.Task) + len(c.Behavior) + len(c.RequestID) + len(c.Params)
	if c.describes() {
		n += commandBytes/2 + len(c.Task)
		for _, tag := range c.Tags {
			n += 2 + len(tag)
		}
	}
	if c.Deadline != 0 && len(c.Tags) == 0 { // those that the task has are recorded again
		n += events.MaxTags * (2 + events.MaxTagBytes)
	}
	if c.Policy.Existing != events.ReturnRecorded { // the task may have ended and be run again: two events
		n += commandBytes/2 + len(c.Task)
	}
	return n
}

// Of a submit that was checked in this process only the parameters can be others since: a Merge takes it over.
func (c *Submit) Limits() error {
	if c.Checked {
		return limitPayload("parameters", c.Params)
	}
	return c.Check()
}

func (c *Submit) encode(w *wire.Writer) {
	fields := 10
	if c.describes() {
		fields = 12
	}
	w.Array(fields)
	w.Text(string(c.Task))
	w.Text(c.Behavior)
	c.Policy.Encode(w)
	w.Int(c.Priority)
	w.Int(int64(c.NotBefore))
	w.Int(c.Delay.Milliseconds())
	w.Bytes(c.Params)
	w.Text(c.RequestID)
	w.Bool(c.Merges)
	w.Bool(c.RunNow)
	if c.describes() {
		events.EncodeTags(w, c.Tags)
		w.Int(int64(c.Deadline))
	}
}

func (c *Submit) decode(r *wire.Reader) {
	fields := r.Array()
	switch {
	case fields > 12:
		r.Tail(fields, 12)
	case fields == 11:
		r.Tail(fields, 10)
	case fields < 10:
		r.Fail("submit of %d values, want 10 or 12", fields)
	}
	c.Task, c.Behavior = events.TaskID(r.Text()), r.Text()
	c.Policy.Decode(r)
	c.Priority, c.NotBefore, c.Delay = r.Int(), events.Millis(r.Int()), events.Milliseconds(r.Int())
	c.Params, c.RequestID, c.Merges, c.RunNow = r.Bytes(), r.Text(), r.Bool(), r.Bool()
	if fields == 12 {
		c.Tags, c.Deadline = events.DecodeTags(r), events.Millis(r.Int())
	}
}

// describes reports whether the submit gives its task tags, or its run a deadline.
func (c *Submit) describes() bool { return len(c.Tags) > 0 || c.Deadline != 0 }

// due returns when the task may start at the earliest. A delay counts from now, not by the clock of the submitter,
// which may be wrong.
func (c *Submit) due(now events.Millis) events.Millis { return max(c.NotBefore, now.Add(c.Delay)) }

func (c *Submit) Decide(d *Decider) Answer {
	if refusal, refused := d.unreadable(c); refused {
		return refusal
	}
	t := d.State.Task(c.Task)
	switch {
	case t == nil && d.usedByAnother(c):
		return otherRequest(c.RequestID)
	case t == nil:
		if refusal, refused := d.late(c); refused {
			return refusal
		}
		if refusal, refused := d.noRoom(true, len(c.Params)); refused {
			return refusal
		}
		t = d.emit(c.Task, nil, c.RequestID, d.Entry.Created(events.Created{
			Behavior:  c.Behavior,
			Policy:    c.Policy,
			Priority:  c.Priority,
			NotBefore: c.due(d.Now),
			Params:    c.Params,
		}))
		if t == nil {
			return Answer{}
		}
		d.describe(t, c)
		return Answer{Life: t.Created, Run: 1}
	case t.Run != 0:
		return ofSchedule(t)
	case made(d, t):
		return madeFor(t)
	case t.Kind.Behavior != c.Behavior:
		return otherBehavior(t, c)
	case t.Requests.Of(c.RequestID) != nil:
		return repeated(t, t.Requests.Of(c.RequestID))
	case t.Requests.Another(c.RequestID):
		return otherRequest(c.RequestID)
	case t.Final() && c.Policy.Existing == events.ReturnRecorded:
		return d.recorded(t, c)
	}
	if refusal, refused := d.late(c); refused && t.Final() {
		return refusal
	}
	switch {
	case d.paramsGone(t):
		return d.rerun(t, c, false)
	case c.Merges:
		return Answer{Code: AnswerMerge, Joined: true}
	}
	if t.Final() {
		if refusal, refused := d.noRoom(true, len(t.Params)); refused {
			return refusal
		}
	}
	return d.join(t, c)
}

// ofSchedule refuses a submit of the run of a schedule, which its id does not show to be one.
func ofSchedule(t *projection.Task) Answer {
	const problem = "task %.128q is a run of a schedule, which no submit may share"
	return Refused(AnswerInvalid, "%v", &store.InvalidError{Field: "id", Problem: fmt.Sprintf(problem, t.ID)})
}

// made reports whether a task was made for another one.
func made(d *Decider, t *projection.Task) bool {
	lead, _ := d.State.Crew().MadeFor(t.ID)
	return lead != ""
}

// madeFor refuses a submit of a task that was made for another one.
func madeFor(t *projection.Task) Answer {
	const problem = "task %.128q is a worker of a work, or has changes of a stream, which no submit may share"
	return Refused(AnswerInvalid, "%v", &store.InvalidError{Field: "id", Problem: fmt.Sprintf(problem, t.ID)})
}

func otherBehavior(t *projection.Task, c *Submit) Answer {
	return Refused(AnswerState, "exists with behavior %s, not %s", t.Kind.Behavior, c.Behavior)
}

// usedByAnother reports whether another request has used the key of a submit: a request of a single task the key of
// a request of many, the reverse, or another request of many. Both kinds derive the ids of their tasks from the
// key: the id of the single task is the affinity of the many. Of the many only the first one is checked; if it was
// refused for lack of room, or deleted, another request may make it. Tasks that callers named themselves belong to
// no request: within each the key counts alone.
func (d *Decider) usedByAnother(c *Submit) bool {
	if c.RequestID == "" {
		return false
	}
	id, derives := events.DerivedFrom(c.Task)
	if !derives {
		return false
	}
	for _, t := range [...]*projection.Task{d.State.Task(id), d.State.Task(id + "/0")} {
		if t != nil && t.Requests.Another(c.RequestID) &&
			events.TaskOfRequest(t.Kind.Creator, t.Kind.Behavior, events.RequestKey(c.RequestID)) == id {
			return true
		}
	}
	return false
}

// paramsGone reports that a task has ended and nothing retains its parameters for a further run.
func (d *Decider) paramsGone(t *projection.Task) bool {
	return d.ParamsMayGo && t.Final() && t.ParamsElided
}

// requestsFull reports whether a task remembers so many late requests that no other one may be recorded: one of them
// would be carried out again when it is repeated.
func (d *Decider) requestsFull(t *projection.Task) bool {
	return d.State.RequestsFull(t, d.Now)
}

// tooManyRequests refuses what must be recorded of a task that remembers as many late requests as it can.
func (d *Decider) tooManyRequests() Answer {
	d.Counts = true // else no time would pass in a shard where nothing else happens
	return Overload("the task remembers %d requests of the last %s, "+
		"and a run or parameters of another one must be remembered, too", requests.Max, projection.HoldRequests)
}

// rerun gives a task that has ended a new run with parameters of its own.
func (d *Decider) rerun(t *projection.Task, c *Submit, operator bool) Answer {
	if refusal, refused := d.noRoom(true, len(c.Params)); refused && !operator {
		return refusal
	}
	if c.RequestID != "" && d.requestsFull(t) {
		return d.tooManyRequests()
	}
	t = d.emit(t.ID, t, c.RequestID, &events.Rescheduled{At: c.due(d.Now), Terms: c.terms(t)})
	t = d.emit(t.ID, t, "", &events.Merged{Params: c.Params})
	return joined(d.describe(t, c))
}

// unreadable refuses tags and a deadline while a node is present that cannot read them.
func (d *Decider) unreadable(c *Submit) (refusal Answer, refused bool) {
	if !c.describes() {
		return Answer{}, false
	}
	why := d.forbids(events.KindDescribed)
	return Refused(AnswerState, "%s", why), why != ""
}

// late refuses a deadline that has passed, or comes before the run may start. Whoever repeats a request that has begun
// its run is not asked.
func (d *Decider) late(c *Submit) (refusal Answer, refused bool) {
	problem := ""
	switch starts := c.due(d.Now); {
	case c.Deadline == 0:
	case c.Deadline <= d.Now:
		problem = "want a time to come"
	case c.Deadline < starts:
		problem = "the task may not start before " + starts.Text()
	}
	err := &store.InvalidError{Field: "deadline", Problem: c.Deadline.Text() + ": " + problem}
	return Refused(AnswerInvalid, "%v", err), problem != ""
}

// describe records the tags and the deadline of a submit that begins a run. Without tags those stay that the task has.
func (d *Decider) describe(t *projection.Task, c *Submit) *projection.Task {
	tags := c.Tags
	if len(tags) == 0 {
		tags = t.Tags()
	}
	if c.Deadline == t.Deadline() && slices.Equal(tags, t.Tags()) {
		return t
	}
	return d.emit(t.ID, t, "", &events.Described{Tags: tags, Deadline: c.Deadline})
}

// terms returns the changes of the submit to the policy and the priority of a task that exists, nil for none: the
// terms of the last submit count.
func (c *Submit) terms(t *projection.Task) *events.Terms {
	if t.Priority == c.Priority && t.Kind.Policy == c.Policy {
		return nil
	}
	return &events.Terms{Policy: c.Policy, Priority: c.Priority}
}

// join lets a submit share an existing task with its stored parameters. It drops changes of the terms and of the
// remembered requests alone while there is no room for more, or while a node is present that cannot read Joined.
func (d *Decider) join(t *projection.Task, c *Submit) Answer {
	at, request := c.due(d.Now), c.RequestID
	if t.Requests.Of(request) == nil && d.requestsFull(t) { // what has only joined changes nothing when it comes again
		request = ""
	}
	sooner := at < t.Due && (t.Status == task.Created || c.RunNow && t.Status != task.Running)
	switch {
	case (t.Final() || sooner) && d.StoreFull:
		return d.noSpace()
	case t.Final() && request != c.RequestID:
		return d.tooManyRequests()
	case t.Final():
		t = d.emit(t.ID, t, request, &events.Rescheduled{At: at, Terms: c.terms(t)})
		t = d.describe(t, c)
	case sooner: // of two schedules the earlier one holds
		t = d.emit(t.ID, t, request, &events.Rescheduled{At: at, Terms: c.terms(t)})
	case (request != "" && t.Requests.Of(request) == nil || c.terms(t) != nil) && d.mayRecordJoin():
		t = d.emit(t.ID, t, request, &events.Joined{Terms: c.terms(t)})
	}
	return joined(t)
}

// mayRecordJoin reports whether there is room for the event of a submit that joins, and every present node can read
// it.
func (d *Decider) mayRecordJoin() bool {
	return !d.StoreFull && d.Refusal == "" && d.forbids(events.KindJoined) == ""
}

// recorded answers a submit with the outcome of a task that has ended for good, and records its request, for which
// the task is retained.
func (d *Decider) recorded(t *projection.Task, c *Submit) Answer {
	if _, full := d.noRoom(true, 0); full {
		return joined(t)
	}
	return d.Join(t, c.RequestID)
}

// joined answers a submit that shares an existing task: with the outcome of the run that is due or under way, or with
// the one recorded last.
func joined(t *projection.Task) Answer {
	a := Answer{Joined: true, Life: t.Created, Run: t.SharedRun()}
	if a.Run > t.Runs {
		a.Number = int64(t.Last)
	}
	return a
}

// reservedAffinities is the prefix of affinities that no submit may name.
const reservedAffinities = "store:"

// repeated answers a request that the task remembers with the run that was promised to it. A run that was cancelled
// before it began does not count.
func repeated(t *projection.Task, q *requests.Request) Answer {
	a := joined(t)
	a.Repeated = true
	if q.Run <= t.Runs {
		a.Run, a.Number = q.Run, 0
	}
	return a
}

// otherRequest refuses a request whose key another one has used.
func otherRequest(id string) Answer {
	return Refused(AnswerKeyUsed, "%.100q", events.RequestKey(id))
}

// Check returns a *store.InvalidError or a *task.LimitError.
func (c *Submit) Check() error {
	if prefix := events.ScheduledPrefix(c.Task); prefix != "" && c.Task.Validate() == nil {
		const problem = "name %.48q is reserved for schedules, as all that begin with %s behind a slash are"
		return &store.InvalidError{Field: "id", Problem: fmt.Sprintf(problem, c.Task, prefix)}
	}
	return c.checkTask()
}

// checkTask is Check, and allows the runs of schedules.
func (c *Submit) checkTask() error {
	switch {
	case c.Task == events.Settings:
		return &store.InvalidError{Field: "id", Problem: "cluster/settings is reserved"}
	case strings.HasPrefix(string(c.Task), reservedAffinities):
		const problem = "affinity %.48q is reserved, as all that begin with %s are"
		return &store.InvalidError{Field: "id", Problem: fmt.Sprintf(problem, c.Task.Affinity(), reservedAffinities)}
	}
	if err := c.Task.Validate(); err != nil {
		return &store.InvalidError{Field: "id", Problem: err.Error()}
	}
	if err := events.ValidateBehavior(c.Behavior); err != nil {
		return &store.InvalidError{Field: "behavior", Problem: strings.TrimPrefix(err.Error(), "behavior ")}
	}
	if !c.Policy.IsComplete() {
		if _, err := c.Policy.Complete(); err != nil {
			return &store.InvalidError{Field: "policy", Problem: strings.TrimPrefix(err.Error(), "policy: ")}
		}
		return &store.InvalidError{Field: "policy", Problem: "a field is missing"}
	}
	if err := limitTime("not before", c.NotBefore); err != nil {
		return err
	}
	if err := limitDelay(c.Delay); err != nil {
		return err
	}
	if err := limitTime("deadline", c.Deadline); err != nil {
		return err
	}
	if err := events.CheckTags(c.Tags); err != nil {
		return &store.InvalidError{Field: "tags", Problem: err.Error()}
	}
	if err := limitPayload("parameters", c.Params); err != nil {
		return err
	}
	switch {
	case len(c.RequestID) > events.MaxNameBytes:
		got := len(c.RequestID) - events.MaxNameBytes + events.MaxKeyBytes
		return &task.LimitError{Field: "request key", Limit: events.MaxKeyBytes, Got: int64(got)}
	case !utf8.ValidString(c.RequestID):
		return &store.InvalidError{Field: "request key", Problem: "no UTF-8"}
	case c.Priority < 0 || c.Priority > events.MaxPriority:
		return &task.LimitError{Field: "priority", Limit: events.MaxPriority, Got: c.Priority}
	}
	return nil
}
