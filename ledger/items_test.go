package ledger_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/item"
	"taskledger/ledger"
	"taskledger/task"
)

// itemStore is a name of a store in shard 1.
func itemStore(t *testing.T) string {
	for _, name := range []string{"crawl", "a", "b", "c", "d", "e", "f"} {
		if events.StoreItem(name, 1).Shard(pastShards) == 1 {
			return name
		}
	}
	t.Fatal("no store is in shard 1")
	return ""
}

// handOver adds three items, claims the oldest, which is the first, and removes it for a fourth; tasks run
// between. The third is replaced with it.
func (p *past) handOver(name string) {
	p.t.Helper()
	ctx := testcluster.Within(p.t)
	update := func(u *item.Update) {
		p.t.Helper()
		if _, err := p.node.Stores().Update(ctx, name, u); err != nil {
			p.t.Fatal(err)
		}
	}
	update(&item.Update{Client: 7, Key: "k", Adds: []item.Add{{Group: "g", Data: []byte("one")}, {Group: "later"}, {Group: "later", Data: []byte("\xff")}}})
	p.spread(2)
	claimed, err := p.node.Stores().Claim(ctx, name, &item.Claim{Client: 8, Key: "l", Group: "g", Duration: time.Hour})
	if err != nil || claimed == nil {
		p.t.Fatal(claimed, err)
	}
	p.spread(2)
	update(&item.Update{Client: 8, Deletes: []int64{claimed.ID}, Changes: []item.Change{{ID: 3}}, Adds: []item.Add{{Group: "g"}}})
}

func itemKinds(all []ledger.Event) (kinds []events.Kind) {
	for _, ev := range all {
		kinds = append(kinds, ev.Kind())
	}
	return kinds
}

// History, replay, export and verify cover items, from the journal and from the archive.
func TestItems_HaveAHistoryThatIsReplayedExportedAndVerified(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	name := itemStore(t)
	p.handOver(name)
	first, third := events.StoreItem(name, 1), events.StoreItem(name, 3)
	want := map[events.TaskID][]events.Kind{
		first: {events.KindItemAdded, events.KindItemReplaced, events.KindItemRemoved},
		third: {events.KindItemAdded, events.KindItemReplaced},
	}
	check := func(when string, c *engine.Client) {
		t.Helper()
		for id, want := range want {
			var got []ledger.Event
			for ev, err := range c.Ledger().History(testcluster.Within(t), id) {
				if err != nil {
					t.Fatalf("%s: history of %s: %v", when, id, err)
				}
				got = append(got, ev)
			}
			if !slices.Equal(itemKinds(got), want) || got[0].Behavior != "" {
				t.Errorf("%s: history of %s is %v, want %v", when, id, itemKinds(got), want)
			}
			if again := itemKinds(replayed(t, c, ledger.ReplayOptions{Task: id})); !slices.Equal(again, want) {
				t.Errorf("%s: replay of %s is %v, want %v", when, id, again, want)
			}
			var file bytes.Buffer
			if err := c.Ledger().ExportTask(testcluster.Within(t), id, &file, nil); err != nil {
				t.Fatalf("%s: export of %s: %v", when, id, err)
			}
			var shown []ledger.Event
			v, err := ledger.ReadExport(strings.NewReader(file.String()), func(ev ledger.Event) error { shown = append(shown, ev); return nil })
			if err != nil || v.Damage != "" || v.Events != uint64(len(want)) || !slices.Equal(itemKinds(shown), want) {
				t.Errorf("%s: the export of %s has damage %q at entry %d: %s, %v; %d events, shown %v", when, id, v.Damage, v.At, v.Problem, err, v.Events, itemKinds(shown))
			}
		}
		for _, id := range []events.TaskID{first, third} { // what is no task has no state of one
			_, atErr := c.Ledger().StateAt(testcluster.Within(t), id, time.Time{})
			_, afterErr := c.Ledger().StateAfter(testcluster.Within(t), id, 1)
			_, pageErr := c.Ledger().HistoryPage(testcluster.Within(t), id, ledger.HistoryOptions{States: true})
			for what, err := range map[string]error{"state": atErr, "state after an event": afterErr, "page with states": pageErr} {
				if !errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), "item of a store") {
					t.Errorf("%s: %s of %s: %v", when, what, id, err)
				}
			}
			page, err := c.Ledger().HistoryPage(testcluster.Within(t), id, ledger.HistoryOptions{Newest: true, Limit: 1})
			if err != nil || len(page.Events) != 1 || page.Next == "" || page.Events[0].Kind() != want[id][len(want[id])-1] {
				t.Errorf("%s: the newest page of %s: %+v, %v", when, id, page, err)
			}
		}
		all := replayed(t, c, ledger.ReplayOptions{Records: []events.Record{events.OfItem}})
		if len(all) != 7 {
			t.Errorf("%s: %d events of items, want 7: %v", when, len(all), itemKinds(all))
		}
		if got := replayed(t, c, ledger.ReplayOptions{Behavior: "job"}); slices.ContainsFunc(got, func(ev ledger.Event) bool { return ev.Kind().Record() == events.OfItem }) {
			t.Errorf("%s: items are of a behavior", when)
		}
		var file bytes.Buffer
		if err := c.Ledger().ExportShard(testcluster.Within(t), 1, &file, nil); err != nil {
			t.Fatal(err)
		}
		if v, err := ledger.VerifyExport(&file); err != nil || v.Damage != "" {
			t.Errorf("%s: the export of the shard: %+v, %v", when, v, err)
		}
		if v := verified(t, c, ledger.VerifyOptions{})[1]; v.Damage != "" {
			t.Errorf("%s: %+v", when, v)
		}
		for _, err := range c.Ledger().History(testcluster.Within(t), events.StoreItem(name, 9)) {
			if !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%s: history of an item that never was: %v", when, err)
			}
		}
	}
	check("in the journal", p.node.Client)
	p.keep(1)
	check("in the archive", p.reader(p.archive))
}
