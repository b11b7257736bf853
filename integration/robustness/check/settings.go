package check

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// changes are the changes of the settings, in their order, and what was paused after each: after[0] is before the first one.
type changes struct {
	all   []pausing
	after [][]history.PausedBehavior
}

func changesOf(all []pausing) *changes {
	s := &changes{all, [][]history.PausedBehavior{nil}}
	var now []history.PausedBehavior
	for _, p := range all {
		now = slices.DeleteFunc(slices.Clone(now), func(b history.PausedBehavior) bool { return b.Behavior == p.behavior })
		if p.paused {
			now = append(now, history.PausedBehavior{Behavior: p.behavior, Reason: p.reason, By: p.caller.Principal, Since: p.since})
		}
		s.after = append(s.after, now)
	}
	return s
}

func (s *changes) paused(at int, behavior string) bool {
	return slices.ContainsFunc(s.after[at], func(b history.PausedBehavior) bool { return b.Behavior == behavior })
}

// checkSettings holds that the settings as they were read are those of some moment, and that what was asked of them and told can be put
// in one order that the journal explains, as checkLinear does for a task. Each change names who asked for it.
func (c *checker) checkSettings() {
	t := c.task(string(events.Settings))
	if t.shard.broken || slices.ContainsFunc(c.shards, func(j *journal) bool { at := j.records[events.OfSettings]; return at != nil && at.Broken }) {
		return
	}
	s := changesOf(c.pausings)
	for i := range s.all {
		if p := &s.all[i]; !slices.ContainsFunc(t.operations, p.follows) {
			c.report(acknowledged, t.shard.shard, p.entry, "%s, paused %t with reason %q, names %+v, who did not ask for it", p.behavior, p.paused, p.reason, p.caller)
			return
		}
	}
	for _, o := range t.operations {
		if o.Verb == history.Settings && o.Answer == history.OK && !slices.ContainsFunc(s.after, func(b []history.PausedBehavior) bool { return history.PausedText(b) == o.Paused }) {
			c.report(served, t.shard.shard, 0, "the settings were read as %q, which they never were; at last they are %q", o.Paused, history.PausedText(s.after[len(s.all)]))
			return
		}
	}
	ops := c.placesOf(s, t.operations)
	if len(ops) == 0 || len(ops) == 1 && !impossible(ops) {
		return
	}
	switch porcupine.CheckOperationsTimeout(explained, ops, max(c.limit, time.Millisecond)) {
	case porcupine.Illegal:
		c.report(linear, t.shard.shard, 0, "no order of what was asked of the settings, and told, is explained by their %d changes", len(s.all))
	case porcupine.Unknown:
		c.unjudged = append(c.unjudged, fmt.Sprintf("the settings are not judged: no order of %d operations was found within %s", len(ops), c.limit))
	}
}

// follows reports whether a change may follow from an operation.
func (p *pausing) follows(o *history.Operation) bool {
	verb := history.Unpause
	if p.paused {
		verb = history.Pause
	}
	return o.Verb == verb && o.Behavior == p.behavior && (!p.paused || o.Reason == p.reason) && mayHave(o, p.caller)
}

// placesOf returns the operations that were told something, with the places that they can take among the changes.
func (c *checker) placesOf(s *changes, all []*history.Operation) (ops []porcupine.Operation) {
	k := clock{before: make([]int64, len(s.all)), after: make([]int64, len(s.all))}
	for i, p := range s.all {
		k.before[i] = math.MaxInt64
		if at := p.shard.entries[p.entry-1].at; at != 0 {
			k.before[i], k.after[i] = at, at
		}
	}
	for _, o := range all {
		if o.Answer != history.OK {
			continue
		}
		p := &candidate{from: k.least(o.Call), to: k.most(o.Return), claims: make([]bool, len(s.after)), fits: make([]bool, len(s.after))}
		for at := range s.after {
			switch o.Verb {
			case history.Settings:
				p.fits[at] = history.PausedText(s.after[at]) == o.Paused
			case history.Pause, history.Unpause:
				p.claims[at] = at > 0 && s.all[at-1].follows(o)
				p.fits[at] = s.paused(at, o.Behavior) == (o.Verb == history.Pause)
			}
		}
		ops = append(ops, porcupine.Operation{Input: p, Call: o.Call, Return: o.Return})
	}
	return ops
}
