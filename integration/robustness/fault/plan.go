package fault

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"taskledger/integration/robustness/cluster"
)

// Plan is which faults a history has: rounds, one after another, of one or two at a time.
type Plan [][]*Kind

const (
	// roundTakes is about how long a round takes, with the time before the next one.
	roundTakes = 6 * time.Second
	// maxRounds bounds the rounds of a plan that the seed draws. With many more, every history would have all that some
	// fault needs.
	maxRounds = 4
	// PlanWithin bounds the time that a history goes on beyond its asked length until its plan is done: at most one
	// fault that takes minutes is drawn.
	PlanWithin = 5 * time.Minute
)

// NewPlan arranges the kinds asked for, or draws them when there are none. An error says which kind is impossible.
func NewPlan(random *rand.Rand, s cluster.Settings) (Plan, error) {
	var p Plan
	for _, name := range s.Kinds {
		f, known := faultNamed(name)
		switch {
		case !known:
			return nil, fmt.Errorf("fault %q is unknown", name)
		case f.Cannot(s.Members) != "":
			return nil, fmt.Errorf("fault %s %s", name, f.Cannot(s.Members))
		case !p.suits(f):
			return nil, fmt.Errorf("fault %s does not go with NATS that is absent", name)
		}
		p.add(f)
	}
	if len(p) > 0 {
		return p, nil
	}
	rounds := min(max(1, int((s.Duration+roundTakes-1)/roundTakes)), maxRounds)
	for len(p) <= rounds { // the last one is cut off: nothing joins it
		f := &Kinds[random.IntN(len(Kinds))]
		if f.Cannot(s.Members) == "" && p.suits(f) && !(f.long() && p.has((*Kind).long)) {
			p.add(f)
		}
	}
	return p[:rounds], nil
}

// add puts the fault beside the last one, where they can be in force at a time.
func (p *Plan) add(f *Kind) {
	if n := len(*p); n > 0 && len((*p)[n-1]) == 1 && !f.clashes((*p)[n-1][0]) {
		(*p)[n-1] = append((*p)[n-1], f)
		return
	}
	*p = append(*p, []*Kind{f})
}

// suits reports whether what the fault needs of the whole history goes with the others.
func (p Plan) suits(f *Kind) bool {
	all := f.needs | p.Needs()
	return all&cluster.NeedAbsent == 0 || all&(cluster.NeedNATS|cluster.NeedTight) == 0
}

// Names names every fault of the plan once.
func (p Plan) Names() (all []string) {
	for _, round := range p {
		for _, f := range round {
			all = append(all, f.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Needs returns the conditions that a history with the plan must meet.
func (p Plan) Needs() (all cluster.Need) {
	for _, round := range p {
		for _, f := range round {
			all |= f.needs
		}
	}
	return all
}

// has reports whether any fault of the plan is so.
func (p Plan) has(so func(*Kind) bool) bool {
	return slices.ContainsFunc(p, func(round []*Kind) bool { return slices.ContainsFunc(round, so) })
}
