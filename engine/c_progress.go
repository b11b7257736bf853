package engine

import (
	"taskledger/events"
	"taskledger/internal/wire"
)

// progressCommand reports how far an attempt is.
type progressCommand struct {
	Task     events.TaskID
	Started  events.Ref
	Node     string
	Progress events.Progressed
}

func (*progressCommand) op() uint64 { return opProgress }

func (c *progressCommand) size() int {
	return commandBytes + len(c.Task) + len(c.Node) + len(c.Progress.Note)
}

func (c *progressCommand) encode(w *wire.Writer) {
	w.Array(6)
	w.Text(string(c.Task))
	w.Uint(uint64(c.Started))
	w.Text(c.Node)
	w.Int(c.Progress.Done)
	w.Int(c.Progress.Total)
	w.Text(c.Progress.Note)
}

func (c *progressCommand) decode(r *wire.Reader) {
	r.ArrayOf(6)
	c.Task, c.Started, c.Node = events.TaskID(r.Text()), events.Ref(r.Uint()), r.Text()
	c.Progress = events.Progressed{Done: r.Int(), Total: r.Int(), Note: r.Text()}
}

func (c *progressCommand) decide(d *decider) answer {
	t := d.state.Task(c.Task)
	if t == nil || !t.OnNode() || t.Started != c.Started || t.Node != c.Node {
		d.refused++
		return answer{code: answerStale}
	}
	report := c.Progress // the command belongs to its sender, which may send it again
	report.Note = report.Note[:min(len(report.Note), events.MaxNameBytes)]
	d.emit(t.ID, t, "", &report)
	return answer{}
}
