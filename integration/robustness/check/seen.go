package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// Rare names something that histories seldom have.
type Rare string

// Rare things that are no decision of a tick. Those of streams are counted as often as they were.
const (
	Repeated  Rare = "repetition" // of a run by another one, as the policy says
	Lost      Rare = "repetition of a run that is lost"
	Forgotten Rare = "forgotten store"
	Reborn    Rare = "store that came again"
	GivenUp   Rare = "item given up"
	ByHand    Rare = "run by hand"
	Replaced  Rare = "run that made room for a tick"
	Pausing   Rare = "failure that paused"
	Backfills Rare = "backfill that was done"
	Changes   Rare = "change of a stream"
	Messages  Rare = "acknowledged message"
	Tokens    Rare = "token of a stream that moved"
	Resets    Rare = "token that somebody set"
	Holds     Rare = "hold of a stream"
	Followed  Rare = "change that follows into a hold"
	HoldsOver Rare = "hold that ended"
)

// Decisions of ticks, and their causes.
var (
	decisions = [events.TickNotFilled + 1]Rare{
		events.TickCreated:   "tick with a run",
		events.TickSkipped:   "tick skipped",
		events.TickMissed:    "tick missed",
		events.TickCorrected: "corrected tick",
		events.TickFilled:    "tick of a backfill",
		events.TickNotFilled: "tick of a backfill without a run",
	}
	tickCauses = [events.TickPaused + 1]Rare{
		events.TickOverlap: "tick skipped for a run",
		events.TickTaken:   "tick whose task was there",
		events.TickLate:    "tick missed as late",
		events.TickOld:     "tick missed as old",
		events.TickPaused:  "tick missed in a pause",
	}
)

// Wanted returns what a large campaign of histories must have held.
func Wanted() []Rare {
	return []Rare{Repeated, Lost, Forgotten, Reborn, GivenUp, decisions[events.TickCreated], decisions[events.TickFilled],
		decisions[events.TickCorrected], tickCauses[events.TickOverlap], tickCauses[events.TickLate], tickCauses[events.TickOld],
		tickCauses[events.TickPaused], ByHand, Replaced, Pausing, Backfills, Changes, Messages, Tokens, Resets, Holds, Followed, HoldsOver}
}

// Seen counts the rare things that histories held to be judged.
type Seen map[Rare]int

// Add adds what another history had.
func (s Seen) Add(o Seen) {
	for what, n := range o {
		s[what] += n
	}
}

// String names each rare thing with its count. It names those that no history held, too: a reader looks for them.
func (s Seen) String() string {
	counts := Seen{}
	for _, what := range slices.Concat(Wanted(), decisions[:], tickCauses[:]) {
		counts[what] = 0
	}
	delete(counts, "") // a tick with a run has no cause
	counts.Add(s)
	all := make([]string, 0, len(counts))
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s: %d", what, counts[what]))
	}
	return strings.Join(all, "; ")
}

// Lacks names what a large campaign of histories must have held, and did not.
func (s Seen) Lacks() (all []string) {
	for _, what := range Wanted() {
		if s[what] == 0 {
			all = append(all, string(what))
		}
	}
	slices.Sort(all)
	return all
}

// count counts one more where something is so.
func (s Seen) count(what Rare, so bool) {
	if so && what != "" {
		s[what]++
	}
}

// seen counts what there was.
func (c *checker) seen() Seen {
	s := Seen{}
	for _, t := range c.tasks {
		for i := range t.steps {
			is := &t.steps[i]
			s.count(Replaced, is.replaced)
			s.count(ByHand, t.cause(i) == byHand)
			s.count(Repeated, is.repeats())
			s.count(Lost, is.repeats() && is.state.outcome == "!"+events.CodeLost)
		}
	}
	for _, j := range c.shards {
		gone := map[string]bool{} // stores
		for _, e := range j.entries {
			for i := range e.Events {
				s.countEvent(&e.Events[i], gone)
			}
		}
	}
	for i := range c.run.Visits {
		s.count(Messages, c.run.Visits[i].Key == "")
		s.count(Changes, c.run.Visits[i].Key != "")
	}
	for i := range c.run.Items {
		o := &c.run.Items[i]
		s.count(GivenUp, o.MaxClaims > 0 && o.Answer == history.OK && o.Update != nil && len(o.Update.Adds) == 1 &&
			strings.HasSuffix(o.Update.Adds[0].Group, givenUpSuffix))
	}
	return s
}

// countEvent counts an event of a shard, of which stores were forgotten.
func (s Seen) countEvent(ev *events.Event, gone map[string]bool) {
	switch b := ev.Body.(type) {
	case *events.Ticked:
		s.count(decisions[b.Decision], true)
		s.count(tickCauses[b.Cause], true)
	case *events.SchedulePaused:
		s.count(Pausing, b.Failed != "")
	case *events.BackfillEnded:
		s.count(Backfills, unasked(ev))
	case *events.TokenMoved:
		s.count(Tokens, b.Token != "" && !b.Simulated)
	case *events.WorkReset:
		s.count(Resets, b.What == events.ResetToken)
	case *events.ChangeHeld:
		s.count(Followed, b.Code == "")
		s.count(Holds, b.Code != "")
	case *events.HoldMoved:
		s.count(HoldsOver, b.Ended)
	case *events.StoreForgotten:
		s.count(Forgotten, true)
		gone[b.Store] = true
	case *events.ItemAdded:
		store, _, _ := events.ItemOf(ev.Task)
		s.count(Reborn, gone[store])
		delete(gone, store)
	}
}

// repeats reports whether the step ends a run that the policy has followed by another one.
func (s *step) repeats() bool {
	if s.ev == nil || s.state.policy == nil || s.state.policy.Every == 0 || s.state.due == 0 {
		return false
	}
	switch b := s.ev.Body.(type) {
	case *events.Succeeded:
		return true
	case *events.Failed:
		return b.Run != 0
	}
	return false
}
