package events

import "fmt"

// Mark is a place between two events of an entry that is being built.
type Mark struct{ events, body, digests int }

// Mark returns the place behind the last event.
func (b *Builder) Mark() Mark { return Mark{len(b.Entry.Events), len(b.body.B), len(b.digests)} }

// DropAfter takes back the events that were added since the mark was made. Nobody may have taken note of them.
func (b *Builder) DropAfter(m Mark) {
	clear(b.Entry.Events[m.events:])
	b.Entry.Events, b.body.B, b.digests = b.Entry.Events[:m.events], b.body.B[:m.body], b.digests[:m.digests]
}

// Holds returns why the entry cannot be stored with its last event; Seal would refuse it.
func (b *Builder) Holds() error {
	n := len(b.Entry.Events)
	switch {
	case n > MaxEntryEvents:
		return fmt.Errorf("entry of %d events, at most %d", n, MaxEntryEvents)
	case b.Size() > MaxEntryBytes:
		return fmt.Errorf("entry of %d bytes exceeds the limit of %d", b.Size(), MaxEntryBytes)
	}
	return b.Entry.Events[n-1].check(len(b.Entry.Origins))
}
