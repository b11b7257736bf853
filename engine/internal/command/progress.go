package command

import (
	"cmp"

	"taskledger/events"
	"taskledger/internal/wire"
)

// Progress reports how far an attempt is.
type Progress struct {
	Task     events.TaskID
	Started  events.Ref
	Node     string
	Progress events.Progressed
}

func (*Progress) Op() uint64 { return opProgress }

func (c *Progress) Size() int {
	return commandBytes + len(c.Task) + len(c.Node) + len(c.Progress.Note)
}

func (c *Progress) Limits() error {
	return cmp.Or(limitID(c.Task), limitNode(c.Node), atMost("note", len(c.Progress.Note), events.MaxNameBytes))
}

func (c *Progress) encode(w *wire.Writer) {
	w.Array(6)
	w.Text(string(c.Task))
	w.Uint(uint64(c.Started))
	w.Text(c.Node)
	w.Int(c.Progress.Done)
	w.Int(c.Progress.Total)
	w.Text(c.Progress.Note)
}

func (c *Progress) decode(r *wire.Reader) {
	r.ArrayOf(6)
	c.Task, c.Started, c.Node = events.TaskID(r.Text()), events.Ref(r.Uint()), r.Text()
	c.Progress = events.Progressed{Done: r.Int(), Total: r.Int(), Note: r.Text()}
}

func (c *Progress) Decide(d *Decider) Answer {
	t := d.State.Attempt(c.Started)
	if t == nil || t.ID != c.Task || t.Node != c.Node {
		d.Stale++
		return Answer{Code: AnswerStale}
	}
	report := c.Progress // the command belongs to its sender, which may send it again
	d.emit(t.ID, t, "", &report)
	return Answer{}
}
