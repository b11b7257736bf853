package check

import (
	"fmt"
	"slices"
	"strings"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// Seen counts the rare things that histories held to be judged.
type Seen struct {
	Repeated  int // ends of runs that were followed by another one, as the policy says
	Lost      int // of these: since the attempt was lost too often
	Forgotten int // stores
	Reborn    int // stores that came again after that
	GivenUp   int // items that a worker had claimed too often

	Ticks     [events.TickNotFilled + 1]int // decisions of ticks
	Causes    [events.TickPaused + 1]int    // and their causes
	ByHand    int                           // runs of schedules that somebody asked for
	Replaced  int                           // runs that made room for a tick
	Pausing   int                           // failures that paused their schedules
	Backfills int                           // that came to their ends

	Streams SeenStreams
}

// Add adds what another history had.
func (s *Seen) Add(o Seen) {
	s.Repeated += o.Repeated
	s.Lost += o.Lost
	s.Forgotten += o.Forgotten
	s.Reborn += o.Reborn
	s.GivenUp += o.GivenUp
	for i, n := range o.Ticks {
		s.Ticks[i] += n
	}
	for i, n := range o.Causes {
		s.Causes[i] += n
	}
	s.ByHand += o.ByHand
	s.Replaced += o.Replaced
	s.Pausing += o.Pausing
	s.Backfills += o.Backfills
	s.Streams.add(o.Streams)
}

// String tells it.
func (s Seen) String() string {
	return fmt.Sprintf("%d runs followed by another one as the policy says, %d of them lost; %d stores forgotten, of which %d came again; %d items given up\n"+
		"decisions of ticks: %d created, %d skipped, %d missed, %d corrected, %d filled, %d not filled; since runs overlapped %d, a task was there %d, late %d, old %d, paused %d\n"+
		"%d runs by hand, %d that made room for a tick, %d failures that paused their schedules, %d backfills that were done\n%s",
		s.Repeated, s.Lost, s.Forgotten, s.Reborn, s.GivenUp, s.Ticks[events.TickCreated], s.Ticks[events.TickSkipped], s.Ticks[events.TickMissed],
		s.Ticks[events.TickCorrected], s.Ticks[events.TickFilled], s.Ticks[events.TickNotFilled], s.Causes[events.TickOverlap], s.Causes[events.TickTaken],
		s.Causes[events.TickLate], s.Causes[events.TickOld], s.Causes[events.TickPaused], s.ByHand, s.Replaced, s.Pausing, s.Backfills, s.Streams)
}

// Lacks names what a large campaign of histories must have held, and did not.
func (s Seen) Lacks() (all []string) {
	for what, n := range map[string]int{
		"repetition":                       s.Repeated,
		"repetition of a run that is lost": s.Lost,
		"forgotten store":                  s.Forgotten,
		"store that came again":            s.Reborn,
		"item given up":                    s.GivenUp,
		"tick with a run":                  s.Ticks[events.TickCreated],
		"tick of a backfill":               s.Ticks[events.TickFilled],
		"corrected tick":                   s.Ticks[events.TickCorrected],
		"tick skipped for a run":           s.Causes[events.TickOverlap],
		"tick missed as late":              s.Causes[events.TickLate],
		"tick missed as old":               s.Causes[events.TickOld],
		"tick missed in a pause":           s.Causes[events.TickPaused],
		"run by hand":                      s.ByHand,
		"run that made room for a tick":    s.Replaced,
		"failure that paused":              s.Pausing,
		"backfill that was done":           s.Backfills,
		"change of a stream":               s.Streams.Changes,
		"acknowledged message":             s.Streams.Messages,
		"token of a stream that moved":     s.Streams.Tokens,
		"token that somebody set":          s.Streams.Resets,
		"hold of a stream":                 s.Streams.Holds,
		"change that follows into a hold":  s.Streams.Followed,
		"hold that ended":                  s.Streams.Ended,
	} {
		if n == 0 {
			all = append(all, what)
		}
	}
	slices.Sort(all)
	return all
}

// seen counts what there was.
func (c *checker) seen() (s Seen) {
	for _, t := range c.tasks {
		for i := range t.steps {
			is := &t.steps[i]
			if is.replaced {
				s.Replaced++
			}
			if t.cause(i) == byHand {
				s.ByHand++
			}
			if is.repeats() {
				s.Repeated++
				if is.state.outcome == "!"+events.CodeLost {
					s.Lost++
				}
			}
		}
	}
	for _, j := range c.shards {
		gone := map[string]bool{}
		for _, e := range j.entries {
			for i := range e.Events {
				switch b := e.Events[i].Body.(type) {
				case *events.Ticked:
					s.Ticks[b.Decision]++
					s.Causes[b.Cause]++
				case *events.SchedulePaused:
					if b.Failed != "" {
						s.Pausing++
					}
				case *events.BackfillEnded:
					if unasked(&e.Events[i]) {
						s.Backfills++
					}
				case *events.TokenMoved, *events.WorkReset, *events.ChangeHeld, *events.HoldMoved:
					s.Streams.count(b)
				case *events.StoreForgotten:
					s.Forgotten++
					gone[b.Store] = true
				case *events.ItemAdded:
					if store, _, _ := events.ItemOf(e.Events[i].Task); gone[store] {
						s.Reborn++
						delete(gone, store)
					}
				}
			}
		}
	}
	for i := range c.run.Visits {
		if c.run.Visits[i].Key == "" {
			s.Streams.Messages++
		} else {
			s.Streams.Changes++
		}
	}
	for i := range c.run.Items {
		if o := &c.run.Items[i]; o.MaxClaims > 0 && o.Answer == history.OK && o.Update != nil && len(o.Update.Adds) == 1 &&
			strings.HasSuffix(o.Update.Adds[0].Group, givenUpSuffix) {
			s.GivenUp++
		}
	}
	return s
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
