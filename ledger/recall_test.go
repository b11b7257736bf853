package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"testing"

	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// paper is the journal of a cluster of one shard, written by a test.
type paper struct {
	t       testing.TB
	entries []store.Record
	trimmed uint64 // the entries up to it are gone
	read    int    // entries, one by one or backward
	asked   int    // requests that these and other reads would have taken
	last    map[events.TaskID]events.Event
	builder events.Builder
}

func newPaper(t testing.TB) *paper { return &paper{t: t, last: map[events.TaskID]events.Event{}} }

// happened is an event to be written.
type happened struct {
	task events.TaskID
	body events.Body
}

// write appends an entry.
func (p *paper) write(all ...happened) {
	p.t.Helper()
	number := uint64(len(p.entries) + 1)
	p.builder.Reset(events.Entry{Number: number, Epoch: 1, Owner: "owner", Time: events.Millis(number), Prev: p.builder.Entry.Hash})
	for i, h := range all {
		before := p.last[h.task]
		if h.body.Kind() == events.KindCreated {
			before = events.Event{}
		}
		ev := events.Event{Task: h.task, Seq: before.Seq + 1, Prev: before.Position.Ref, Body: h.body}
		p.builder.Add(ev)
		ev.Position.Ref = events.RefOf(number, i)
		p.last[h.task] = ev
	}
	data, err := p.builder.Seal()
	if err != nil {
		p.t.Fatal(err)
	}
	p.entries = append(p.entries, store.Record{Head: store.Head{Number: number, Revision: int64(number)}, Data: data})
}

func (p *paper) create(id events.TaskID, behavior string) happened {
	policy, err := events.Policy{}.Complete()
	if err != nil {
		p.t.Fatal(err)
	}
	return happened{id, &events.Created{Behavior: behavior, Policy: policy, NotBefore: 1}}
}

func (p *paper) First(context.Context, int) (uint64, error) { return p.trimmed + 1, nil }

func (p *paper) Entry(_ context.Context, _ int, number uint64) (store.Record, error) {
	p.read++
	p.asked++
	if number <= p.trimmed || number > uint64(len(p.entries)) {
		return store.Record{}, store.ErrTrimmed
	}
	return p.entries[number-1], nil
}

// inRequest counts the entries for which etcd is asked at once.
const inRequest = 16

func (p *paper) Read(_ context.Context, _ int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if from <= p.trimmed {
			yield(store.Record{}, store.ErrTrimmed)
			return
		}
		for i, rec := range p.entries[min(from-1, uint64(len(p.entries))):] {
			if i%inRequest == 0 {
				p.asked++
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func (p *paper) Backward(_ context.Context, _ int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for number := from; number > 0; number-- {
			if (from-number)%inRequest == 0 {
				p.asked++
			}
			if number <= p.trimmed || number > uint64(len(p.entries)) {
				yield(store.Record{}, store.ErrTrimmed)
				return
			}
			p.read++
			if !yield(p.entries[number-1], nil) {
				return
			}
		}
	}
}

func (p *paper) Follow(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(func(store.Record, error) bool) { <-ctx.Done() }
}

// knower answers for owners that know some tasks.
type knower struct {
	ledger.Owners
	tasks map[events.TaskID]projection.Task
	asked int
}

func (k *knower) Task(_ context.Context, id events.TaskID) (projection.Task, error) {
	k.asked++
	t, known := k.tasks[id]
	if !known {
		return t, task.ErrNotFound
	}
	return t, nil
}

func (p *paper) ledger(o ledger.Owners) *ledger.Ledger {
	return ledger.New(ledger.Config{Cluster: store.Cluster{Shards: 1}, Journal: p, Owners: o,
		Revision: func(context.Context) (int64, error) { return int64(len(p.entries)), nil }})
}

// follow returns the events after an entry, up to the last one.
func (p *paper) follow(l *ledger.Ledger, after uint64) (all []ledger.Event) {
	p.t.Helper()
	for b, err := range l.Follow(p.t.Context(), ledger.Cursor{after}) {
		if err != nil {
			p.t.Fatal(err)
		}
		if all = append(all, b.Events...); b.Entry == uint64(len(p.entries)) {
			break
		}
	}
	return all
}

// wholeLife has every kind of event of an attempt, on two nodes, and those between attempts.
func (p *paper) wholeLife() (want []string) {
	const a, b = "a-aaaaaaaaaa", "b-bbbbbbbbbb"
	next := func() events.Millis { return events.Millis(len(p.entries) + 2) } // the time of the entry after the one to be written
	write := func(node string, body events.Body) {
		p.write(happened{"x", body})
		want = append(want, fmt.Sprint(body.Kind(), " work ", node))
	}
	p.write(p.create("x", "work"))
	want = append(want, "Created work ")
	write("", &events.Suspended{})
	write("", &events.Resumed{})
	write("", &events.Merged{Params: events.JSON([]byte("1"))})
	write(a, &events.Started{Node: a, Attempt: 1})
	write(a, &events.Progressed{Done: 1})
	write(a, &events.Lost{Until: next(), Node: a})
	write(b, &events.Started{Node: b, Attempt: 2})
	write(b, &events.Released{Until: next(), Node: b})
	write(a, &events.Started{Node: a, Attempt: 3})
	write(a, &events.Snoozed{Until: next() + 100})
	write("", &events.Rescheduled{At: next()})
	write(b, &events.Started{Node: b, Attempt: 4})
	write(b, &events.Failed{Next: next()})
	write(a, &events.Started{Node: a, Attempt: 5})
	write("", &events.CancelRequested{})
	write(a, &events.Succeeded{Run: 1})
	write("", &events.Rescheduled{At: next()})
	write(b, &events.Started{Node: b, Attempt: 6})
	write(b, &events.Released{Until: next(), Node: b})
	write("", &events.Failed{Error: events.Error{Code: events.CodeCancelled}, Run: 2}) // it waited
	write("", &events.Deleted{})
	return want
}

func told(all []ledger.Event) (texts []string) {
	for _, ev := range all {
		texts = append(texts, fmt.Sprint(ev.Kind(), " ", ev.Behavior, " ", ev.Node))
	}
	return texts
}

// Whoever begins to follow anywhere is told of every event what only earlier ones say.
func TestEvents_TellBehaviorAndNodeWhereverAFollowerBegins(t *testing.T) {
	p := newPaper(t)
	want := p.wholeLife()
	for after := range p.entries {
		if got := told(p.follow(p.ledger(nil), uint64(after))); fmt.Sprint(got) != fmt.Sprint(want[after:]) {
			t.Errorf("after entry %d:\n%q, want\n%q", after, got, want[after:])
		}
		var replayed []ledger.Event
		for ev, err := range p.ledger(nil).Replay(t.Context(), ledger.ReplayOptions{From: events.Millis(after + 1).Time()}) {
			if err != nil {
				t.Fatal(err)
			}
			replayed = append(replayed, ev)
		}
		if got := told(replayed); fmt.Sprint(got) != fmt.Sprint(want[after:]) {
			t.Errorf("replay from entry %d:\n%q, want\n%q", after+1, got, want[after:])
		}
	}
	for _, o := range []ledger.ReplayOptions{{Task: "x"}, {Behavior: "work"}} {
		var replayed []ledger.Event
		for ev, err := range p.ledger(nil).Replay(t.Context(), o) {
			if err != nil {
				t.Fatal(err)
			}
			replayed = append(replayed, ev)
		}
		if got := told(replayed); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("replay of %+v:\n%q, want\n%q", o, got, want)
		}
	}
	var history []ledger.Event
	for ev, err := range p.ledger(nil).History(t.Context(), "x") {
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, ev)
	}
	if got := told(history); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("history:\n%q, want\n%q", got, want)
	}
}

// ailing is a journal of which an entry cannot be read.
type ailing struct {
	*paper
	entry uint64
	err   error
}

func (a *ailing) Entry(ctx context.Context, shard int, number uint64) (store.Record, error) {
	if number == a.entry && a.err != nil {
		return store.Record{}, a.err
	}
	return a.paper.Entry(ctx, shard, number)
}

// What cannot be read just now is no reason to tell less for ever: the follower ends, and is told all when it comes
// again.
func TestFollow_TellsLessOnlyOfWhatIsGone(t *testing.T) {
	p := newPaper(t)
	want := p.wholeLife()
	const after = 5
	for _, c := range []struct {
		err  error
		told string // of the first event
	}{{fmt.Errorf("read: %w", store.ErrUnavailable), ""}, {errors.New("reset by peer"), ""}, {store.ErrTrimmed, "Progressed  a-aaaaaaaaaa"}, {events.ErrDamaged, "Progressed  a-aaaaaaaaaa"}} {
		journal := &ailing{paper: p, entry: 1, err: c.err}
		l := ledger.New(ledger.Config{Cluster: store.Cluster{Shards: 1}, Journal: journal,
			Revision: func(context.Context) (int64, error) { return int64(len(p.entries)), nil }})
		for b, err := range l.Follow(t.Context(), ledger.Cursor{after}) {
			switch {
			case c.told == "" && !errors.Is(err, c.err):
				t.Errorf("%v: told %q, %v; want the error", c.err, told(b.Events), err)
			case c.told != "" && (err != nil || told(b.Events)[0] != c.told):
				t.Errorf("%v: told %q, %v; want %q", c.err, told(b.Events), err, c.told)
			}
			break
		}
		if journal.err = nil; c.told != "" {
			continue
		}
		for b, err := range l.Follow(t.Context(), ledger.Cursor{after}) {
			if err != nil || told(b.Events)[0] != want[after] {
				t.Errorf("after %v: told %q, %v; want %q", c.err, told(b.Events), err, want[after])
			}
			break
		}
	}
}

// An attempt that tells of its progress for days has its beginning far back. The owner is asked for it, and without an
// answer the search has an end.
func TestFollow_ReadsSoManyEntriesOfATaskAtMost(t *testing.T) {
	const progress, node = 3000, "a-aaaaaaaaaa"
	p := newPaper(t)
	p.write(p.create("x", "work"))
	p.write(happened{"x", &events.Started{Node: node, Attempt: 1}})
	for i := range progress {
		p.write(happened{"x", &events.Progressed{Done: int64(i)}})
	}
	running := projection.Task{
		ID:          "x",
		Kind:        &projection.Kind{Behavior: "work"},
		Created:     events.RefOf(1, 0),
		LastAttempt: projection.LastAttempt{Started: events.RefOf(2, 0), Node: node},
		Last:        p.last["x"].Position.Ref,
	}
	another := running
	another.Created = p.last["x"].Position.Ref + 1
	another.Last = another.Created
	for name, c := range map[string]struct {
		owners *knower
		after  uint64
		want   string
		reads  int // most
	}{
		"near":                     {&knower{}, 3, "work " + node, 4},
		"far, the owner knows":     {&knower{tasks: map[events.TaskID]projection.Task{"x": running}}, progress, "work " + node, 20},
		"rather far, nobody knows": {&knower{}, 900, "work " + node, 1000},
		"far, nobody knows":        {&knower{}, progress, " ", 1030},
		"far, in an earlier life":  {&knower{tasks: map[events.TaskID]projection.Task{"x": another}}, progress, " ", 1030},
	} {
		p.read = 0
		for _, ev := range p.follow(p.ledger(c.owners), c.after) {
			if got := ev.Behavior + " " + ev.Node; got != c.want {
				t.Errorf("%s: event %s: told %q, want %q", name, ev.Position, got, c.want)
				break
			}
		}
		if p.read > c.reads || c.owners.asked > 1 {
			t.Errorf("%s: %d entries were read, at most %d are; %d questions", name, p.read, c.reads, c.owners.asked)
		}
	}
}

// A replay of one task goes back as far as it takes.
func TestReplay_OfOneTaskTellsBehaviorAndNodeFromTheMiddleOn(t *testing.T) {
	const node = "a-aaaaaaaaaa"
	p := newPaper(t)
	p.begin("x")
	p.progress("x", 2000, 0)
	from := events.Millis(1900)
	for task, want := range map[events.TaskID]string{"x": "work " + node, "": " "} {
		count := 0
		for ev, err := range p.ledger(&knower{}).Replay(t.Context(), ledger.ReplayOptions{Task: task, From: from.Time()}) {
			if err != nil {
				t.Fatal(err)
			}
			if got := ev.Behavior + " " + ev.Node; ev.Task == "x" && got != want {
				t.Fatalf("task %q: event %s is told with %q, want %q", task, ev.Position, got, want)
			}
			count++
		}
		if count < 100 {
			t.Errorf("task %q: %d events", task, count)
		}
	}
}

// A replay of one task remembers it after each of its ends.
func TestReplay_OfOneTaskThatEndsAgainAndAgainReadsNothingTwice(t *testing.T) {
	p := newPaper(t)
	p.write(p.create("x", "work"))
	for run := range uint32(100) {
		p.write(happened{"x", &events.Started{Node: "a-aaaaaaaaaa", Attempt: 1}})
		p.write(happened{"x", &events.Succeeded{Run: run + 1}})
		p.write(happened{"x", &events.Rescheduled{At: events.Millis(len(p.entries) + 2)}})
	}
	if all := p.replayed("x"); all[len(all)-1].Behavior != "work" || p.read > 0 {
		t.Errorf("%d entries were read again, and the last event is of %q", p.read, all[len(all)-1].Behavior)
	}
}

// What a follower remembers is bounded, and what it has forgotten is read again.
func TestFollow_RemembersSoManyTasksAtMost(t *testing.T) {
	const tasks, inEntry = 100_000, 500
	p := newPaper(t)
	id := func(i int) events.TaskID { return events.TaskID(fmt.Sprintf("task-%021d", i)) }
	for i := 0; i < tasks; i += inEntry {
		var all []happened
		for j := range inEntry {
			all = append(all, p.create(id(i+j), fmt.Sprint("work-", j%7)))
		}
		p.write(all...)
	}
	created := len(p.entries)
	for i := 0; i < tasks; i += inEntry {
		var all []happened
		for j := range inEntry {
			all = append(all, happened{id(i + j), &events.Started{Node: "a-aaaaaaaaaa", Attempt: 1}})
		}
		p.write(all...)
	}
	p.last = nil
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, most, at := heap(), int64(0), 0
	for b, err := range p.ledger(nil).Follow(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		for i, ev := range b.Events {
			if ev.Behavior != fmt.Sprint("work-", i%7) || (ev.Node == "") != (ev.Kind() == events.KindCreated) {
				t.Fatalf("event %s of %s: told %q, %q", ev.Position, ev.Task, ev.Behavior, ev.Node)
			}
		}
		if at++; at%40 == 0 {
			most = max(most, heap()-before)
		}
		if at == len(p.entries) {
			break
		}
	}
	t.Logf("%d bytes at most, %d entries read again", most, p.read)
	if most > 12<<20 {
		t.Errorf("%d bytes were held for %d tasks", most, tasks)
	}
	if p.read > created {
		t.Errorf("%d entries were read again, of %d", p.read, created)
	}
}
