package command

import (
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// Get reads a task. The number in its answer is Sightings.Of the task.
type Get struct {
	Task   events.TaskID
	Linear bool // the answer waits for a proof of ownership
}

func (*Get) Op() uint64 { return opGet }

func (c *Get) Shard(count int) int { return c.Task.Shard(count) }

func (c *Get) Size() int { return 64 + len(c.Task) }

func (c *Get) Limits() error { return limitID(c.Task) }

// EncodeTask writes a task nearly as snapshots have it: see projection.Task.Encode. The answers to Get and List carry
// tasks as these bytes.
func EncodeTask(t *projection.Task) []byte {
	var w wire.Writer
	t.Encode(&w)
	return w.B
}

// DecodeTask reads what EncodeTask writes.
func DecodeTask(data []byte) (projection.Task, error) {
	var t *projection.Task
	if err := DecodeLenient(data, func(r *wire.Reader) { t = projection.DecodeTask(r) }); err != nil {
		return projection.Task{}, err
	}
	return *t, nil
}
