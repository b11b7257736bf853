package command

import (
	"taskledger/events"
	"taskledger/projection/items"
)

// forgetsAtOnce bounds the stores that an entry forgets.
const forgetsAtOnce = 64

// Recover records that the store lost the end of the journal.
func (d *Decider) Recover(b *events.Recovered) { d.emitRecord(b) }

// ForgetStores forgets task stores that have been empty for long.
func (d *Decider) ForgetStores() {
	if d.StoreFull || d.forbids(events.KindStoreForgotten) != "" { // nobody asks for it: it can wait until all nodes read it
		return
	}
	for _, b := range items.Of(d.State).Forgettable(d.Now, forgetsAtOnce) {
		if d.EntryFull() || d.Err != nil {
			return
		}
		d.emitRecord(&b)
	}
}
