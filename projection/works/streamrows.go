package works

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/extension"
)

// heldARow bounds about what the changes of a row take, unless it has one.
const heldARow = 32 << 10

// streamSections returns the rows of streams. They are the arrays
//
//	streams      [id of the work, token, moved at, open, oldest, told at, [from, changes, from, changes], last hold,
//	              [partition, simulated ...], [stage, staged]], the last one once a stage has begun
//	holds        [id of the work, number, life, partition, key, flags, begun, done, attempt of its last change,
//	              [lost, failed]], the last one where an attempt was lost or has failed since a change was processed
//	heldchanges  [id of the work, number of the hold, [at, data, code, message, attempt ...]]
//	spentholds   [id of the task, life, orphan]
//
// with the partitions that have simulated up to a token. The flags of a hold are 1 for one that changes pass, 2 for one
// whose task is suspended and 4 for one whose task has ended. The changes of a hold follow one another in several rows
// where they take much.
func (s *Works) streamSections() []extension.Section {
	return []extension.Section{
		{Name: "streams", List: s.listStreams, Read: s.readStream},
		{Name: "holds", List: s.listHolds, Read: s.readHold},
		{Name: "heldchanges", List: s.listHeld, Read: s.readHeld},
		{Name: "spentholds", List: s.listSpent, Read: s.readSpent},
	}
}

// streaming returns the works with a stream by the ids of their tasks.
func (s *Works) streaming() []*Work {
	return slices.DeleteFunc(s.sorted(), func(of *Work) bool { return of.Stream == nil })
}

func (s *Works) listStreams() (int, func(int, *wire.Writer)) {
	type row struct {
		of        events.TaskID
		is        Stream
		simulated []string // by partition
	}
	var all []row
	for _, of := range s.streaming() {
		r := row{of: of.ID, is: *of.Stream}
		for i := range of.Parts {
			r.simulated = append(r.simulated, of.Parts[i].Simulated)
		}
		all = append(all, r)
	}
	return len(all), func(i int, w *wire.Writer) {
		is := &all[i].is
		fields, staged := 9, is.stage != 0
		if staged {
			fields++
		}
		w.Array(fields)
		w.Text(string(all[i].of))
		w.Bytes([]byte(is.Token))
		w.Int(int64(is.MovedAt))
		w.Uint(is.Open)
		w.Int(int64(is.Oldest))
		w.Int(int64(is.ToldAt))
		w.Array(4)
		for _, c := range [...]Count{is.before, is.Recent} {
			w.Int(int64(c.From))
			w.Uint(c.Changes)
		}
		w.Uint(uint64(is.last))
		encodeSimulated(w, all[i].simulated)
		if staged {
			w.Array(2)
			w.Uint(is.stage)
			w.Uint(is.staged)
		}
	}
}

func encodeSimulated(w *wire.Writer, all []string) {
	n := 0
	for _, token := range all {
		if token != "" {
			n++
		}
	}
	w.Array(2 * n)
	for i, token := range all {
		if token != "" {
			w.Uint(uint64(i + 1))
			w.Bytes([]byte(token))
		}
	}
}

func (s *Works) readStream(r *wire.Reader) {
	tail := r.ArrayFrom(9)
	of := s.byParent[events.TaskID(r.Text())]
	is := newStream()
	is.Token, is.MovedAt = string(r.View()), events.Millis(r.Int())
	is.Open, is.Oldest, is.ToldAt = r.Uint(), events.Millis(r.Int()), events.Millis(r.Int())
	r.ArrayOf(4)
	for _, c := range [...]*Count{&is.before, &is.Recent} {
		c.From, c.Changes = events.Millis(r.Int()), r.Uint()
	}
	is.last = number(r)
	n := r.Array()
	switch {
	case r.Err() != nil:
		return
	case of == nil || of.Stream != nil || len(is.Token) > events.MaxTokenBytes || n > 2*len(of.Parts) || n%2 != 0:
		r.Fail("a stream of no work, or twice, or %d values of simulations", n)
		return
	}
	before := of.size()
	of.Stream = is
	for range n / 2 {
		at, token := r.Uint(), string(r.View())
		if r.Err() != nil || at == 0 || at > uint64(len(of.Parts)) || token == "" || len(token) > events.MaxTokenBytes {
			r.Fail("simulation of partition %d", at)
			return
		}
		of.Parts[at-1].Simulated = token
	}
	if tail > 0 {
		r.ArrayOf(2)
		is.stage, is.staged = r.Uint(), r.Uint()
		r.Skip(tail - 1)
	}
	s.bytes += of.size() - before
}

// heldBy is a hold as it was when it was listed.
type heldBy struct {
	of events.TaskID
	Hold
}

func (s *Works) allHolds() (all []heldBy) {
	for _, of := range s.streaming() {
		for _, h := range of.Stream.Holds() {
			all = append(all, heldBy{of.ID, *h})
		}
	}
	return all
}

// flags returns the flags in stored order: the first is the lowest bit.
func (h *Hold) flags() [3]*bool { return [...]*bool{&h.Passed, &h.Parked, &h.Final} }

func (s *Works) listHolds() (int, func(int, *wire.Writer)) {
	all := s.allHolds()
	return len(all), func(i int, w *wire.Writer) {
		is := &all[i]
		flags := uint64(0)
		for bit, set := range is.flags() {
			if *set {
				flags |= 1 << bit
			}
		}
		tried := is.Tries != Tries{}
		fields := 9
		if tried {
			fields++
		}
		w.Array(fields)
		w.Text(string(is.of))
		w.Uint(uint64(is.Number))
		w.Uint(uint64(is.Life))
		w.Uint(uint64(is.Partition))
		w.Bytes([]byte(is.Key))
		w.Uint(flags)
		w.Int(int64(is.Begun))
		w.Uint(is.Done)
		w.Uint(uint64(is.Changes[len(is.Changes)-1].Attempt)) // which stands beside that change, too
		if tried {
			w.Array(2)
			w.Uint(uint64(is.Lost))
			w.Uint(uint64(is.Failed))
		}
	}
}

func (s *Works) readHold(r *wire.Reader) {
	tail := r.ArrayFrom(9)
	of := s.byParent[events.TaskID(r.Text())]
	h := &Hold{Number: number(r), Life: events.Ref(r.Uint())}
	h.Partition, h.Key = number(r), string(r.View())
	flags := r.Uint()
	for bit, is := range h.flags() {
		*is = flags&(1<<bit) != 0
	}
	h.Begun, h.Done = events.Millis(r.Int()), r.Uint()
	r.Uint()
	if tail > 0 {
		r.ArrayOf(2)
		h.Lost, h.Failed = number(r), number(r)
		r.Skip(tail - 1)
	}
	switch {
	case r.Err() != nil:
	case of == nil || of.Stream == nil || h.Number == 0 || h.Number > of.Stream.last || h.Life == 0 || flags >= 1<<len(h.flags()):
		r.Fail("hold %d of no stream, with flags %d", h.Number, flags)
	case h.Key == "" || len(h.Key) > events.MaxChangeKeyBytes || h.Partition == 0 || h.Partition > events.MaxPartitions:
		r.Fail("hold %d of partition %d with a key of %d bytes", h.Number, h.Partition, len(h.Key))
	case of.Stream.holds[h.Number] != nil || !h.Passed && of.Stream.byKey[h.Key] != 0:
		r.Fail("hold %d of %q is there twice, or its key", h.Number, of.ID)
	default:
		h.ID = events.HoldID(of.ID, h.Number)
		of.Stream.holds[h.Number] = h
		if !h.Passed {
			of.Stream.byKey[h.Key] = h.Number
		}
		of.Stream.bytes += HoldBytes(h.Key)
		s.byHold[h.ID] = holdOf{work: of, number: h.Number}
		s.bytes += HoldBytes(h.Key)
		s.last = max(s.last, h.Life)
	}
}

func (s *Works) listHeld() (int, func(int, *wire.Writer)) {
	type row struct {
		of      events.TaskID
		number  uint32
		changes []Held
	}
	var all []row
	for _, h := range s.allHolds() {
		for rest := h.Changes; len(rest) > 0; {
			n, bytes := 1, rest[0].size()
			for n < len(rest) && bytes+rest[n].size() <= heldARow {
				bytes += rest[n].size()
				n++
			}
			all = append(all, row{h.of, h.Number, rest[:n]})
			rest = rest[n:]
		}
	}
	return len(all), func(i int, w *wire.Writer) {
		w.Array(3)
		w.Text(string(all[i].of))
		w.Uint(uint64(all[i].number))
		w.Array(5 * len(all[i].changes))
		for _, is := range all[i].changes {
			w.Bytes([]byte(is.At))
			w.Bytes(is.Data)
			w.Text(is.Code)
			w.Text(is.Message)
			w.Uint(uint64(is.Attempt))
		}
	}
}

func (s *Works) readHeld(r *wire.Reader) {
	r.ArrayOf(3)
	of, hold := s.byParent[events.TaskID(r.Text())], number(r)
	n := r.Array()
	if of == nil || of.Stream == nil || of.Stream.holds[hold] == nil || n == 0 || n%5 != 0 || n > 5*events.MaxHeldChanges {
		r.Fail("%d values of changes of hold %d", n, hold)
		return
	}
	h := of.Stream.holds[hold]
	for range n / 5 {
		is := Held{At: string(r.View()), Data: r.Bytes()}
		is.Code, is.Message, is.Attempt = r.Text(), r.Text(), events.Ref(r.Uint())
		if r.Err() != nil {
			return
		}
		if err := events.CheckHeld(h.Key, is.At, is.Data, is.Code, is.Message); err != nil {
			r.FailBy(err)
			return
		}
		h.Changes = append(h.Changes, is)
		h.data += int64(len(is.Data))
		of.Stream.bytes += is.size()
		s.bytes += is.size()
		s.last = max(s.last, is.Attempt)
	}
	of.Stream.name(h)
}

func (s *Works) listSpent() (int, func(int, *wire.Writer)) {
	ids, all := slices.Sorted(maps.Keys(s.spent)), maps.Clone(s.spent)
	return len(ids), func(i int, w *wire.Writer) {
		is := all[ids[i]]
		w.Array(3)
		w.Text(string(ids[i]))
		w.Uint(uint64(is.life))
		w.Bool(is.orphan)
	}
}

func (s *Works) readSpent(r *wire.Reader) {
	r.ArrayOf(3)
	id, is := events.TaskID(r.Text()), spent{life: events.Ref(r.Uint()), orphan: r.Bool()}
	_, twice := s.spent[id]
	if err := cmp.Or(r.Err(), id.Validate()); err != nil || twice || is.life == 0 {
		r.Fail("the task %q of a hold that is gone", id)
		return
	}
	s.spent[id] = is
	s.bytes += spentBytes
	s.last = max(s.last, is.life)
}

// restoredStream returns an error for a stream that is not the fold of events.
func (w *Work) restoredStream() error {
	if w.Stream == nil {
		return nil
	}
	if n := len(w.Stream.holds); n > events.MaxHolds {
		return fmt.Errorf("work of %q has %d holds", w.ID, n)
	}
	for _, h := range w.Stream.holds {
		n := len(h.Changes)
		if n == 0 || n > events.MaxHeldChanges || h.data > events.MaxHeldBytes || h.Passed && n > 1 {
			return fmt.Errorf("hold %d of %q has %d changes with %d bytes", h.Number, w.ID, n, h.data)
		}
	}
	return nil
}
