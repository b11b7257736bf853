package projection

import (
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/items"
	"taskledger/projection/journal"
	"taskledger/projection/settings"
)

// recordState is the state of a record that is no task.
type recordState interface {
	Fold(ev *events.Event) error
	Next() (seq uint64, prev events.Ref)
	Encode(w *wire.Writer)
	Decode(r *wire.Reader)
}

// record returns the state of a record, nil for that of tasks: those have a place each.
func (s *Shard) record(of events.Record) recordState {
	switch of {
	case events.OfJournal:
		return &s.journal
	case events.OfSettings:
		return &s.settings
	case events.OfForgotten:
		return s.stores.Forgotten()
	}
	return nil
}

// Settings returns the settings of the cluster. They are the shard's own: read only, until the next Apply; a copy keeps its value.
func (s *Shard) Settings() *settings.State { return &s.settings }

// Journal returns what the journal has lost, under the same terms.
func (s *Shard) Journal() *journal.State { return &s.journal }

// Next returns the sequence and the predecessor of the next event of a record that is no task.
func (s *Shard) Next(of events.Record) (seq uint64, prev events.Ref) { return s.record(of).Next() }

// applyRecord folds an event that is of no task.
func (s *Shard) applyRecord(ev *events.Event) error {
	of := ev.Kind().Record()
	fold := s.stores.Fold
	if of != events.OfItem {
		fold = s.record(of).Fold
	}
	if err := fold(ev); err != nil {
		return &TransitionError{Record: of, Seq: ev.Seq, Kind: ev.Kind(), Problem: err.Error()}
	}
	if of == events.OfJournal { // whatever was lost may have given out ids, whether a store lost it or an operator gave it up
		s.stores.Lost(s.losses())
		s.stores.Recovered()
	}
	return nil
}

// losses is how often the journal has lost something, and when last.
func (s *Shard) losses() (times uint64, at events.Millis) {
	if all := s.journal.Losses(); len(all) > 0 {
		at = all[len(all)-1].At
	}
	return s.journal.Seq, at
}

// recordSections are those of the records that are no tasks, by their names. Each has one row once the record has had an event: its
// state, as its package describes it.
func recordSections() (all []section) {
	for _, of := range events.Records() {
		if of == events.OfTask || of == events.OfItem {
			continue
		}
		list := func(s *Shard) listed {
			r := s.record(of)
			if seq, _ := r.Next(); seq == 1 {
				return listed{}
			}
			var row wire.Writer
			r.Encode(&row)
			return listed{rows: 1, write: func(_ int, w *wire.Writer) { w.B = append(w.B, row.B...) }}
		}
		read := func(s *Shard, in *wire.Reader) {
			r := s.record(of)
			if seq, _ := r.Next(); seq != 1 {
				in.Fail("%s is there twice", of)
				return
			}
			if r.Decode(in); in.Err() == nil {
				if seq, _ := r.Next(); seq == 1 {
					in.Fail("%s of no events", of)
				}
			}
		}
		all = append(all, section{of.String(), list, read})
	}
	return all
}

// recordAfter returns a record that has an event after the entry, OfTask for none.
func (s *Shard) recordAfter(entry uint64) events.Record {
	for _, of := range events.Records() {
		if of == events.OfTask || of == events.OfItem {
			continue
		}
		if _, last := s.record(of).Next(); last.Entry() > entry {
			return of
		}
	}
	return events.OfTask
}

// Stores returns the items of the shard, under the same terms.
func (s *Shard) Stores() *items.Stores { return &s.stores }

// itemSections are those of the items of stores, as their package describes them.
func itemSections() (all []section) {
	for _, of := range items.Sections {
		list := func(s *Shard) listed {
			rows, write := of.List(&s.stores)
			return listed{rows: rows, write: write}
		}
		all = append(all, section{of.Name, list, func(s *Shard, in *wire.Reader) { of.Read(&s.stores, in) }})
	}
	return all
}
