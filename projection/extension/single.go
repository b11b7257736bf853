package extension

import (
	"fmt"

	"taskledger/events"
	"taskledger/internal/wire"
)

// Single is the state of a record of which a shard has one.
type Single interface {
	Fold(ev *events.Event) error
	Next() (seq uint64, prev events.Ref)
	Encode(w *wire.Writer)
	Decode(r *wire.Reader)
}

// OfSingle returns the extension of a record of which a shard has one. Its section has the name of the record, and one
// row once there was an event.
func OfSingle(of events.Record, s Single) Extension {
	return Extension{
		Records:  []events.Record{of},
		State:    s,
		Fold:     s.Fold,
		Next:     func(events.Record) (uint64, events.Ref) { return s.Next() },
		Sections: []Section{SectionOf(of, s)},
		Restored: func(entry uint64, _ events.Millis) error { return Within(of, s, entry) },
	}
}

// SectionOf returns the section of a record of which a shard has one.
func SectionOf(of events.Record, s Single) Section {
	return Section{
		Name: of.String(),
		List: func() (int, func(int, *wire.Writer)) {
			if seq, _ := s.Next(); seq == 1 {
				return 0, nil
			}
			var row wire.Writer
			s.Encode(&row)
			return 1, func(_ int, w *wire.Writer) { w.B = append(w.B, row.B...) }
		},
		Read: func(r *wire.Reader) {
			if seq, _ := s.Next(); seq != 1 {
				r.Fail("%s is there twice", of)
				return
			}
			if s.Decode(r); r.Err() != nil {
				return
			}
			if seq, _ := s.Next(); seq == 1 {
				r.Fail("%s of no events", of)
			}
		},
	}
}

// Within returns an error if the record has an event after an entry.
func Within(of events.Record, s Single, entry uint64) error {
	if _, last := s.Next(); last.Entry() > entry {
		return fmt.Errorf("%s has an event after entry %d", of, entry)
	}
	return nil
}
