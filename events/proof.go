package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"taskledger/internal/wire"
)

// Excerpt is an entry of which only some events are shown. The digests of the others take their place in its chain hash, and
// tell nothing of what they say. The head tells which batches were decided in the entry, who asked for them, and what was
// answered.
type Excerpt struct {
	Head    []byte // as Builder describes it
	Digests []Hash // of all events
	Shown   []Shown
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
	r := wire.NewReader(data)
	r.ArrayOf(4)
	r.Uint()
	x := &Excerpt{Head: r.Bytes(), Digests: make([]Hash, len(e.Events))}
	r.Array()
	for i := range e.Events {
		s := Shown{i, r.Bytes(), r.Bytes()}
		x.Digests[i] = s.digest()
		if show(&e.Events[i]) {
			x.Shown = append(x.Shown, s)
		}
	}
	return x, r.Err()
}

func (s *Shown) digest() Hash {
	return digest(&wire.Writer{B: append([]byte(nil), s.Header...)}, s.Payload)
}

// Open checks the events shown against their digests and returns the entry, with them alone. Hash follows from Prev, the head
// and the digests; whether it is the right one is for the caller to check. Errors wrap ErrDamaged.
func (x *Excerpt) Open() (*Entry, error) {
	e, err := x.open()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, nil
}

func (x *Excerpt) open() (*Entry, error) {
	e, err := decodeHead(x.Head)
	if err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	e.Events = make([]Event, len(x.Shown))
	for i := range x.Shown {
		s := &x.Shown[i]
		switch {
		case s.Index < 0 || s.Index >= len(x.Digests) || i > 0 && s.Index <= x.Shown[i-1].Index:
			return nil, fmt.Errorf("entry %d: event %d of %d is out of order", e.Number, s.Index, len(x.Digests))
		case s.digest() != x.Digests[s.Index]:
			return nil, fmt.Errorf("event %d of entry %d: its digest differs", s.Index, e.Number)
		}
		if err := decodeEvent(&e.Events[i], s.Header, s.Payload, len(e.Origins)); err != nil {
			return nil, fmt.Errorf("event %d of entry %d: %w", s.Index, e.Number, err)
		}
		e.place(&e.Events[i], s.Index)
	}
	e.Hash = x.Link().After(e.Prev)
	return e, nil
}

// Link leads from the chain hash of the entry before to the one of an entry, and tells nothing else of it.
type Link struct {
	Head    Hash   // SHA-256 of its head
	Digests []Hash // of its events
}

// Link returns the entry's.
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

// UnmarshalText reads what String returns.
func (h *Hash) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(h) || len(text)%2 != 0 {
		return fmt.Errorf("hash of %d digits, want %d", len(text), hex.EncodedLen(len(h)))
	}
	_, err := hex.Decode(h[:], text)
	return err
}
