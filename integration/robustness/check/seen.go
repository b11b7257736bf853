package check

import (
	"fmt"
	"strings"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/itemcheck"
)

// Seen counts the rare things that histories held to be judged.
type Seen struct {
	Repeated  int // ends of runs that were followed by another one, as the policy says
	Lost      int // of these: since the attempt was lost too often
	Forgotten int // stores
	Reborn    int // stores that came again after that
	GivenUp   int // items that a worker had claimed too often
}

// Add adds what another history had.
func (s *Seen) Add(o Seen) {
	s.Repeated += o.Repeated
	s.Lost += o.Lost
	s.Forgotten += o.Forgotten
	s.Reborn += o.Reborn
	s.GivenUp += o.GivenUp
}

// String tells it.
func (s Seen) String() string {
	return fmt.Sprintf("%d runs followed by another one as the policy says, %d of them lost; %d stores forgotten, of which %d came again; %d items given up",
		s.Repeated, s.Lost, s.Forgotten, s.Reborn, s.GivenUp)
}

// seen counts what there was.
func (c *checker) seen() (s Seen) {
	for _, t := range c.tasks {
		for i := range t.steps {
			if is := &t.steps[i]; is.repeats() {
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
	for i := range c.run.Items {
		if o := &c.run.Items[i]; o.MaxClaims > 0 && o.Answer == history.OK && o.Update != nil && len(o.Update.Adds) == 1 &&
			strings.HasSuffix(o.Update.Adds[0].Group, itemcheck.Failures) {
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
