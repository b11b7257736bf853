package ui_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/api/ui"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// longLife is a cluster with one task, whose life is a journal that counts what is read of it.
type longLife struct {
	silent
	task    task.Task
	records []store.Record
	read    atomic.Int64
	marks   ledger.Milestones
}

const longID = events.TaskID("long/1")

// newLongLife returns a task of so many events, whose attempt runs on.
func newLongLife(t *testing.T, count int) *longLife {
	t.Helper()
	l := &longLife{records: testcluster.Life(t, longID, "noop", "a-aaaaaaaaaa", count-2)}
	l.task = task.Task{
		ID:        longID,
		Version:   events.Position{Ref: events.RefOf(uint64(count), 0)},
		Behavior:  "noop",
		Status:    task.Running,
		Substatus: task.SubRunning,
		Since:     2,
	}
	return l
}

func (l *longLife) Get(context.Context, events.TaskID) (task.Task, error) { return l.task, nil }
func (l *longLife) GetForgotten(context.Context, events.TaskID) (task.Task, error) {
	return l.task, nil
}

func (l *longLife) Explain(context.Context, events.TaskID) (e engine.Explanation, err error) {
	return e, nil
}

func (l *longLife) Ledger() *ledger.Ledger {
	return ledger.New(ledger.Config{
		Cluster:    store.Cluster{ID: "long", Shards: 1},
		Journal:    l,
		Owners:     ownerOf{silentOwners{}, l},
		Milestones: &l.marks,
	})
}

// ownerOf knows the one task.
type ownerOf struct {
	silentOwners
	l *longLife
}

func (o ownerOf) Task(_ context.Context, id events.TaskID) (t projection.Task, err error) {
	if id != longID {
		return t, task.ErrNotFound
	}
	t.ID, t.Kind = id, &projection.Kind{Behavior: "noop"}
	t.Created, t.Started, t.Last = events.RefOf(1, 0), events.RefOf(2, 0), events.RefOf(uint64(len(o.l.records)), 0)
	t.CreatedAt, t.Node = 1, "a-aaaaaaaaaa"
	return t, nil
}

func (l *longLife) First(context.Context, int) (uint64, error) { return 1, nil }

func (l *longLife) Entry(_ context.Context, _ int, number uint64) (store.Record, error) {
	l.read.Add(1)
	return l.records[number-1], nil
}

func (l *longLife) Read(_ context.Context, _ int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for _, rec := range l.records[min(max(from, 1)-1, uint64(len(l.records))):] {
			if l.read.Add(1); !yield(rec, nil) {
				return
			}
		}
	}
}

func (l *longLife) Backward(_ context.Context, _ int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for i := min(from, uint64(len(l.records))); i > 0; i-- {
			if l.read.Add(1); !yield(l.records[i-1], nil) {
				return
			}
		}
	}
}

// cost tells what a page of the task takes: entries that are read, bytes, allocations and time.
func (l *longLife) cost(t *testing.T, path string) (entries, bytes, allocations, took float64) {
	t.Helper()
	s := serveClient(t, l, ui.Config{})
	page := s.want(s.get("viewer", path), 200) // which warms it up
	s.wantNot(page, "This page is not whole")
	best := time.Hour
	l.read.Store(0)
	const times = 3
	for range times {
		began := time.Now()
		s.get("viewer", path)
		best = min(best, time.Since(began))
	}
	entries = float64(l.read.Load()) / times
	return entries, float64(len(page.text)), testing.AllocsPerRun(2, func() { s.get("viewer", path) }), best.Seconds()
}

// A day of a task that tells of its progress each second opens as the first quarter of an hour of it does.
func TestTask_Of86400EventsCostsAtMostThreeTimesOneOf1000(t *testing.T) {
	short, long := newLongLife(t, 1000), newLongLife(t, 86_400)
	path := "/ui/tasks/" + strings.ReplaceAll(string(longID), "/", "~")
	entries, bytes, allocations, took := short.cost(t, path)
	entries2, bytes2, allocations2, took2 := long.cost(t, path)
	t.Logf("%.0f and %.0f entries, %.0f and %.0f bytes, %.0f and %.0f allocations, %.4f and %.4f s",
		entries, entries2, bytes, bytes2, allocations, allocations2, took, took2)
	for what, is := range map[string][2]float64{
		"entries":     {entries, entries2},
		"bytes":       {bytes, bytes2},
		"allocations": {allocations, allocations2},
		"seconds":     {10 * took, took2}, // the machine may be busy
	} {
		if is[1] > 3*is[0] || is[0] == 0 {
			t.Errorf("%s: %f, of 1,000 events %f", what, is[1], is[0])
		}
	}
	s := serveClient(t, long, ui.Config{})
	const lane = `<p class="lane"><bdi>a</bdi></p>`
	newest := s.want(s.get("viewer", path), 200, `id="e-86400"`, `id="e-85401"`, "Older events", lane, `data-label="End">runs<`)
	s.wantNot(newest, `id="e-85400"`)
	_, rest, _ := strings.Cut(newest.text, `?cursor=`)
	cursor, _, _ := strings.Cut(rest, `"`)
	older := s.want(s.get("viewer", path+"?cursor="+cursor), 200, `id="e-85400"`, `id="e-84401"`, "Newest events", "Older events",
		lane, `data-label="End">goes on<`)
	s.wantNot(older, `id="e-85401"`)
}

func TestState_OfALongLifeReadsItFromTheBeginningOnceAlone(t *testing.T) {
	const last = 20_000
	l := newLongLife(t, last)
	s := serveClient(t, l, ui.Config{Within: time.Minute})
	at := "/ui/tasks/" + strings.ReplaceAll(string(longID), "/", "~") + "/state"
	s.want(s.get("viewer", at), 200, fmt.Sprintf(`max="%d"`, last), "After event 20\u202f000")
	first := l.read.Load()
	if first < last || first > 2*last { // and not once for the state, and once for the one before
		t.Errorf("the first look reads %d entries", first)
	}
	for _, seq := range []int{last - 1, 500, 10_000, 10_001, 10_999} {
		l.read.Store(0)
		s.want(s.get("viewer", fmt.Sprint(at, "?seq=", seq)), 200, `data-label="Field"><code>progress</code>`)
		if n := l.read.Load(); n > 2*(1000+600)+1100 { // two states, and the newest events
			t.Errorf("event %d: %d entries are read", seq, n)
		}
	}
}
