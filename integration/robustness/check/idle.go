package check

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

const (
	// IdlePromise is within what a ready task starts where a node that may run it has a free slot.
	IdlePromise = time.Second
	// idleSlack is what processes that share two processors get on top of it.
	idleSlack = 3 * time.Second
	// afterFault is, beside two TTLs, for how long a fault may be felt after its end: sessions end, shards move, those who were cut
	// off come back.
	afterFault = 4 * time.Second
	// afterJoin is how long a node may take from its joining on to be known everywhere, and a change of what is paused to be heard of.
	afterJoin = 5 * time.Second
)

// span is a time of the run, from its beginning to before its end.
type span struct{ from, until int64 }

func (s span) lasts() time.Duration { return time.Duration(s.until - s.from) }

// without returns what is left of a span outside of others.
func (s span) without(others []span) (left []span) {
	left = []span{s}
	for _, o := range others {
		var next []span
		for _, l := range left {
			if o.until <= l.from || o.from >= l.until {
				next = append(next, l)
				continue
			}
			if o.from > l.from {
				next = append(next, span{l.from, o.from})
			}
			if o.until < l.until {
				next = append(next, span{o.until, l.until})
			}
		}
		left = next
	}
	return left
}

// roomOf is what the record tells of a session: when it was there for all to see, and when slots of it were free.
type roomOf struct {
	node      string
	slots     int
	behaviors []string
	free      []span
}

// checkIdle holds that no ready task waits, outside of faults, while a node that may run it has a free slot: the same one for all
// of that time. A slot counts as taken from the Started that takes it until its outcome is committed and its call has
// returned, so what is free by the record was free.
func (c *checker) checkIdle() {
	limit := IdlePromise
	if c.run.Info.Kind == "real" {
		limit += idleSlack
	}
	if !c.timed() {
		return
	}
	rooms := c.rooms()
	disturbed := c.disturbed()
	paused := c.pauses()
	for _, t := range c.sorted() {
		if !t.known() {
			continue
		}
		for _, w := range c.waits(t) {
			for _, s := range w.without(slices.Concat(disturbed, paused[w.behavior])) {
				if room := roomFor(rooms, w.behavior, s, limit); s.lasts() > limit && room != "" {
					c.accuse(idle, t, w.entry, "it was ready for %s, from %s on, while %s had a free slot", s.lasts(), time.Duration(s.from), room)
				}
			}
		}
	}
}

// roomFor names a node that could have run the behavior for longer than the limit of a span, "" for none.
func roomFor(rooms []*roomOf, behavior string, s span, limit time.Duration) string {
	for _, r := range rooms {
		if !slices.Contains(r.behaviors, behavior) {
			continue
		}
		for _, f := range r.free {
			if (span{max(f.from, s.from), min(f.until, s.until)}).lasts() > limit {
				return r.node
			}
		}
	}
	return ""
}

// disturbed is when faults were in force, or could still be felt.
func (c *checker) disturbed() (all []span) {
	felt := 2*c.run.Info.TTLMs*int64(time.Millisecond) + int64(afterFault)
	for i := range c.run.Faults {
		f := &c.run.Faults[i]
		all = append(all, span{f.From - int64(time.Second), f.Until + felt})
	}
	return all
}

// timed reports whether the record tells when entries were committed, or wall clocks do.
func (c *checker) timed() bool {
	untimed := func(j *journal) bool { return slices.ContainsFunc(j.entries, func(e *entry) bool { return e.at == 0 }) }
	return c.run.Info.EndWall != 0 && (!c.stepped() || !slices.ContainsFunc(c.shards, untimed))
}

// moment is when a step was committed, or else decided, by the clock of the run.
func (c *checker) moment(t *task, step int) int64 {
	e := t.shard.entries[t.steps[step].entry-1]
	if e.at != 0 {
		return e.at
	}
	return c.clock(e.Time)
}

// clock is a time of the wall clock by that of the run; Info.EndWall must be known.
func (c *checker) clock(at events.Millis) int64 {
	return c.run.Info.End - (c.run.Info.EndWall-int64(at))*int64(time.Millisecond)
}

// readySpan is when a task was ready and not on a node, and the entry after which it was.
type readySpan struct {
	span
	behavior string
	entry    uint64
}

// waits returns when a task was ready and waited.
func (c *checker) waits(t *task) (all []readySpan) {
	for i := range t.steps {
		s := &t.steps[i].state
		if s.phase == absent || s.phase == running || s.suspended || s.due == 0 {
			continue
		}
		from, until := max(c.moment(t, i), c.clock(s.due)), c.run.Info.End
		if i+1 < len(t.steps) {
			until = c.moment(t, i+1)
		}
		if n := len(all); n > 0 && all[n-1].until == from { // an event that keeps it ready
			all[n-1].until = max(until, from)
			continue
		}
		if from < until {
			all = append(all, readySpan{span{from, until}, s.behavior, t.steps[i].entry})
		}
	}
	return all
}

// pauses returns, by behavior, when it was paused, or that may not have been heard of.
func (c *checker) pauses() map[string][]span {
	all := map[string][]span{}
	t := c.tasks[string(events.Settings)]
	if t == nil {
		return all
	}
	open := map[string]int64{}
	for i := range t.steps {
		now, changed := t.steps[i].pausedNow()
		if !changed {
			continue
		}
		at := c.moment(t, i)
		for behavior, from := range open {
			if !slices.Contains(now, behavior) {
				all[behavior] = append(all[behavior], span{from, at + int64(afterJoin)})
				delete(open, behavior)
			}
		}
		for _, behavior := range now {
			if _, already := open[behavior]; !already {
				open[behavior] = at - int64(time.Second)
			}
		}
	}
	for behavior, from := range open {
		all[behavior] = append(all[behavior], span{from, c.run.Info.End})
	}
	return all
}

// pausedNow reads the behaviors that a step of the settings pauses.
func (s *step) pausedNow() (paused []string, changed bool) {
	if s.ev == nil {
		return nil, true
	}
	var params events.Payload
	switch b := s.ev.Body.(type) {
	case *events.Created:
		params = b.Params
	case *events.Merged:
		params = b.Params
	default:
		return nil, false
	}
	var settings struct{ Paused []string }
	if text, err := params.JSON(); err == nil {
		_ = json.Unmarshal(text, &settings) // checkEnded tells of what cannot be read
	}
	return settings.Paused, true
}

// rooms returns the sessions of which it is known when they had free slots.
func (c *checker) rooms() (all []*roomOf) {
	by := map[string]*roomOf{}
	there := map[string]*span{}
	for i := range c.run.Keys {
		k := &c.run.Keys[i]
		if k.Node == "" || k.At == 0 {
			continue
		}
		switch s := there[k.Node]; {
		case s == nil && k.Slots > 0 && !k.Deleted && !k.Draining:
			r := &roomOf{node: k.Node, slots: k.Slots, behaviors: strings.Fields(k.Behaviors)}
			by[k.Node], there[k.Node] = r, &span{k.At + int64(afterJoin), c.run.Info.End}
			all = append(all, r)
		case s != nil && (k.Deleted || k.Draining):
			s.until = min(s.until, k.At)
		}
	}
	taken := c.takenSlots()
	for _, r := range all {
		r.free = there[r.node].without(full(taken[r.node], r.slots))
	}
	return all
}

// takenSlots returns, by session, when each of its attempts held a slot.
func (c *checker) takenSlots() map[string][]span {
	all := map[string][]span{}
	for _, t := range c.sorted() {
		if t.broken || t.shard.broken {
			continue
		}
		calls := map[events.Ref]*history.Execution{}
		for _, x := range t.executions {
			calls[x.Token.Ref] = x
		}
		for i := range t.steps {
			s := &t.steps[i].state
			if s.phase != running || i > 0 && t.steps[i-1].state.phase == running && t.steps[i-1].state.started == s.started {
				continue
			}
			from, until := c.moment(t, i), c.run.Info.End
			for j := i + 1; j < len(t.steps); j++ {
				if t.steps[j].state.phase != running {
					until = c.moment(t, j)
					break
				}
			}
			if x := calls[s.started]; x != nil && x.End == 0 {
				until = c.run.Info.End
			} else if x != nil {
				until = max(until, x.End)
			}
			all[s.node] = append(all[s.node], span{from, until})
		}
	}
	return all
}

// full returns when as many spans as there are slots overlap.
func full(taken []span, slots int) (all []span) {
	type edge struct {
		at   int64
		more int
	}
	edges := make([]edge, 0, 2*len(taken))
	for _, s := range taken {
		edges = append(edges, edge{s.from, 1}, edge{s.until, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.more, a.more)) })
	n := 0
	for _, e := range edges {
		n += e.more
		switch {
		case e.more > 0 && n == slots:
			all = append(all, span{e.at, e.at})
		case e.more < 0 && n == slots-1:
			all[len(all)-1].until = e.at
		}
	}
	return all
}
