package projection

import (
	"taskledger/events"
	"taskledger/internal/wire"
)

// Description holds the tags of a task, and the deadline of its run.
type Description struct {
	Tags     []string
	Deadline events.Millis // of a run that has not ended; 0 = none
}

// describe returns the description of a task; nil where it says nothing.
func describe(tags []string, deadline events.Millis) *Description {
	if len(tags) == 0 && deadline == 0 {
		return nil
	}
	return &Description{tags, deadline}
}

// bytes counts what the description adds to a task in a snapshot.
func (d *Description) bytes() int64 {
	if d == nil {
		return 0
	}
	n := 8
	for _, tag := range d.Tags {
		n += 2 + len(tag)
	}
	return int64(n)
}

func (d *Description) encode(w *wire.Writer) {
	w.Array(2)
	events.EncodeTags(w, d.Tags)
	w.Int(int64(d.Deadline))
}

func decodeDescription(r *wire.Reader) *Description {
	r.ArrayOf(2)
	return describe(events.DecodeTags(r), events.Millis(r.Int()))
}
