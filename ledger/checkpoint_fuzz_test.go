package ledger

import (
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/store"
)

// FuzzParseCheckpoint reads any text: what is accepted is what String returns, to the byte, because it was signed.
func FuzzParseCheckpoint(f *testing.F) {
	f.Add(Checkpoint{Cluster: "c", Heads: []CheckpointHead{{3, 17, events.Hash{1}, events.Hash{2}, "3.1"}, {Shard: 4, Entry: 1}}}.String())
	f.Add(Checkpoint{}.String())
	f.Add("taskledger checkpoint\nc\n2027-01-15T08:00:00Z\n03 017 " + strings.Repeat("AB", 32) + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseCheckpoint(text)
		if err == nil && p.String() != text {
			t.Errorf("%q is read as %q", text, p)
		}
		if _, err := headsOf([]Checkpoint{p}, store.Cluster{ID: p.Cluster, Shards: store.MaxShards}); err == nil && len(p.Heads) > 0 && p.Heads[0].Shard >= store.MaxShards {
			t.Errorf("shard %d", p.Heads[0].Shard)
		}
	})
}
