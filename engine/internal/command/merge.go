package command

import (
	"bytes"

	"taskledger/events"
	"taskledger/internal/wire"
)

// Merge is the second step of a submit that met an existing task: the combined parameters, valid only if the task
// did not change since.
type Merge struct {
	Submit   Submit // with the combined Params
	Life     events.Ref
	Seq      uint64
	Operator bool // it is no submit but the retry of a task that has ended, with its own parameters
}

func (*Merge) Op() uint64 { return opMerge }

func (c *Merge) Shard(count int) int { return c.Submit.Task.Shard(count) }

func (c *Merge) Size() int { return commandBytes + len(c.Submit.Task) + c.Submit.Size() }

// Limits implements Command. An operator retries a task that is there, which may be a run of a schedule.
func (c *Merge) Limits() error {
	if c.Operator && !c.Submit.Checked {
		return c.Submit.checkTask()
	}
	return c.Submit.Limits()
}

func (c *Merge) encode(w *wire.Writer) {
	w.Array(4)
	c.Submit.encode(w)
	w.Uint(uint64(c.Life))
	w.Uint(c.Seq)
	w.Bool(c.Operator)
}

func (c *Merge) decode(r *wire.Reader) {
	r.ArrayOf(4)
	c.Submit.decode(r)
	c.Life, c.Seq, c.Operator = events.Ref(r.Uint()), r.Uint(), r.Bool()
}

func (c *Merge) Decide(d *Decider) Answer {
	if d.StoreFull { // an entry would wait for room, and delay all behind it
		return d.noSpace()
	}
	if refusal, refused := d.unreadable(&c.Submit); refused {
		return refusal
	}
	t := d.State.Task(c.Submit.Task)
	if t == nil || t.Created != c.Life || t.Seq != c.Seq {
		return Answer{Code: AnswerChanged}
	}
	switch {
	case t.Run != 0 && !c.Operator:
		return ofSchedule(t)
	case t.Kind.Behavior != c.Submit.Behavior:
		return otherBehavior(t, &c.Submit)
	case t.Requests.Of(c.Submit.RequestID) != nil: // by a copy of the submit
		return repeated(t, t.Requests.Of(c.Submit.RequestID))
	case t.Requests.Another(c.Submit.RequestID):
		return otherRequest(c.Submit.RequestID)
	case t.Final() && !c.Operator && c.Submit.Policy.Existing == events.ReturnRecorded: // the run has ended meanwhile
		return d.recorded(t, &c.Submit)
	}
	if refusal, refused := d.late(&c.Submit); refused && t.Final() {
		return refusal
	}
	if d.paramsGone(t) {
		return d.rerun(t, &c.Submit, c.Operator)
	}
	changes := t.ParamsElided || !bytes.Equal(t.Params, c.Submit.Params)
	adds := len(c.Submit.Params)
	if !t.Final() { // the limit counts the parameters of live tasks, and so these already
		adds -= len(t.Params)
	}
	if !c.Operator && (t.Final() || adds > 0 || changes && d.Refusal != "") { // a merge takes bytes in the journal
		if refusal, refused := d.noRoom(t.Final(), adds); refused {
			return refusal
		}
	}
	if changes && c.Submit.RequestID != "" && d.requestsFull(t) {
		return d.tooManyRequests()
	}
	if changes {
		t = d.emit(t.ID, t, c.Submit.RequestID, &events.Merged{Params: c.Submit.Params, Terms: c.Submit.terms(t)})
	}
	return d.join(t, &c.Submit)
}
