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
	whole, hash := p.String(), p.Heads[0].Hash.String()
	title, head, form := "the cluster's id, the time", "want shard, entry, hash, and form and digest", "leading zeros, hashes in capitals"
	for _, c := range []struct{ text, want string }{
		{"", title},
		{"taskledger checkpoint\n", title},
		{whole[1:], title},
		{strings.TrimSuffix(whole, "\n"), title},
		{whole + "\n", head},
		{whole + "0 0 " + hash + "\n", head},
		{whole + "-1 1 " + hash + "\n", head},
		{whole + "65536 1 " + hash + "\n", head},
		{whole + "1 1 00\n", head},
		{whole + "1 1 " + hash + " 3.1\n", head},
		{whole + "1 1 " + hash + " 3.1 00\n", head},
		{whole + "1 1 " + hash + " 3.1 " + strings.Repeat("0", 64) + "\n", head},
		{strings.ReplaceAll(whole, " 1 ", "  1 "), head},
		{strings.Replace(whole, "Z\n", "\n", 1), "want the form of RFC 3339 in UTC"},
		{strings.Replace(whole, "Z\n", "+00:00\n", 1), form},
		{whole + "01 1 " + hash + "\n", form},
		{whole + "1 1 " + strings.Repeat("AB", 32) + "\n", form},
	} {
		if got, err := ledger.ParseCheckpoint(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q; read as %+v", c.text, err, c.want, got)
		}
	}
	if _, err := ledger.ParseCheckpoint(whole + "1 1 " + hash + "\n"); err != nil {
		t.Errorf("a further head: %v", err)
	}
}
