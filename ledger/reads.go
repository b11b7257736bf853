package ledger

import (
	"sync"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// Reads is what this program reads of what is stored.
var Reads = sync.OnceValue(func() store.Reads {
	kinds := events.Kinds()
	return store.Reads{Kind: kinds[len(kinds)-1], Entry: events.EntryVersion, Snapshot: projection.SnapshotVersion, Rules: events.FoldRules}
})
