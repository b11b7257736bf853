package events

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"taskledger/internal/wire"
)

// Excerpt is an entry that shows only some of its events, and the origins of these without their answers. Digests take
// the place of the others in its chain hash, and reveal an event only to a reader who can guess all of it.
type Excerpt struct {
	Head    []byte // as Builder describes it
	Digests []Hash // of all origins, then of all events
	Origins []ShownOrigin
	Shown   []Shown
}

// ShownOrigin is an origin in its stored form, but that the sum stands for the answers: they name other tasks.
type ShownOrigin struct {
	Index   int    `json:"index"` // in its entry
	Header  []byte `json:"header"`
	Answers Hash   `json:"answers"` // SHA-256; zero = none
}

// Shown is an event in its stored form.
type Shown struct {
	Index   int    `json:"index"` // in its entry
	Header  []byte `json:"header"`
	Payload []byte `json:"payload"` // nil = none
}

// NewExcerpt shows those events of a stored entry that show returns true for. It decodes the entry as Decode does.
func NewExcerpt(data []byte, show func(*Event) bool) (*Excerpt, error) {
	e, err := Decode(data)
	if err != nil {
		return nil, err
	}
	shown := make([]bool, len(e.Events))
	asked := make([]bool, len(e.Origins)+1) // by what Origin of an event holds
	for i := range e.Events {
		if shown[i] = show(&e.Events[i]); shown[i] {
			origin := e.Events[i].Origin
			asked[origin] = true
			if origin > 0 {
				asked[e.Origins[origin-1].Batch] = true
			}
		}
	}
	r := wire.NewReader(data)
	r.ArrayOf(5)
	r.Uint()
	x := &Excerpt{Head: r.Bytes(), Digests: make([]Hash, 0, len(e.Origins)+len(e.Events))}
	r.Array()
	for i := range e.Origins {
		o := ShownOrigin{i, r.Bytes(), sum(r.View())}
		x.Digests = append(x.Digests, o.digest())
		if asked[i+1] {
			x.Origins = append(x.Origins, o)
		}
	}
	r.Array()
	for i := range e.Events {
		s := Shown{i, r.Bytes(), r.Bytes()}
		x.Digests = append(x.Digests, s.digest())
		if shown[i] {
			x.Shown = append(x.Shown, s)
		}
	}
	return x, r.Err()
}

func (s *Shown) digest() Hash {
	return digest(&wire.Writer{B: slices.Clone(s.Header)}, sum(s.Payload))
}

func (o *ShownOrigin) digest() Hash {
	return digest(&wire.Writer{B: slices.Clone(o.Header)}, o.Answers)
}

// Open checks what is shown against the digests and returns the entry with these events alone; of its origins those
// that are not shown are empty, and Answers are nil. Hash follows from Prev, the head and the digests; whether it
// is the right one is for the caller to check. Errors wrap ErrDamaged.
func (x *Excerpt) Open() (*Entry, error) {
	e, err := x.open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, nil
}

func (x *Excerpt) open() (*Entry, error) {
	e, origins, err := decodeHead(x.Head)
	if err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	if origins > len(x.Digests) {
		return nil, fmt.Errorf("entry %d: %d digests for %d origins", e.Number, len(x.Digests), origins)
	}
	known := make([]bool, origins+1) // by what Origin of an event holds
	known[0] = true
	e.Origins = make([]Origin, origins)
	for i := range x.Origins {
		o := &x.Origins[i]
		switch {
		case o.Index < 0 || o.Index >= origins || known[o.Index+1]:
			return nil, fmt.Errorf("entry %d: origin %d of %d is shown twice, or not there", e.Number, o.Index, origins)
		case o.digest() != x.Digests[o.Index]:
			return nil, fmt.Errorf("origin %d of entry %d: its digest differs", o.Index, e.Number)
		}
		shown := &e.Origins[o.Index]
		err := decodeOrigin(shown, o.Header)
		if err == nil {
			err = shown.check(e.Origins[:o.Index])
		}
		if err == nil && !known[shown.Batch] {
			err = fmt.Errorf("its batch, origin %d, is not shown before it", shown.Batch-1)
		}
		if err != nil {
			return nil, fmt.Errorf("origin %d of entry %d: %w", o.Index, e.Number, err)
		}
		known[o.Index+1] = true
	}
	digests := x.Digests[origins:]
	e.Events = make([]Event, len(x.Shown))
	for i := range x.Shown {
		s, ev := &x.Shown[i], &e.Events[i]
		switch {
		case s.Index < 0 || s.Index >= len(digests) || i > 0 && s.Index <= x.Shown[i-1].Index:
			return nil, fmt.Errorf("entry %d: event %d of %d is out of order", e.Number, s.Index, len(digests))
		case s.digest() != digests[s.Index]:
			return nil, fmt.Errorf("event %d of entry %d: its digest differs", s.Index, e.Number)
		}
		if err := decodeEvent(ev, s.Header, s.Payload, origins); err != nil {
			return nil, fmt.Errorf("event %d of entry %d: %w", s.Index, e.Number, later(err))
		}
		if !known[ev.Origin] {
			return nil, fmt.Errorf("event %d of entry %d: origin %d is not shown", s.Index, e.Number, ev.Origin-1)
		}
		e.place(ev, s.Index)
	}
	e.Hash = x.Link().After(e.Prev)
	return e, nil
}

// Link leads from the chain hash of the entry before to the one of an entry, and tells nothing else of it.
type Link struct {
	Head    Hash   // SHA-256 of its head
	Digests []Hash // of its origins, then of its events
}

// Link returns the link of the entry.
func (x *Excerpt) Link() Link { return Link{sha256.Sum256(x.Head), x.Digests} }

// After returns the chain hash of the entry after one with the hash prev.
func (l Link) After(prev Hash) (next Hash) {
	h := sha256.New()
	h.Write(prev[:])
	h.Write(l.Head[:])
	for i := range l.Digests {
		h.Write(l.Digests[i][:])
	}
	h.Sum(next[:0])
	return next
}
