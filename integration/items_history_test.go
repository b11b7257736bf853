package integration_test

import (
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/item"
	"taskledger/ledger"
)

// What happened to an item is told by its first id, through all its later ones: by history, by an export that verifies
// without the cluster, and after snapshots and trims that leave no entry of it in the journal.
func TestItems_HistoryAndExportsTellTheWholeLifeOfAnItem(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{JetStream: true, Shards: 1})
	l := bulkyTally()
	a := c.StartNode("a", archives(t), l.run())
	reader := archiveReader(t, c)
	putItems(t, a, "s", "g", "one", "stays")
	it := claimItem(t, a, "s", &item.Claim{Client: bob, Group: "g", Duration: time.Hour})
	updateItems(t, a, "s", &item.Update{Client: bob, Deletes: []int64{it.ID}})
	first := events.StoreItem("s", 1)
	if string(it.Data) == "stays" {
		first = events.StoreItem("s", 2)
	}
	f := startFlowOf(t, l, megabytes, a)
	testcluster.AwaitShards(t, a.Client, "a journal without the item", trimmedBeyond(10))
	l.wantOnce(t, a.Client, f.end())
	for name, at := range map[string]*engine.Client{"node": a.Client, "client": reader.Client} {
		var kinds []string
		for ev, err := range at.Ledger().History(within(t, soon), first) {
			ok(t, err)
			kinds = append(kinds, ev.Kind().String())
		}
		if got := strings.Join(kinds, " "); got != "ItemAdded ItemReplaced ItemRemoved" {
			t.Errorf("%s: the history of %s is %q", name, first, got)
		}
	}
	var export strings.Builder
	ok(t, reader.Ledger().ExportTask(within(t, soon), first, &export, nil))
	if v, err := ledger.VerifyExport(strings.NewReader(export.String())); err != nil || v.Damage != "" {
		t.Errorf("the export of %s: %+v, %v", first, v, err)
	}
	wantWhole(t, a.Client)

	// The next owner has the items from a snapshot.
	b := c.StartNode("b", archives(t), l.run())
	a.Stop()
	got, err := b.Stores().Items(within(t, soon), "s", []int64{1, 2, 3}, true)
	ok(t, err)
	left := 0
	for _, i := range got {
		if i != nil && string(i.Data) == "stays" || i != nil && string(i.Data) == "one" {
			left++
		}
	}
	if left != 1 {
		t.Errorf("the next owner has %v, want the one that was left", got)
	}
	if made := putItems(t, b, "s", "g", "next"); made[0].ID != 4 {
		t.Errorf("the next id is %d, want 4", made[0].ID)
	}
}
