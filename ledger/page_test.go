package ledger_test

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/ledger"
	"taskledger/ledger/pagecursor"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

const aNode = "a-aaaaaaaaaa"

// begin writes the first events of a task that runs from then on.
func (p *paper) begin(id events.TaskID) {
	p.t.Helper()
	p.write(p.create(id, "work"))
	p.write(happened{id, &events.Started{Node: aNode, Attempt: 1}})
}

// progress writes so many events of a task that runs, each followed by so many entries of another task.
func (p *paper) progress(id events.TaskID, n, between int) {
	p.t.Helper()
	if p.last["other"].Seq == 0 {
		p.begin("other")
	}
	for i := range n {
		p.write(happened{id, &events.Progressed{Done: int64(i)}})
		for range between {
			p.write(happened{"other", &events.Progressed{}})
		}
	}
}

// seq is the number of the only event of an entry.
func (p *paper) seq(entry uint64) uint64 {
	return testcluster.Decoded(p.t, p.entries[entry-1].Data).Events[0].Seq
}

// owner answers for the owner of the tasks, as far as a history needs it.
func (p *paper) owner(t testing.TB) *knower {
	t.Helper()
	k := &knower{tasks: map[events.TaskID]projection.Task{}}
	s := projection.NewShard(0)
	for _, rec := range p.entries {
		e := testcluster.Decoded(t, rec.Data)
		if err := s.Replay(e); err != nil {
			t.Fatal(err)
		}
	}
	for now := range s.Tasks() {
		k.tasks[now.ID] = *now
	}
	return k
}

// told returns what the events of a task are told to be, by a replay of everything.
func (p *paper) replayed(id events.TaskID) (all []ledger.Event) {
	p.t.Helper()
	for ev, err := range p.ledger(nil).Replay(p.t.Context(), ledger.ReplayOptions{Task: id}) {
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, ev)
	}
	return all
}

// paged reads page after page, each by a call of its own, until the error or the end.
func paged(t *testing.T, l *ledger.Ledger, id events.TaskID, o ledger.HistoryOptions) (all []ledger.Event, states []task.Task, err error) {
	t.Helper()
	for {
		page, err := l.HistoryPage(t.Context(), id, o)
		if err != nil {
			return all, states, err
		}
		if most := cmp.Or(o.Limit, 100); len(page.Events) > most || page.Next != "" && len(page.Events) == 0 {
			t.Fatalf("a page of %d events, at most %d, and %q", len(page.Events), most, page.Next)
		}
		all, states = append(all, page.Events...), append(states, page.States...)
		if page.Next == "" {
			return all, states, nil
		}
		o.Cursor = page.Next
	}
}

// places returns where events stand, and what is told of them.
func places(all []ledger.Event) (texts []string) {
	for _, ev := range all {
		texts = append(texts, fmt.Sprint(ev.Position, " ", ev.Seq, " ", ev.Kind(), " ", ev.Behavior, " ", ev.Node))
	}
	return texts
}

// same reports the first difference.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("%s: ends before %q, after %d", what, want[i], i)
		case i >= len(want):
			t.Errorf("%s: %q follows the end", what, got[i])
		case got[i] != want[i]:
			t.Errorf("%s: event %d is %q, want %q", what, i, got[i], want[i])
		default:
			continue
		}
		return
	}
}

// lives are journals with the task "x", whose events stand close together or far apart.
var lives = map[string]func(*paper){
	"every kind of event": func(p *paper) { p.wholeLife() },
	"close together":      func(p *paper) { p.begin("x"); p.progress("x", 700, 0) },
	"not far apart":       func(p *paper) { p.begin("x"); p.progress("x", 300, 9) },
	"far apart":           func(p *paper) { p.begin("x"); p.progress("x", 290, 70) },
	"by chance": func(p *paper) {
		p.begin("x")
		for i := range 600 {
			p.progress("x", 1, i*7919%140)
		}
	},
	"in bursts": func(p *paper) {
		p.begin("x")
		for range 5 {
			p.progress("x", 120, 0)
			p.progress("x", 1, 200)
		}
	},
	"created long before it starts": func(p *paper) {
		p.write(p.create("x", "work"))
		p.begin("other")
		p.progress("other", 500, 0)
		p.write(happened{"x", &events.Started{Node: aNode, Attempt: 1}})
		p.progress("x", 600, 0)
	},
	"many in an entry": func(p *paper) {
		p.begin("x")
		for range 30 {
			p.write(slices.Repeat([]happened{{"x", &events.Progressed{}}}, 20)...)
		}
	},
}

func TestHistory_InPagesIsTheWholeInEitherOrder(t *testing.T) {
	for name, write := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPaper(t)
			write(p)
			want := places(p.replayed("x"))
			backward := slices.Clone(want)
			slices.Reverse(backward)
			for who, o := range map[string]ledger.Owners{"its owner answers": p.owner(t), "nobody answers": nil} {
				l := p.ledger(o)
				var whole []ledger.Event
				for ev, err := range l.History(t.Context(), "x") {
					if err != nil {
						t.Fatal(err)
					}
					whole = append(whole, ev)
				}
				same(t, who+": history", places(whole), want)
				for _, limit := range []int{37, 256, 0, ledger.MaxHistoryPage} {
					oldest, _, err := paged(t, l, "x", ledger.HistoryOptions{Limit: limit})
					if err != nil {
						t.Fatal(err)
					}
					same(t, fmt.Sprint(who, ": pages of ", limit, ", oldest first"), places(oldest), want)
					newest, _, err := paged(t, l, "x", ledger.HistoryOptions{Limit: limit, Newest: true})
					if err != nil {
						t.Fatal(err)
					}
					same(t, fmt.Sprint(who, ": pages of ", limit, ", newest first"), places(newest), backward)
				}
			}
		})
	}
}

func TestHistory_PagesInOneCallAreThoseOfCallsOneByOne(t *testing.T) {
	p := newPaper(t)
	lives["in bursts"](p)
	l := p.ledger(nil)
	for _, newest := range []bool{false, true} {
		o := ledger.HistoryOptions{Limit: 50, Newest: newest}
		for page, err := range l.HistoryPages(t.Context(), "x", o) {
			if err != nil {
				t.Fatal(err)
			}
			alone, err := l.HistoryPage(t.Context(), "x", o)
			if err != nil || alone.Next != page.Next {
				t.Fatalf("alone it ends at %q, %v; want %q", alone.Next, err, page.Next)
			}
			same(t, "a page", places(alone.Events), places(page.Events))
			o.Cursor = page.Next
		}
		if o.Cursor != "" {
			t.Errorf("newest first %t: the pages end where %q follows", newest, o.Cursor)
		}
	}
}

func TestHistory_TellsTheStateAfterEachEventInTheSamePass(t *testing.T) {
	p := newPaper(t)
	p.wholeLife()
	l := p.ledger(nil)
	shown := func(t task.Task) string {
		return fmt.Sprint(t.ID, t.Details.Seq, t.Version.Ref, t.Status, t.Due(), t.Attempt, t.Runs, t.Suspended, t.Session, string(t.Params), string(t.Result), t.Details.ParamsElided)
	}
	for _, limit := range []int{5, 0} {
		all, states, err := paged(t, l, "x", ledger.HistoryOptions{Limit: limit, States: true})
		if err != nil || len(states) != len(all) || len(all) != len(p.replayed("x")) {
			t.Fatalf("%d events with %d states, %v", len(all), len(states), err)
		}
		for i, ev := range all {
			want, err := l.StateAfter(t.Context(), "x", ev.Seq)
			if deleted := ev.Kind() == events.KindDeleted; deleted != errors.Is(err, task.ErrNotFound) || !deleted && err != nil {
				t.Fatal(err)
			}
			if shown(states[i]) != shown(want) {
				t.Errorf("after event %d: %s, want %s", ev.Seq, shown(states[i]), shown(want))
			}
		}
	}
}

// Behavior and node are told of every event, however far behind the beginning of its life and of its attempt it is,
// when nobody knows the task any more.
func TestHistory_OfALongLifeThatNobodyKnowsTellsBehaviorAndNode(t *testing.T) {
	const b = "b-bbbbbbbbbb"
	for name, write := range map[string]func(*paper){
		"one attempt": func(p *paper) { p.begin("x"); p.progress("x", 2500, 0) },
		"far apart":   func(p *paper) { p.begin("x"); p.progress("x", 1200, 20) },
		"an attempt that failed": func(p *paper) {
			p.begin("x")
			p.progress("x", 1500, 0)
			p.write(happened{"x", &events.Failed{Next: events.Millis(len(p.entries) + 2)}})
			p.write(happened{"x", &events.Started{Node: b, Attempt: 2}})
			p.progress("x", 1500, 0)
		},
		"an attempt that was lost": func(p *paper) {
			p.begin("x")
			p.progress("x", 1500, 0)
			p.write(happened{"x", &events.Lost{Until: events.Millis(len(p.entries) + 2), Node: aNode}})
			p.progress("other", 2, 0)
			p.write(happened{"x", &events.Started{Node: b, Attempt: 2}})
			p.progress("x", 1500, 0)
		},
		"a run after the last": func(p *paper) {
			p.begin("x")
			p.progress("x", 1500, 0)
			p.write(happened{"x", &events.Succeeded{Run: 1}})
			p.write(happened{"x", &events.Rescheduled{At: events.Millis(len(p.entries) + 2)}})
			p.write(happened{"x", &events.Started{Node: b, Attempt: 2}})
			p.progress("x", 1500, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPaper(t)
			write(p)
			want := places(p.replayed("x"))
			for _, text := range want {
				if !strings.Contains(text, " work ") {
					t.Fatalf("a replay of the task alone tells %q", text)
				}
			}
			backward := slices.Clone(want)
			slices.Reverse(backward)
			archived := uint64(len(p.entries) / 2)
			archive := archiveOf(0, p.entries[:archived])
			for where, trimmed := range map[string]uint64{"in the journal": 0, "partly in the archive": archived} {
				p.trimmed = trimmed
				l := ledger.New(ledger.Config{Cluster: store.Cluster{Shards: 1}, Journal: p, Owners: &knower{}, Archive: archive})
				for _, limit := range []int{100, 700, ledger.MaxHistoryPage} {
					for _, proven := range []bool{false, true} {
						if proven && limit == 100 {
							continue // many searches
						}
						o := ledger.HistoryOptions{Limit: limit, Proven: proven}
						oldest, _, err := paged(t, l, "x", o)
						if err != nil {
							t.Fatal(err)
						}
						same(t, fmt.Sprint(where, ", pages of ", limit, ", proven ", proven, ", oldest first"), places(oldest), want)
						o.Newest = true
						newest, _, err := paged(t, l, "x", o)
						if err != nil {
							t.Fatal(err)
						}
						same(t, fmt.Sprint(where, ", pages of ", limit, ", proven ", proven, ", newest first"), places(newest), backward)
					}
				}
			}
		})
	}
}

// What a cursor says of the behavior is what somebody may have written there.
func TestHistory_BelievesNoCursorWhereTheBehaviorIsToBeProven(t *testing.T) {
	p := newPaper(t)
	p.begin("x")
	p.progress("x", 1500, 0)
	l := p.ledger(&knower{})
	for _, newest := range []bool{false, true} {
		c := pagecursor.Cursor{Task: "x", Newest: newest, Ref: events.RefOf(1300, 0), Seq: p.seq(1300), Last: p.last["x"].Position.Ref, Behavior: "mine", Node: "c-cccccccccc"}
		for proven, want := range map[bool]string{true: "work " + aNode, false: "mine c-cccccccccc"} {
			page, err := l.HistoryPage(t.Context(), "x", ledger.HistoryOptions{Newest: newest, Cursor: c.String(), Limit: 20, Proven: proven})
			if err != nil || len(page.Events) != 20 {
				t.Fatalf("%d events, %v", len(page.Events), err)
			}
			for _, ev := range page.Events {
				if got := ev.Behavior + " " + ev.Node; got != want {
					t.Fatalf("newest first %t, proven %t: event %s is told with %q, want %q", newest, proven, ev.Position, got, want)
				}
			}
		}
	}
}

// The states of a page are folded from the first event on, and a caller may bound that.
func TestHistory_FoldsSoManyEventsBeforeAPageAtMost(t *testing.T) {
	p := newPaper(t)
	p.begin("x")
	p.progress("x", 20, 0)
	l := p.ledger(nil)
	_, states, err := paged(t, l, "x", ledger.HistoryOptions{Limit: 5, States: true, Fold: 10})
	if want := "states: 15 events before the page are to be folded, the limit is 10"; err == nil || !strings.HasSuffix(err.Error(), want) || len(states) != 15 {
		t.Errorf("%d states, %v; want 15, and %s", len(states), err, want)
	}
	if all, _, err := paged(t, l, "x", ledger.HistoryOptions{Limit: 5, Fold: 10}); err != nil || len(all) != 22 {
		t.Errorf("without states %d events, %v", len(all), err)
	}
}

// What was dropped cannot be told, and what is left is.
func TestHistory_OfALifeWithoutItsBeginningIsTheRest(t *testing.T) {
	for name, left := range map[string]uint64{"few": 20, "many": 600} {
		t.Run(name, func(t *testing.T) {
			p := newPaper(t)
			p.begin("x")
			p.progress("x", 1000, 0)
			want := p.replayed("x")
			want = want[len(want)-int(left):]
			owner := p.owner(t)
			p.trimmed = uint64(len(p.entries)) - left
			for who, o := range map[string]ledger.Owners{"its owner answers": owner, "nobody answers": nil} {
				l := p.ledger(o)
				var whole []ledger.Event
				var last error
				for ev, err := range l.History(t.Context(), "x") {
					if last = err; err == nil {
						whole = append(whole, ev)
					}
				}
				if !errors.Is(last, store.ErrTrimmed) || len(whole) != len(want) || whole[0].Seq != want[0].Seq {
					t.Errorf("%s: %d events, %v; want %d, and %v", who, len(whole), last, len(want), store.ErrTrimmed)
				}
				newest, _, err := paged(t, l, "x", ledger.HistoryOptions{Newest: true})
				if !errors.Is(err, store.ErrTrimmed) || len(newest) != len(want) || newest[len(newest)-1].Seq != want[0].Seq {
					t.Errorf("%s: newest first %d events, %v; want %d, and %v", who, len(newest), err, len(want), store.ErrTrimmed)
				}
				if _, err := l.StateAfter(t.Context(), "x", 1000); !errors.Is(err, store.ErrTrimmed) {
					t.Errorf("%s: state: %v", who, err)
				}
			}
		})
	}
}

func TestHistory_GoesOnFromTheJournalIntoTheArchive(t *testing.T) {
	for _, name := range []string{"close together", "far apart"} {
		p := newPaper(t)
		lives[name](p)
		want := places(p.replayed("x"))
		p.trimmed = uint64(len(p.entries) / 2)
		l := ledger.New(ledger.Config{Cluster: store.Cluster{Shards: 1}, Journal: p, Archive: archiveOf(0, p.entries[:p.trimmed])})
		oldest, _, err := paged(t, l, "x", ledger.HistoryOptions{})
		if err != nil {
			t.Fatal(err)
		}
		same(t, name+", oldest first", places(oldest), want)
		newest, _, err := paged(t, l, "x", ledger.HistoryOptions{Newest: true})
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(newest)
		same(t, name+", newest first", places(newest), want)
	}
}

// Whoever reads on is not led into the next life of the task.
func TestHistory_GoesOnInTheLifeThatItBegan(t *testing.T) {
	p := newPaper(t)
	p.begin("x")
	p.progress("x", 20, 0)
	p.write(happened{"x", &events.Succeeded{Run: 1}})
	want := p.replayed("x")
	l := p.ledger(p.owner(t))
	next := map[bool]string{}
	for _, newest := range []bool{false, true} {
		page, err := l.HistoryPage(t.Context(), "x", ledger.HistoryOptions{Limit: 3, Newest: newest})
		if err != nil {
			t.Fatal(err)
		}
		next[newest] = page.Next
	}
	p.write(happened{"x", &events.Deleted{}})
	p.begin("x")
	p.progress("x", 5, 0)
	l = p.ledger(p.owner(t))
	oldest, _, err := paged(t, l, "x", ledger.HistoryOptions{Cursor: next[false]})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "oldest first", places(oldest), places(want[3:]))
	newest, _, err := paged(t, l, "x", ledger.HistoryOptions{Cursor: next[true], Newest: true})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(newest)
	same(t, "newest first", places(newest), places(want[:len(want)-3]))
}

func TestHistory_RefusesPagesThatThereAreNot(t *testing.T) {
	p := newPaper(t)
	p.begin("x")
	p.begin("y")
	l := p.ledger(nil)
	cursor := func(l *ledger.Ledger, id events.TaskID, newest bool) string {
		page, err := l.HistoryPage(t.Context(), id, ledger.HistoryOptions{Limit: 1, Newest: newest})
		if err != nil || page.Next == "" {
			t.Fatalf("%+v, %v", page, err)
		}
		return page.Next
	}
	other := ledger.New(ledger.Config{Cluster: store.Cluster{ID: "another", Shards: 1}, Journal: p})
	restored := newPaper(t)
	restored.begin("y")
	restored.begin("x")
	sound := cursor(l, "x", false)
	bytes, err := base64.RawURLEncoding.DecodeString(sound)
	if err != nil || bytes[9] != 2 {
		t.Fatalf("%x, %v: want the version behind the kind", bytes, err)
	}
	bytes[9] = 1
	for name, c := range map[string]struct {
		l       *ledger.Ledger
		o       ledger.HistoryOptions
		problem string
	}{
		"of another task":       {l, ledger.HistoryOptions{Cursor: cursor(l, "y", false)}, "cursor: of task y"},
		"of another cluster":    {l, ledger.HistoryOptions{Cursor: cursor(other, "x", false)}, "cursor: of another cluster"},
		"of the other order":    {l, ledger.HistoryOptions{Cursor: cursor(l, "x", true)}, "cursor: of a history newest first"},
		"of the order before":   {l, ledger.HistoryOptions{Cursor: sound, Newest: true}, "cursor: of a history oldest first"},
		"of the version before": {l, ledger.HistoryOptions{Cursor: base64.RawURLEncoding.EncodeToString(bytes)}, "cursor: of version 1, this program reads version 2"},
		"of before a restore":   {restored.ledger(nil), ledger.HistoryOptions{Cursor: sound}, "cursor: it names no event of the task"},
		"cut off":               {l, ledger.HistoryOptions{Cursor: sound[:len(sound)-2]}, "cursor: it"},
		"no cursor":             {l, ledger.HistoryOptions{Cursor: "nonsense!"}, "cursor: it is none of a history"},
		"a long one":            {l, ledger.HistoryOptions{Cursor: strings.Repeat("A", 1025)}, "cursor: of 1025 bytes, a cursor has 1024 at most"},
		"a large limit":         {l, ledger.HistoryOptions{Limit: 1001}, "limit: 1001 exceeds the limit of 1000"},
		"a negative limit":      {l, ledger.HistoryOptions{Limit: -1}, "limit: -1, want 0 to 1000"},
		"states, newest first":  {l, ledger.HistoryOptions{Newest: true, States: true}, "states: they are told oldest first only"},
	} {
		page, err := c.l.HistoryPage(t.Context(), "x", c.o)
		var invalid *store.InvalidError
		var limit *task.LimitError
		if !errors.As(err, &invalid) && !errors.As(err, &limit) || !strings.Contains(err.Error(), c.problem) || len(page.Events) > 0 {
			t.Errorf("%s: %d events, %v; want %q", name, len(page.Events), err, c.problem)
		}
	}
	for page, err := range l.HistoryPages(t.Context(), "x", ledger.HistoryOptions{Total: -1}) {
		if err == nil || !strings.HasSuffix(err.Error(), "total: want 1 or more, or 0 for all") {
			t.Errorf("a total below none: %d events, %v", len(page.Events), err)
		}
	}
	if _, err := l.HistoryPage(t.Context(), "a b", ledger.HistoryOptions{}); err == nil || !strings.Contains(err.Error(), "id: ") {
		t.Errorf("an id with a blank: %v", err)
	}
}

// aDay counts the events of a task after a day in which it reports progress every second; with -short, after a fourth.
func aDay() int {
	if testing.Short() {
		return 21_600
	}
	return 86_400
}

func TestHistory_LatestOfALongLifeTakesFewReads(t *testing.T) {
	p := newPaper(t)
	p.begin("x")
	p.progress("x", aDay(), 0)
	l := p.ledger(p.owner(t))
	for _, newest := range []bool{true, false} {
		o := ledger.HistoryOptions{Newest: newest, Limit: 50}
		for range 3 {
			p.asked = 0
			page, err := l.HistoryPage(t.Context(), "x", o)
			if err != nil || len(page.Events) != 50 || page.Events[49].Node != aNode || page.Events[49].Behavior != "work" {
				t.Fatalf("%d events, %v", len(page.Events), err)
			}
			if p.asked > 35 || newest && p.asked > 10 {
				t.Errorf("newest first %t: %d reads for a page", newest, p.asked)
			}
			o.Cursor = page.Next
		}
	}
}

// Where events stand far apart, a page is found by a few reads, and takes one for each event, as long as they stand
// evenly or by chance.
func TestHistory_PagesOfEventsFarApartTakeAboutAReadForEach(t *testing.T) {
	progress, longest := 4000, ledger.MaxHistoryPage
	if testing.Short() {
		progress, longest = 1000, 250
	}
	for name, between := range map[string]func(i int) int{
		"somewhat apart":    func(int) int { return 17 },
		"apart":             func(int) int { return 60 },
		"far apart":         func(int) int { return 70 },
		"by chance":         func(i int) int { return i * 7919 % 140 },
		"closer and closer": func(i int) int { return (progress - i) / 30 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPaper(t)
			p.begin("x")
			for i := range progress {
				p.progress("x", 1, between(i))
			}
			for who, o := range map[string]ledger.Owners{"its owner answers": p.owner(t), "nobody answers": nil} {
				l := p.ledger(o)
				for _, limit := range []int{10, 50, longest} {
					for _, newest := range []bool{true, false} {
						o := ledger.HistoryOptions{Newest: newest, Limit: limit}
						for at := range 3 {
							p.asked = 0
							page, err := l.HistoryPage(t.Context(), "x", o)
							if err != nil || len(page.Events) != limit {
								t.Fatalf("%d events, %v", len(page.Events), err)
							}
							if at == 0 && who == "nobody answers" {
								p.asked = 0 // the journal was searched for the task
							}
							if most := limit + limit/8 + 60; p.asked > most || newest && p.asked > limit+20 {
								t.Errorf("%s, newest first %t: %d reads for page %d of %d events", who, newest, p.asked, at, limit)
							}
							o.Cursor = page.Next
						}
					}
				}
			}
			l := p.ledger(p.owner(t))
			p.asked = 0
			for _, err := range l.History(t.Context(), "x") {
				if err != nil {
					t.Fatal(err)
				}
			}
			if p.asked > progress+progress/8 {
				t.Errorf("%d reads for all", p.asked)
			}
		})
	}
}

// Where nobody knows how a life began, all of it is read twice.
func TestHistory_OfALongLifeIsNotHeldInMemory(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	p := newPaper(t)
	p.begin("x")
	p.progress("x", aDay(), 0)
	for who, o := range map[string]ledger.Owners{"its owner answers": p.owner(t), "nobody answers": nil} {
		l := p.ledger(o)
		p.asked = 0
		before, most := heap(), int64(0)
		at := 0
		for _, err := range l.History(t.Context(), "x") {
			if err != nil {
				t.Fatal(err)
			}
			if at++; at%20_000 == 0 {
				most = max(most, heap()-before)
			}
		}
		t.Logf("%s: %d bytes at most, %d reads", who, most, p.asked)
		if at < aDay() || most > 1<<20 {
			t.Errorf("%s: %d bytes were held for %d events", who, most, at)
		}
		if p.asked > 4*aDay()/inRequest {
			t.Errorf("%s: %d reads", who, p.asked)
		}
	}
}

func TestHistory_ThatIsNoLongerWantedEnds(t *testing.T) {
	p := newPaper(t)
	lives["in bursts"](p)
	l := p.ledger(nil)
	for range l.History(t.Context(), "x") {
		break
	}
	for range l.HistoryPages(t.Context(), "x", ledger.HistoryOptions{Limit: 1}) {
		break
	}
}

func TestHistory_FirstPageOfALongLifeComesAtOnce(t *testing.T) {
	t.Parallel()
	for name, life := range map[string]struct{ progress, between int }{"close together": {aDay(), 0}, "far apart": {aDay() / 72, 70}} {
		t.Run(name, func(t *testing.T) {
			p := newPaper(t)
			p.begin("x")
			p.progress("x", life.progress, life.between)
			j := testcluster.StartJournals(t, 1)
			j.Fill(0, p.entries)
			node := testcluster.RunNode(t, engine.NodeConfig{Store: j.Store, Name: "n", TTL: 3 * time.Second, Slots: -1})
			testcluster.Await(t, "the owner's answer", func() bool {
				_, err := node.GetLinear(testcluster.Within(t), "x")
				return err == nil
			})
			for _, newest := range []bool{true, false} {
				best := time.Hour
				for range 20 {
					began := time.Now()
					page, err := node.Ledger().HistoryPage(testcluster.Within(t), "x", ledger.HistoryOptions{Newest: newest, Limit: 50})
					if err != nil || len(page.Events) != 50 {
						t.Fatalf("%d events, %v", len(page.Events), err)
					}
					best = min(best, time.Since(began))
				}
				t.Logf("newest first %t: %s", newest, best)
				most := 200 * time.Millisecond // the race detector makes all work ten times as long
				if testkit.Whole() {
					most = 20 * time.Millisecond
				}
				if best > most {
					t.Errorf("newest first %t: a page takes %s", newest, best)
				}
			}
		})
	}
}
