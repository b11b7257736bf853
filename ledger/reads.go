package ledger

import (
	"sync"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// Reads returns the highest numbers of the stored forms that this program reads.
var Reads = sync.OnceValue(func() store.Reads {
	kinds := events.Kinds()
	return store.Reads{
		Kind:     kinds[len(kinds)-1],
		Entry:    events.EntryVersion,
		Snapshot: projection.SnapshotVersion,
		Rules:    events.FoldRules,
	}
})
