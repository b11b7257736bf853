package check

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

const (
	// IdlePromise is within what a ready task starts where a node that may run it has a free slot.
	IdlePromise = time.Second
	// idleSlack is the time that processes which share two processors get on top of it.
	idleSlack = 3 * time.Second
	// afterFault is, beside two TTLs, for how long a fault may be felt after its end: sessions end, shards move, those
	// who were cut off come back.
	afterFault = 4 * time.Second
	// toHear bounds the time, without faults, until all nodes know of a node that has joined, or of a change of what is
	// paused.
	toHear = 5 * time.Second
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

// roomOf returns what the record tells of a session: when it was there for all to see, and when slots of it were free.
type roomOf struct {
	node      string
	slots     int
	behaviors []string
	there     span
	free      map[string][]span // by behavior
}

// freeFor returns when there was a slot for a behavior; attempts held slots in the spans given, by behavior. Of those
// with a limit so many may run at once.
func (r *roomOf) freeFor(behavior string, taken map[string][]span, limits map[string]int) []span {
	var all []span
	for _, t := range taken {
		all = append(all, t...)
	}
	busy := full(all, r.slots)
	if limit, limited := limits[behavior]; limited {
		busy = append(busy, full(taken[behavior], limit)...)
	}
	return r.there.without(busy)
}

// checkIdle holds that no ready task waits, outside of faults, while a node that may run it has a free slot: the same
// one for all of that time. A slot counts as taken from the Started that takes it until its outcome is committed and
// its call has returned, so what is free by the record was free.
func (c *checker) checkIdle() {
	limit := IdlePromise
	if c.run.Info.Kind == "real" {
		limit += idleSlack
	}
	if !c.timed() {
		return
	}
	rooms := c.rooms(toHear)
	disturbed := c.disturbed()
	held := c.heldRepetitions()
	paused := c.pauses()
	for _, pauses := range paused {
		for i := range pauses {
			pauses[i].from -= int64(time.Second)
			pauses[i].until += int64(toHear)
		}
	}
	for _, t := range c.sorted() {
		if !t.known() {
			continue
		}
		for _, w := range c.waits(t) {
			excused := slices.Concat(disturbed, paused[w.behavior])
			if w.repetition {
				excused = append(excused, held...)
			}
			for _, s := range w.without(excused) {
				if room := roomFor(rooms, w.behavior, s, limit); s.lasts() > limit && room != "" {
					c.accuseLate(idle, t, w.entry, "it was ready for %s, from %s on, while %s had a free slot", s.lasts(), time.Duration(s.from), room)
				}
			}
		}
	}
}

// roomFor names a node that could have run the behavior for longer than the limit of a span, "" for none.
func roomFor(rooms []*roomOf, behavior string, s span, limit time.Duration) string {
	for _, r := range rooms {
		for _, f := range r.free[behavior] {
			if (span{max(f.from, s.from), min(f.until, s.until)}).lasts() > limit {
				return r.node
			}
		}
	}
	return ""
}

// disturbed returns when faults were in force, or could still be felt.
func (c *checker) disturbed() []span {
	return c.disturbedBy(func(*history.Fault) bool { return true })
}

// disturbedBy is disturbed for some of the faults.
func (c *checker) disturbedBy(these func(*history.Fault) bool) (all []span) {
	for i := range c.run.Faults {
		f := &c.run.Faults[i]
		if !these(f) {
			continue
		}
		edges := []span{{f.From, f.Until}}
		switch {
		case history.UsedTo(f.Kind): // everything works without it, once nobody waits for its answers any more
			edges = []span{{f.From, f.From}, {f.Until, f.Until}}
		case f.Kind == history.QuietKind:
			edges = nil
		}
		for _, e := range edges {
			all = append(all, span{e.from - int64(time.Second), e.until + c.felt()})
		}
	}
	return all
}

// felt is for how long a fault may be felt after its end.
func (c *checker) felt() int64 { return 2*c.run.Info.TTLMs*int64(time.Millisecond) + int64(afterFault) }

// heldRepetitions returns when repetitions may wait because the load had filled the store, with the time that owners take
// to see that it holds less.
func (c *checker) heldRepetitions() (all []span) {
	for _, s := range c.run.Info.Filled {
		all = append(all, span{s.From, s.Until + c.felt()})
	}
	return all
}

// timed reports whether the record tells when entries were committed, or wall clocks do.
func (c *checker) timed() bool {
	untimed := func(j *journal) bool { return slices.ContainsFunc(j.entries, func(e *entry) bool { return e.at == 0 }) }
	return c.run.Info.EndWall != 0 && (!c.stepped() || !slices.ContainsFunc(c.shards, untimed))
}

// moment returns when a step was committed, or else decided, by the clock of the run.
func (c *checker) moment(t *task, step int) int64 {
	return c.committed(t.shard, t.steps[step].entry)
}

// committed is moment for an entry.
func (c *checker) committed(j *journal, number uint64) int64 {
	e := j.entries[number-1]
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
	behavior   string
	entry      uint64
	repetition bool
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
		if n := len(all); n > 0 && all[n-1].until == from && all[n-1].repetition == s.isRepetition() { // an event that keeps it ready
			all[n-1].until = max(until, from)
			continue
		}
		if from < until {
			all = append(all, readySpan{
				span:       span{from, until},
				behavior:   s.behavior,
				entry:      t.steps[i].entry,
				repetition: s.isRepetition(),
			})
		}
	}
	return all
}

// pauses returns, by behavior, when it was paused.
func (c *checker) pauses() map[string][]span {
	all := map[string][]span{}
	open := map[string]int64{}
	for _, p := range c.pausings {
		at := c.committed(p.shard, p.entry)
		if p.paused {
			open[p.behavior] = at
			continue
		}
		all[p.behavior] = append(all[p.behavior], span{open[p.behavior], at})
		delete(open, p.behavior)
	}
	for behavior, from := range open {
		all[behavior] = append(all[behavior], span{from, c.run.Info.End})
	}
	return all
}

// rooms returns the sessions of which it is known when they had free slots. They count from so long after they joined.
func (c *checker) rooms(after time.Duration) (all []*roomOf) {
	by := map[string]*roomOf{}
	for i := range c.run.Keys {
		k := &c.run.Keys[i]
		if k.Node == "" || k.At == 0 {
			continue
		}
		switch r := by[k.Node]; {
		case r == nil && k.Slots > 0 && !k.Deleted && !k.Draining:
			r = &roomOf{k.Node, k.Slots, strings.Fields(k.Behaviors), span{k.At + int64(after), c.run.Info.End}, map[string][]span{}}
			by[k.Node] = r
			all = append(all, r)
		case r != nil && (k.Deleted || k.Draining):
			r.there.until = min(r.there.until, k.At)
		}
	}
	taken := c.takenSlots()
	for _, r := range all {
		for _, behavior := range r.behaviors {
			r.free[behavior] = r.freeFor(behavior, taken[r.node], c.run.Info.Limits)
		}
	}
	return all
}

// takenSlots returns, by session and behavior, when each of its attempts held a slot.
func (c *checker) takenSlots() map[string]map[string][]span {
	all := map[string]map[string][]span{}
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
			if all[s.node] == nil {
				all[s.node] = map[string][]span{}
			}
			all[s.node][s.behavior] = append(all[s.node][s.behavior], span{from, until})
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
