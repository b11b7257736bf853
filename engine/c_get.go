package engine

import (
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// getCommand reads a task.
type getCommand struct {
	Task   events.TaskID
	Linear bool // the answer waits for a proof of ownership
}

func (*getCommand) op() uint64 { return opGet }

func (c *getCommand) size() int { return 64 + len(c.Task) }

func encodeTask(t *projection.Task) []byte {
	var w wire.Writer
	t.Encode(&w)
	return w.B
}

func decodeTask(data []byte) (projection.Task, error) {
	r, err := scanned(data)
	if err != nil {
		return projection.Task{}, err
	}
	t := projection.DecodeTask(r)
	if err := r.Close(); err != nil {
		return projection.Task{}, err
	}
	return *t, nil
}
