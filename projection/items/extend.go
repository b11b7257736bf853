package items

import (
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/extension"
)

// Extend returns the stores of a shard before their first event.
func Extend(shard extension.Shard) extension.Extension {
	s := new(Stores)
	s.CountBy(shard.Clock)
	gone := s.Forgotten()
	x := extension.Extension{
		Records:  []events.Record{events.OfItem, events.OfForgotten},
		State:    s,
		Fold:     s.fold,
		Next:     func(events.Record) (uint64, events.Ref) { return gone.Next() },
		Sections: []extension.Section{extension.SectionOf(events.OfForgotten, gone)},
		Restored: func(entry uint64, now events.Millis) error {
			if err := extension.Within(events.OfForgotten, gone, entry); err != nil {
				return err
			}
			return s.Restored(entry, now)
		},
		Bytes:   s.Bytes,
		Lost:    s.lost,
		Partial: s.OnlySome,
	}
	for _, of := range Sections {
		x.Sections = append(x.Sections, extension.Section{
			Name: of.Name,
			List: func() (int, func(int, *wire.Writer)) { return of.List(s) },
			Read: func(r *wire.Reader) { of.Read(s, r) },
		})
	}
	return x
}

// Of returns the stores of a shard. They are the shard's own: read only, until its next event.
func Of(in extension.Holder) *Stores { return in.State(events.OfItem).(*Stores) }

// fold applies the next event of an item, or of the stores that were forgotten.
func (s *Stores) fold(ev *events.Event) error {
	if ev.Kind().Record() == events.OfForgotten {
		return s.Forgotten().Fold(ev)
	}
	return s.Fold(ev)
}

// lost learns of the losses of the journal: whatever was lost may have given out ids, whether a store lost it or an
// operator gave it up.
func (s *Stores) lost(times uint64, at events.Millis, recorded bool) {
	s.Lost(times, at)
	if recorded {
		s.Recovered()
	}
}
