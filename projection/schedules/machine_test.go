package schedules_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/internal/runid"
	"taskledger/projection"
	"taskledger/projection/schedules"
)

// rules lists the rules of names of runs.
var rules = []events.RunNames{events.NamesByOrigin, events.NamesByUUID}

// machine drives a schedule through whatever may happen to it, and holds what is decided to a model: the ticks that
// are decided follow one another without a gap, each once.
type machine struct {
	*world
	next    events.Millis // the first tick that the model has not seen decided
	checked int           // of ticked
	hands   int           // runs by hand
	allowed bool          // runs may overlap: a plan allowed it, or one was made to run again
}

// follow holds the decisions since the last check to the model.
func (m *machine) follow(t *rapid.T) {
	for _, b := range m.ticked[m.checked:] {
		m.checked++
		switch b.Decision {
		case events.TickFilled, events.TickNotFilled, events.TickCorrected:
			continue
		case events.TickCreated:
			id := schedules.TickRun(name, b.From)
			if s := m.schedule(); s != nil && s.Plan.Names == events.NamesByUUID {
				id = runid.OfTick(name, b.From)
			}
			if run := m.shard.Task(b.Run); run == nil || run.ID != id || run.RunOf() != events.RunOfTick {
				t.Fatalf("tick %d has run %s, want %s", b.From, b.Run, id)
			}
		}
		if b.From != m.next || b.From%events.Millis(m.ticks) != 0 || b.To%events.Millis(m.ticks) != 0 {
			t.Fatalf("ticks %d to %d are decided, the next one is %d", b.From, b.To, m.next)
		}
		if s := m.schedule(); s != nil && b.To+s.Delay() > m.now {
			t.Fatalf("tick %d is decided at %d, before it is due", b.To, m.now)
		}
		m.next = m.ticks.Next(b.To)
		if b.Next != m.next {
			t.Fatalf("tick %d follows %d, want %d", b.Next, b.To, m.next)
		}
	}
}

// check holds what must always be so.
func (m *machine) check(t *rapid.T) {
	m.follow(t)
	s := m.schedule()
	if s == nil {
		return
	}
	active := m.active()
	if len(active) != s.Active() {
		t.Fatalf("%d runs have not ended, the schedule counts %d", len(active), s.Active())
	}
	ticks := 0
	for _, run := range active {
		if run.RunOf() == events.RunOfTick && run.Runs == 0 {
			ticks++
		}
	}
	if ticks > 1 && s.Plan.Overlap != events.OverlapAllow && !m.allowed {
		t.Fatalf("%d runs of ticks at a time", ticks)
	}
	if kept := s.Kept(); len(kept) > int(s.Plan.Keep) {
		t.Fatalf("%d runs are kept, want %d at most", len(kept), s.Plan.Keep)
	}
	for _, id := range s.Kept() {
		if run := m.shard.Task(id); run == nil || !run.Final() {
			t.Fatalf("run %s is kept, and forgotten or not ended", id)
		}
	}
}

func TestSchedules_DecideEachTickOnceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := every(rapid.SampledFrom([]int64{1000, 60_000, 3_600_000}).Draw(t, "period"))
		m := &machine{world: newWorld(t, period, clock("10:00"))}
		plan := func() events.SchedulePlan {
			p := planOf(
				events.Overlap(rapid.IntRange(0, 2).Draw(t, "overlap")),
				events.Misfire(rapid.IntRange(0, 2).Draw(t, "misfire")),
			)
			p.PauseOnFailure = rapid.Bool().Draw(t, "pause on failure")
			p.Keep = rapid.Uint32Range(0, 4).Draw(t, "keep")
			p.Jitter = events.Millis(rapid.Int64Range(0, int64(period)/2).Draw(t, "jitter"))
			p.Names = rapid.SampledFrom(rules).Draw(t, "names")
			if rapid.IntRange(0, 3).Draw(t, "no cron") == 0 {
				p.Cron, p.Misfire, p.Jitter, p.PauseOnFailure = "", events.MisfireOnce, 0, false
			}
			m.allowed = m.allowed || p.Overlap == events.OverlapAllow
			return p
		}
		set := func() {
			if s := m.schedule(); s == nil || m.ticks.Next(max(m.now, s.Decided)) > 0 {
				m.set(plan())
				m.next = m.schedule().Next
			}
		}
		set()
		draw := func(t *rapid.T) *projection.Task {
			active := m.active()
			if len(active) == 0 {
				t.Skip("no run")
			}
			return rapid.SampledFrom(active).Draw(t, "run")
		}
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"time passes": func(t *rapid.T) {
				m.now += events.Millis(rapid.Int64Range(1, int64(period)).Draw(t, "ms"))
			},
			"much time passes": func(t *rapid.T) {
				m.now += events.Millis(period) * events.Millis(rapid.Int64Range(2, 300).Draw(t, "periods"))
			},
			"decide":  func(*rapid.T) { m.decide() },
			"settle":  func(*rapid.T) { m.settle() },
			"succeed": func(t *rapid.T) { m.end(draw(t), "") },
			"fail": func(t *rapid.T) {
				run, s := draw(t), m.schedule()
				paused := s.Paused != nil || s.Plan.PauseOnFailure && run.RunOf() == events.RunOfTick
				if m.end(run, "broken"); (m.schedule().Paused != nil) != paused {
					t.Fatalf("run %s has failed, paused: %t", run.ID, !paused)
				}
			},
			"by hand": func(t *rapid.T) {
				if s := m.schedule(); s.Active() == 0 || s.Plan.Overlap == events.OverlapAllow {
					m.hands++
					m.hand(fmt.Sprint(m.hands))
				}
			},
			"retry what is not kept": func(t *rapid.T) {
				for run := range m.shard.Tasks() {
					if run.Final() && run.ID.Affinity() == name && !slices.Contains(m.schedule().Kept(), run.ID) {
						m.of(run, &events.Rescheduled{At: m.now})
						m.allowed = true
						m.seal()
						return
					}
				}
			},
			"set": func(*rapid.T) { set() },
			"start": func(t *rapid.T) {
				if run := draw(t); !run.OnNode() {
					m.start(run)
					m.seal()
				}
			},
			"retry": func(t *rapid.T) {
				for _, id := range m.schedule().Kept() {
					m.of(m.shard.Task(id), &events.Rescheduled{At: m.now})
					m.allowed = true
					m.seal()
					return
				}
			},
			"pause": func(t *rapid.T) {
				if m.schedule().Paused == nil {
					m.must(m.record(&events.SchedulePaused{}))
				} else {
					m.must(m.record(&events.ScheduleResumed{}))
				}
				m.seal()
			},
			"backfill": func(t *rapid.T) {
				if s := m.schedule(); s.Fill != nil || s.Plan.Cron == "" {
					return
				}
				from := m.ticks.Prev(m.now - events.Millis(period)*events.Millis(rapid.Int64Range(5, 50).Draw(t, "back")))
				n := rapid.Uint32Range(1, 4).Draw(t, "ticks")
				m.must(m.record(&events.BackfillSet{
					From:  from,
					To:    from + events.Millis(period)*events.Millis(n-1),
					Ticks: n,
				}))
				m.seal()
			},
			"restore": func(t *rapid.T) {
				s := m.restored()
				if digest(s) != digest(m.shard) {
					t.Fatal("restored, the shard differs")
				}
				m.shard = s
				m.begin()
			},
			"end": func(t *rapid.T) {
				m.must(m.record(&events.ScheduleEnded{}))
				m.seal()
				m.now += events.Millis(period)
				set()
			},
			"illegal": func(t *rapid.T) {
				before, s := digest(m.shard), m.schedule()
				err := m.record(&events.Ticked{
					Decision: events.TickSkipped,
					From:     s.Next + 1,
					To:       s.Next + 1,
				})
				if wrong := new(projection.TransitionError); !errors.As(err, &wrong) || digest(m.shard) != before {
					t.Fatalf("a tick that is none is decided: %v", err)
				}
			},
		})
		if s := m.schedule(); s.Paused != nil {
			m.must(m.record(&events.ScheduleResumed{}))
			m.seal()
		}
		for range 300 { // once runs end, all that is due is decided
			m.settle()
			m.endAll()
		}
		if s := m.schedule(); s.Paused == nil && (s.Next != 0 && s.Next+s.Delay() <= m.now || s.Fill != nil) {
			t.Fatalf("tick %s is not decided at %s: %+v", at(s.Next), at(m.now), s)
		}
		m.check(t)
	})
}
