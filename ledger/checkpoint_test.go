package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/ledger"
)

func TestCheckpoint_TextIsReadAsWritten(t *testing.T) {
	t.Parallel()
	p := ledger.Checkpoint{Cluster: "abc", Heads: []ledger.CheckpointHead{{Shard: 0, Entry: 1, Hash: events.Hash{1}}, {Shard: 15, Entry: 1 << 40, Hash: events.Hash{2}}}}
	got, err := ledger.ParseCheckpoint(p.String())
	if err != nil || got.Cluster != p.Cluster || !slices.Equal(got.Heads, p.Heads) {
		t.Errorf("%+v, %v, want %+v", got, err, p)
	}
	for _, text := range []string{"", "taskledger checkpoint\n", p.String()[1:], strings.TrimSuffix(p.String(), "\n"), p.String() + "\n", p.String() + "0 0 " + p.Heads[0].Hash.String() + "\n",
		p.String() + "-1 1 " + p.Heads[0].Hash.String() + "\n", p.String() + "1 1 00\n", strings.ReplaceAll(p.String(), " ", "  ")} {
		if got, err := ledger.ParseCheckpoint(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
