package engine

import (
	"cmp"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// submitCommand asks for a task.
type submitCommand struct {
	Task      events.TaskID
	Behavior  string
	Policy    events.Policy // complete
	Priority  int64
	NotBefore events.Millis // 0 = now
	Params    events.Payload
	RequestID string
	Merges    bool // the submitter can combine parameters, and must be asked when the task exists
	RunNow    bool // as Plan has it

	checked bool // in this process, which is as good as by the owner; never sent
}

func (*submitCommand) op() uint64 { return opSubmit }

func (c *submitCommand) size() int {
	return commandBytes + len(c.Task) + len(c.Behavior) + len(c.RequestID) + len(c.Params)
}

func (c *submitCommand) encode(w *wire.Writer) {
	w.Array(9)
	w.Text(string(c.Task))
	w.Text(c.Behavior)
	c.Policy.Encode(w)
	w.Int(c.Priority)
	w.Int(int64(c.NotBefore))
	w.Bytes(c.Params)
	w.Text(c.RequestID)
	w.Bool(c.Merges)
	w.Bool(c.RunNow)
}

func (c *submitCommand) decode(r *wire.Reader) {
	r.ArrayOf(9)
	c.Task, c.Behavior = events.TaskID(r.Text()), r.Text()
	c.Policy.Decode(r)
	c.Priority, c.NotBefore, c.Params, c.RequestID, c.Merges = r.Int(), events.Millis(r.Int()), r.Bytes(), r.Text(), r.Bool()
	c.RunNow = r.Bool()
}

// maxLiveTasks bounds the unfinished tasks of a shard, and so its memory.
const maxLiveTasks = 1_000_000

func (c *submitCommand) decide(d *decider) answer {
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

// check returns an *store.InvalidError or a *task.LimitError.
func (c *submitCommand) check() error {
	if c.Task == events.Settings {
		return &store.InvalidError{Field: "id", Problem: "cluster/settings is reserved"}
	}
	if err := c.Task.Validate(); err != nil {
		return &store.InvalidError{Field: "id", Problem: err.Error()}
	}
	if err := events.ValidateBehavior(c.Behavior); err != nil {
		return &store.InvalidError{Field: "behavior", Problem: err.Error()}
	}
	if !c.Policy.IsComplete() {
		return &store.InvalidError{Field: "policy", Problem: "a field is missing or out of range"}
	}
	switch {
	case len(c.Params) > events.MaxPayloadBytes+1:
		return &task.LimitError{Field: "parameters", Limit: events.MaxPayloadBytes, Got: int64(len(c.Params)) - 1}
	case len(c.RequestID) > events.MaxNameBytes:
		return &task.LimitError{Field: "request id", Limit: events.MaxNameBytes, Got: int64(len(c.RequestID))}
	case c.Priority < 0 || c.Priority > events.MaxPriority:
		return &task.LimitError{Field: "priority", Limit: events.MaxPriority, Got: c.Priority}
	}
	return nil
}
