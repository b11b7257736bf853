package command

import (
	"taskledger/events"
)

// Recover records that the store lost the end of the journal.
func (d *Decider) Recover(b *events.Recovered) { d.EmitRecord(b) }

// MayRecord reports whether events of a kind that nobody asked for may be recorded now: there is room for an entry,
// and every node that is present reads them.
func (d *Decider) MayRecord(kind events.Kind) bool { return !d.StoreFull && d.forbids(kind) == "" }
