package projection

import (
	"taskledger/events"
	"taskledger/internal/wire"
)

// SnapshotVersion is the version of the snapshots that this program writes and reads.
func SnapshotVersion() uint64 { return snapshotVersion }

// EntryVersion is the version of the entries that this program writes and reads, as a sealed one says.
func EntryVersion() uint64 {
	var b events.Builder
	b.Reset(events.Entry{Number: 1})
	b.AddOrigin(events.Origin{Sender: "none", Number: 1})
	sealed, err := b.Seal()
	if err != nil {
		panic(err) // there is nothing in it to be refused
	}
	r := wire.NewReader(sealed)
	r.Array()
	return r.Uint()
}
