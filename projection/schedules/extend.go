package schedules

import (
	"taskledger/events"
	"taskledger/projection/extension"
)

// Extend returns the schedules of a shard before their first event.
func Extend(shard extension.Shard) extension.Extension {
	s := newSchedules(shard)
	return extension.Extension{
		Records:  []events.Record{events.OfSchedule},
		State:    s,
		Fold:     s.fold,
		Sections: s.sections(),
		Restored: s.restored,
		Bytes:    s.Bytes,
		Partial:  func() {},
		Saw:      s.saw,
		Holds:    s.holds,
		Ended:    s.ended,
		EndBytes: endBytes,
	}
}

// Of returns the schedules of a shard. They are the shard's own: read only, until its next event.
func Of(in extension.Holder) *Schedules { return in.State(events.OfSchedule).(*Schedules) }
