package ui_test

import (
	"context"
	"fmt"
	"html"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api/apitest"
	"taskledger/api/ui"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
)

// ask has the API do something, which must succeed.
func (s *server) ask(secret, path, body string) {
	s.t.Helper()
	if got := apitest.Ask(s.api, secret, http.MethodPost, path, body); got.Code >= 300 {
		s.t.Fatalf("%s: %d %s", path, got.Code, got.Body)
	}
}

func TestAudit_OfAnEmptyClusterHasReadAll(t *testing.T) {
	s := serve(t)
	s.want(s.get("viewer", "/ui/audit"), 200, "Nothing was found.", "All that the journal and its archive hold was read.")
	s.want(s.get("viewer", "/ui/settings"), 200, "Nothing is paused", "Nothing was found.")
}

func TestAudit_TellsWhoHasDoneWhatNewestFirst(t *testing.T) {
	s := serve(t)
	s.begin("sleep", "long", `{"duration":"1h"}`)
	s.ask("operator", "/v1/tasks/long/suspend", `{"reason":"<first>"}`)
	s.ask("admin", "/v1/tasks/long/cancel", `{"reason":"second"}`)
	got := s.want(s.get("viewer", "/ui/audit"), 200, "Suspended", "CancelRequested", "olga", "ada", "&lt;first&gt;", `href="/ui/tasks/long"`)
	if strings.Index(got.text, "CancelRequested") > strings.Index(got.text, "Suspended</td>") {
		t.Errorf("the older one comes first: %s", clip(got.text))
	}
	s.wantNot(got, "<first>", ">Created<", ">Started<")
	s.wantNot(s.get("viewer", "/ui/audit?by=ada"), "Suspended</td>")
	s.want(s.get("viewer", "/ui/audit?by=nobody"), 200, "Nothing was found.", `value="nobody"`)
	s.want(s.get("viewer", "/ui/audit?by=olga&before=noon"), 400, "<li>before: ", `value="olga"`)
}

func TestAudit_ComesInPagesThatLeaveNothingOut(t *testing.T) {
	s := serve(t)
	const all = 250
	for i := range all / 2 {
		s.ask("operator", "/v1/behaviors/noop/pause", fmt.Sprintf(`{"reason":"n%d"}`, i))
		s.ask("operator", "/v1/behaviors/noop/unpause", "")
	}
	s.want(s.get("viewer", "/ui/settings"), 200, "The newest 200 are shown; there may be older ones.")
	if seen, pages := s.pagesOfAudit("/ui/audit"); seen != all || pages != 2 {
		t.Errorf("%d events on %d pages", seen, pages)
	}
}

// pagesOfAudit counts the events of a page of the audit and those that follow it, which must be different ones, and
// the pages.
func (s *server) pagesOfAudit(path string) (shown, pages int) {
	s.t.Helper()
	seen := map[string]bool{}
	twice := 0
	for ; path != "" && pages < 9; pages++ {
		got := s.want(s.get("viewer", path), 200)
		for _, row := range regexp.MustCompile(`<tr id="p-[^"]*`).FindAllString(got.text, -1) {
			if seen[row] {
				twice++
			}
			seen[row] = true
		}
		if path = ""; strings.Contains(got.text, "Older events") {
			_, rest, _ := strings.Cut(got.text, `<p><a class="button" href="`)
			rest, _, _ = strings.Cut(rest, `"`)
			path = html.UnescapeString(rest)
		}
	}
	if twice > 0 {
		s.t.Errorf("%d events are on two pages", twice)
	}
	return len(seen), pages
}

// busyPast has a journal of which an entry takes for ever to read.
type busyPast struct {
	longLife
	shard uint16
	stuck uint64 // number of that entry
}

func (p *busyPast) Ledger() *ledger.Ledger {
	return ledger.New(ledger.Config{
		Cluster:  store.Cluster{ID: "busy", Shards: 1},
		Journal:  p,
		Owners:   ownerOf{silentOwners{}, &p.longLife},
		Revision: func(context.Context) (int64, error) { return int64(len(p.records)), nil },
	})
}

func (p *busyPast) Entry(ctx context.Context, shard int, number uint64) (store.Record, error) {
	if number > uint64(len(p.records)) {
		return store.Record{}, store.ErrTrimmed
	}
	return p.longLife.Entry(ctx, shard, number)
}

func (p *busyPast) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for rec, err := range p.longLife.Read(ctx, shard, from) {
			if rec.Number == p.stuck {
				rec, err = hang[store.Record](ctx)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// suspends adds an entry in which a task is suspended for a reason.
func (p *busyPast) suspends(t *testing.T, at time.Time, reason string) {
	t.Helper()
	p.suspendsAll(t, at, reason, longID)
}

// suspendsAll adds an entry in which tasks are suspended for a reason.
func (p *busyPast) suspendsAll(t *testing.T, at time.Time, reason string, ids ...events.TaskID) {
	t.Helper()
	number := uint64(len(p.records)) + 1
	var b events.Builder
	b.Reset(events.Entry{Shard: p.shard, Number: number, Epoch: 1, Owner: "owner", Time: events.MillisOf(at)})
	origin := b.AddOrigin(events.Origin{Sender: "s", Number: number, Caller: events.Caller{Principal: "olga"}})
	for _, id := range ids {
		b.Add(events.Event{
			Task:   id,
			Seq:    number,
			Prev:   events.RefOf(number-1, 0),
			Origin: origin,
			Body:   &events.Suspended{Reason: reason},
		})
	}
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	p.records = append(p.records, store.Record{Head: store.Head{Number: number, Revision: int64(number)}, Data: data})
}

// However busy a cluster is, the audit shows the last seconds, and what it has read of a stretch that takes too long.
func TestAudit_ShowsWhatItHasReadWhereReadingTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &busyPast{stuck: 3}
		now := time.Now()
		for _, seconds := range []time.Duration{3600, 45, 40, 20, 5} {
			ago := seconds * time.Second
			p.suspends(t, now.Add(-ago), "ago "+ago.String())
		}
		s := serveClient(t, p, ui.Config{})
		got := s.want(s.get("viewer", "/ui/audit"), 200, "ago 5s", "ago 45s",
			"are not all shown: reading further back takes too long",
			now.Add(-10*time.Second).UTC().Format("2006-01-02T15:04:05.000Z"))
		s.wantNot(got, "ago 40s", "ago 1h", "ago 20s")
		p.stuck = 1
		s.want(s.get("viewer", "/ui/audit"), 200, "ago 5s", "ago 20s", "ago 40s", "ago 45s")
	})
}

// A change of many tasks is one entry, and so of one millisecond; an owner's clock may be ahead of the page's.
func TestAudit_LeavesNothingOfAMillisecondOut(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, 0, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			p := &busyPast{}
			at := time.Now().Add(ahead)
			p.suspends(t, at.Add(-time.Millisecond), "before")
			var ids []events.TaskID
			for i := range 250 {
				ids = append(ids, events.TaskID(fmt.Sprint("long/", i)))
			}
			p.suspendsAll(t, at, "all", ids...)
			p.suspendsAll(t, at, "again", ids...)
			p.suspends(t, at.Add(time.Millisecond), "after")
			s := serveClient(t, p, ui.Config{})
			if seen, pages := s.pagesOfAudit("/ui/audit"); seen != 502 || pages != 3 {
				t.Errorf("%s: %d events on %d pages", ahead, seen, pages)
			}
			s.want(s.get("viewer", "/ui/audit?last=noon"), 400, "<li>last: ")
		})
	}
}

// twoClocks is a journal of two shards whose owners have clocks that differ.
type twoClocks struct {
	busyPast
	other busyPast
}

func (c *twoClocks) Ledger() *ledger.Ledger {
	return ledger.New(ledger.Config{
		Cluster:  store.Cluster{ID: "clocks", Shards: 2},
		Journal:  c,
		Owners:   ownerOf{silentOwners{}, &c.longLife},
		Revision: func(context.Context) (int64, error) { return int64(len(c.records) + len(c.other.records)), nil },
	})
}

func (c *twoClocks) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	if shard == 1 {
		return c.other.Read(ctx, shard, from)
	}
	return c.busyPast.Read(ctx, shard, from)
}

// What was committed earlier may have a later time: pages go by time alone.
func TestAudit_LeavesNothingOutWhereClocksDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &twoClocks{other: busyPast{shard: 1}}
		const each = 200
		began := time.Now().Add(-time.Hour)
		for i := range each {
			at := began.Add(time.Duration(i) * 10 * time.Millisecond)
			c.suspends(t, at, "ahead")
			c.records[i].Revision = int64(2*i + 1)
			c.other.suspends(t, at.Add(-500*time.Millisecond), "behind")
			c.other.records[i].Revision = int64(2*i + 2)
		}
		s := serveClient(t, c, ui.Config{})
		if shown, pages := s.pagesOfAudit("/ui/audit"); shown != 2*each || pages < 2 {
			t.Errorf("%d events on %d pages", shown, pages)
		}
	})
}
