package ledger_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/ledger"
)

func TestCheckpoint_TextIsReadAsWritten(t *testing.T) {
	t.Parallel()
	p := ledger.Checkpoint{Cluster: "abc", Time: time.Unix(1_800_000_000, 0).UTC(), Heads: []ledger.CheckpointHead{
		{Shard: 0, Entry: 1, Hash: events.Hash{1}},
		{Shard: 15, Entry: 1 << 40, Hash: events.Hash{2}, State: events.Hash{3}, Form: "3.1"},
	}}
	got, err := ledger.ParseCheckpoint(p.String())
	if err != nil || got.Cluster != p.Cluster || got.Time != p.Time || !slices.Equal(got.Heads, p.Heads) {
		t.Errorf("%+v, %v, want %+v", got, err, p)
	}
	for _, text := range []string{"", "taskledger checkpoint\n", p.String()[1:], strings.TrimSuffix(p.String(), "\n"), p.String() + "\n", p.String() + "0 0 " + p.Heads[0].Hash.String() + "\n",
		p.String() + "-1 1 " + p.Heads[0].Hash.String() + "\n", p.String() + "1 1 00\n",
		p.String() + "1 1 " + p.Heads[0].Hash.String() + " 3.1\n", strings.Replace(p.String(), "Z\n", "+00:00\n", 1), strings.ReplaceAll(p.String(), " ", "  ")} {
		if got, err := ledger.ParseCheckpoint(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
