package command

import (
	"taskledger/events"
)

// Recover records that the store lost the end of the journal.
func (d *Decider) Recover(b *events.Recovered) { d.EmitRecord(b) }

// MayRecord reports whether events of a kind that nobody asked for may be recorded now: there is room for an entry,
// and every node that is present reads them.
func (d *Decider) MayRecord(kind events.Kind) bool { return !d.StoreFull && d.forbids(kind) == "" }

// Unreadable says which node that is present cannot read events of a kind; "" = all can. A command asks it that records
// something of a later release in a kind that they know.
func (d *Decider) Unreadable(kind events.Kind) string { return d.forbids(kind) }
