package schedules_test

import (
	"fmt"
	"slices"
	"strings"

	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/schedules"
)

// name names the schedule in a world.
const name = "nightly"

// world is a shard with one schedule, and an owner that decides its ticks.
type world struct {
	t      rapid.TB
	shard  *projection.Shard
	now    events.Millis
	ticks  every
	entry  events.Builder
	told   []string // of the ticks, in order
	ticked []*events.Ticked
}

// every has a tick at each multiple of a duration.
type every events.Millis

func (e every) Next(after events.Millis) events.Millis {
	return (after/events.Millis(e) + 1) * events.Millis(e)
}

func (e every) Prev(before events.Millis) events.Millis {
	return (before - 1) / events.Millis(e) * events.Millis(e)
}

func (every) Offset(events.Millis) int64 { return 0 }
func (every) Fixed() bool                { return false }

// never has no ticks.
type never struct{}

func (never) Next(events.Millis) events.Millis { return 0 }
func (never) Prev(events.Millis) events.Millis { return 0 }
func (never) Offset(events.Millis) int64       { return 0 }
func (never) Fixed() bool                      { return false }

// ticksOf returns the ticks that a schedule has.
func (w *world) ticksOf(s *schedules.Schedule) schedules.Ticks {
	if s.Plan.Cron == "" {
		return never{}
	}
	return w.ticks
}

var policy = func() events.Policy {
	p, err := events.Policy{}.Complete()
	if err != nil {
		panic(err)
	}
	return p
}()

func planOf(overlap events.Overlap, misfire events.Misfire) events.SchedulePlan {
	return events.SchedulePlan{
		Cron:     "tests have ticks of their own",
		Zone:     "UTC",
		Behavior: "work",
		Policy:   policy,
		Overlap:  overlap,
		Misfire:  misfire,
		Grace:    millis(5 * time.Minute),
		Keep:     3,
	}
}

func millis(d time.Duration) events.Millis { return events.Millis(d.Milliseconds()) }

// clock returns a time of the day on which the tests play.
func clock(text string) events.Millis {
	t, err := time.Parse(time.RFC3339, "2027-03-01T"+text+":00Z")
	if err != nil {
		panic(err)
	}
	return events.MillisOf(t)
}

func newWorld(t rapid.TB, ticks every, now events.Millis) *world {
	w := &world{
		t:     t,
		shard: projection.NewShard(3),
		now:   now,
		ticks: ticks,
	}
	w.begin()
	return w
}

func (w *world) all() *schedules.Schedules     { return schedules.Of(w.shard) }
func (w *world) schedule() *schedules.Schedule { return w.all().Schedule(name) }

// begin begins an entry, and seal ends it.
func (w *world) begin() {
	w.entry.Reset(events.Entry{
		Shard:  3,
		Number: w.shard.Number + 1,
		Owner:  "n",
		Time:   max(w.now, w.shard.Time),
		Prev:   w.shard.Hash,
	})
}

func (w *world) seal() {
	w.t.Helper()
	if len(w.entry.Entry.Events) > 0 {
		if _, err := w.entry.Seal(); err != nil {
			w.t.Fatal(err)
		}
		w.shard.Seal(&w.entry.Entry)
	}
	w.begin()
}

// apply records an event.
func (w *world) apply(t *projection.Task, ev events.Event) (*projection.Task, error) {
	if len(w.entry.Entry.Events) == 0 {
		w.begin() // at the time that it is now
	}
	mark := w.entry.Mark()
	added := w.entry.Add(ev)
	t, err := w.shard.Apply(t, added)
	if err != nil {
		w.entry.DropAfter(mark)
	}
	return t, err
}

// record records an event of the schedule.
func (w *world) record(body events.Body) error {
	seq, prev := uint64(1), events.Ref(0)
	if s := w.schedule(); s != nil {
		seq, prev = s.Seq+1, s.Last
	}
	_, err := w.apply(nil, events.Event{
		Task: events.ScheduleRecord(name),
		Seq:  seq,
		Prev: prev,
		Body: body,
	})
	if b, is := body.(*events.Ticked); is && err == nil {
		w.ticked = append(w.ticked, b)
		w.told = append(w.told, tell(b))
	}
	return err
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// set sets the schedule.
func (w *world) set(plan events.SchedulePlan) {
	w.t.Helper()
	next := w.ticks.Next(w.now)
	if s := w.schedule(); s != nil {
		next = w.ticks.Next(max(w.now, s.Decided))
	}
	if plan.Cron == "" {
		next = 0
	}
	b := events.ScheduleSet{Plan: plan, Next: next}
	w.must(w.record(b.Recorded("")))
	w.seal()
}

// hand makes a run that somebody asks for.
func (w *world) hand(of string) *projection.Task {
	w.t.Helper()
	s := w.schedule()
	run, err := w.apply(nil, events.Event{
		Task: s.ByHand(schedules.HandRun(name, of)),
		Seq:  1,
		Body: s.Run(w.now, events.RunByHand),
	})
	w.must(err)
	w.seal()
	return run
}

// decide lets the owner decide what is due, in an entry of its own, and reports whether that was anything.
func (w *world) decide() (decided bool) {
	w.t.Helper()
	w.all().MakeDue(w.now)
	for _, s := range w.all().Due() {
		a := schedules.Find(s.Question(w.now, false), w.ticksOf(s))
		for range 100 {
			s = w.schedule()
			if !a.Fits(s, w.now) {
				decided = true // the next turn finds more
				break
			}
			step, is := w.all().Decide(s, a, w.now, func(id events.TaskID) bool { return w.shard.Task(id) != nil })
			if !is {
				break
			}
			for _, id := range step.Cancel {
				w.cancel(w.shard.Task(id))
				decided = true
			}
			if step.Body == nil {
				break
			}
			decided = true
			run := s.Run(w.now, step.Of)
			w.must(w.record(step.Body))
			if step.Create != "" {
				_, err := w.apply(nil, events.Event{Task: step.Create, Seq: 1, Body: run})
				w.must(err)
			}
		}
	}
	w.seal()
	return decided
}

// settle decides until nothing is left to decide.
func (w *world) settle() {
	w.t.Helper()
	for range 1000 {
		if !w.decide() {
			return
		}
	}
	w.t.Fatal("there is always something to decide")
}

// of records an event of a task.
func (w *world) of(t *projection.Task, body events.Body) *projection.Task {
	w.t.Helper()
	after, err := w.apply(t, events.Event{
		Task: t.ID,
		Seq:  t.Seq + 1,
		Prev: t.Last,
		Body: body,
	})
	w.must(err)
	return after
}

// cancel cancels a task as an owner does.
func (w *world) cancel(t *projection.Task) {
	switch {
	case t.OnNode():
		w.of(t, &events.CancelRequested{})
	case t.Phase() == projection.IsCreated || t.Phase() == projection.Waiting:
		w.of(t, &events.Failed{Error: events.Error{Code: events.CodeCancelled}, Run: t.Runs + 1})
	default:
		w.of(t, &events.Rescheduled{}) // it has ended, and does not run again
	}
}

// start starts a task, and end ends one with the events that follow in the entry of its end.
func (w *world) start(t *projection.Task) *projection.Task {
	return w.of(t, &events.Started{Node: "n", Attempt: t.Attempt + 1, Lease: 1000})
}

func (w *world) end(t *projection.Task, code string) {
	w.t.Helper()
	if !t.OnNode() {
		t = w.start(t)
	}
	body := events.Body(&events.Succeeded{Run: t.Runs + 1})
	if code != "" {
		body = &events.Failed{Error: events.Error{Code: code}, Run: t.Runs + 1}
	}
	t = w.of(t, body)
	last := w.entry.Entry.Events[len(w.entry.Entry.Events)-1]
	for _, ev := range w.shard.Ended(t, &last) {
		_, err := w.apply(nil, ev)
		w.must(err)
	}
	w.seal()
}

// active returns the runs that have not ended, by id.
func (w *world) active() (all []*projection.Task) {
	for t := range w.shard.Tasks() {
		if !t.Final() && t.ID.Affinity() == name {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b *projection.Task) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return all
}

// endAll ends the runs that have not ended.
func (w *world) endAll() {
	for _, t := range w.active() {
		w.end(t, "")
	}
}

var (
	decisions = []string{"", "created", "skipped", "missed", "corrected", "filled", "not filled"}
	causes    = []string{"", " overlap", " taken", " too many", " late", " old", " paused"}
)

// tell tells a decision as tables have it.
func tell(b *events.Ticked) string {
	span := at(b.From)
	if b.To != b.From {
		span += ".." + at(b.To)
	}
	return decisions[b.Decision] + causes[b.Cause] + " " + span
}

func at(t events.Millis) string { return t.Time().UTC().Format("15:04") }

// restored writes a snapshot of the shard and reads it.
func (w *world) restored() *projection.Shard {
	w.t.Helper()
	sn := w.shard.BeginSnapshot()
	r := projection.NewRestorer(3)
	for done := false; !done; {
		done = sn.Step(1000)
		for _, part := range sn.Parts() {
			w.must(r.Add(part))
		}
	}
	s, err := r.Done()
	w.must(err)
	return s
}

// digest returns the digest of the whole state.
func digest(s *projection.Shard) string { return fmt.Sprint(s.Digest(nil)) }
