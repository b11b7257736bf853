package works

import (
	"taskledger/events"
	"taskledger/projection/extension"
)

// Extend returns the works of a shard before their first event.
func Extend(shard extension.Shard) extension.Extension {
	s := newWorks(shard)
	return extension.Extension{
		Records:  []events.Record{events.OfTask},
		Kinds:    Kinds(),
		State:    s,
		Sections: s.sections(),
		Restored: s.restored,
		Bytes:    s.Bytes,
		Allows:   s.allows,
		Saw:      s.saw,
		Forgot:   s.forgot,
		Holds:    s.holds,
		Ended:    s.ended,
		Crew:     s,

		EndBytesNow: s.endBytes,
	}
}

// Of returns the works of a shard. They are the shard's own: read only, until its next event.
func Of(in extension.Holder) *Works { return in.State(events.OfTask).(*Works) }

// Kinds returns the kinds of events that works consist of.
func Kinds() []events.Kind {
	return []events.Kind{
		events.KindWorkPlanned,
		events.KindPartitionStarted,
		events.KindPartitionEnded,
		events.KindBucketsMoved,
		events.KindPermitsGranted,
		events.KindWorkReset,
		events.KindTokenMoved,
		events.KindChangeHeld,
		events.KindHoldMoved,
	}
}
