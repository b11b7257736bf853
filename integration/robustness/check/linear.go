package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// checkLinear looks, task by task, for an order of the operations that respects who returned before whom was called and
// that the journal explains: each operation takes its place after some event of the task, in the order of the events,
// where its answer is what a client had to be told. Commands that cause an event take the place of one, each its own.
//
// That is stricter than being linearizable in some way. What may happen in between (losses, retries, repetitions) is
// known from the journal, so the model is deterministic. Operations of unknown result and refused ones constrain
// nothing. The calls of functions bound when an event can have been committed: a Started before its call began, an
// outcome after it returned. Where the record tells when entries were committed, that does.
//
// Tasks with other violations are left out. Those with few operations come first: one that takes too long leaves the
// others judged.
func (c *checker) checkLinear() {
	deadline := time.Now().Add(c.limit)
	for _, t := range slices.SortedStableFunc(slices.Values(c.sorted()), func(a, b *task) int { return cmp.Compare(len(a.operations), len(b.operations)) }) {
		if !t.known() || c.accused[t.id] || t.id == string(events.Settings) {
			continue
		}
		ops := c.places(t)
		if len(ops) < 2 && !impossible(ops) {
			continue
		}
		switch porcupine.CheckOperationsTimeout(explained, ops, max(time.Until(deadline), time.Millisecond)) {
		case porcupine.Illegal:
			c.accuse(linear, t, 0, "no order of what clients were told is explained by the journal: %s", describe(t))
		case porcupine.Unknown:
			c.unjudged = append(c.unjudged, fmt.Sprintf("task %s is not judged: no order of its %d operations was found within %s", t.id, len(ops), c.limit))
		}
	}
}

// impossible reports that an operation alone has no place.
func impossible(ops []porcupine.Operation) bool {
	for i := range ops {
		if _, ok := ops[i].Input.(*candidate).place(0); !ok {
			return true
		}
	}
	return false
}

// explained is the model. A state is the number of events of the task that have happened.
var explained = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(s, input, _ any) (bool, any) {
		at, ok := input.(*candidate).place(s.(int))
		return ok, at
	},
}

// candidate is an operation with the places that it can take among the events of its task. A place is a number of
// events that have happened.
type candidate struct {
	from, to int    // bounds by the clock
	claims   []bool // by place: the event before it is the operation's own
	fits     []bool // by place: the answer is right there without an event of its own
}

// place returns the first place of the operation when so many events have happened before it. Later places are never
// better: whatever can follow one of them can follow the first.
func (o *candidate) place(happened int) (int, bool) {
	for at := max(happened, o.from); at <= o.to; at++ {
		if o.fits[at] || o.claims[at] && at > happened && at > o.from {
			return at, true
		}
	}
	return happened, false
}

// places returns the operations of a task that were told something.
func (c *checker) places(t *task) []porcupine.Operation {
	var ops []porcupine.Operation
	clock := t.clock()
	for _, o := range t.operations {
		if o.Answer != history.OK && o.Answer != history.Absent {
			continue
		}
		p := &candidate{from: clock.least(o.Call), to: clock.most(o.Return), claims: make([]bool, len(t.steps)+1), fits: make([]bool, len(t.steps)+1)}
		for at := range p.fits {
			p.claims[at], p.fits[at] = c.explains(t, o, at)
		}
		call := o.Call
		if o.Verb == history.Wait && o.Answer == history.OK { // what was told once stays true: the latest moment binds least
			call = o.Return
		}
		ops = append(ops, porcupine.Operation{Input: p, Call: call, Return: o.Return})
	}
	return ops
}

// explains reports whether the event before a place may be an operation's own, and whether its answer is right there
// without one.
func (c *checker) explains(t *task, o *history.Operation, at int) (claims, fits bool) {
	s, by := new(state), byEngine
	if at > 0 {
		s, by = &t.steps[at-1].state, t.cause(at-1)
	}
	if o.Verb == history.Wait {
		return false, t.told(o, at)
	}
	if o.Answer == history.Absent {
		return false, s.phase == absent
	}
	over := s.phase == success || s.phase == failure
	switch o.Verb {
	case history.Submit:
		if !o.Joined {
			return by == bySubmit && (o.Terms == "" || o.Terms == s.terms()), false
		}
		return false, s.phase != absent && !(o.RunsAgain && o.Request == "" && s.final()) && c.leaves(o, s)
	case history.Get:
		return false, s.phase != absent && s.phase.status() == o.Status && s.attempt == o.Attempt && s.shows(o.Outcome) && s.showsMore(o)
	case history.Cancel:
		return by == byCancel, s.cancelled && s.phase == running
	case history.Retry:
		return by == byAgain && over || by == bySubmit, over && s.due != 0 // of what is forgotten it begins a life
	case history.RunNow:
		return by == byAgain, s.phase != running && s.due != 0 && s.due <= max(c.latest, events.Millis(c.run.Info.EndWall))
	case history.Delete:
		return by == byDelete, false
	case history.Suspend:
		return by == bySuspend, s.phase != absent && s.suspended
	case history.Resume:
		return by == byResume, s.phase != absent && !s.suspended
	}
	return false, true
}

// leaves reports whether a submit that joined a task has left it with its request, and with its terms unless it meets
// what has ended and is not to run again. One that repeats a request changes nothing; nor does one that finds no room.
func (c *checker) leaves(o *history.Operation, s *state) bool {
	if o.Repeated || c.fullDuring(o) {
		return true
	}
	is := func(id string) bool { return events.RequestKey(id) == o.Request }
	return (o.Terms == "" || o.Terms == s.terms() || s.final() && !o.RunsAgain) && (o.Request == "" || s.requested(is))
}

// fullDuring reports whether an owner may have taken the store for full during an operation.
func (c *checker) fullDuring(o *history.Operation) bool {
	during := func(s history.Span) bool { return s.From <= o.Return && o.Call <= s.Until+c.felt() }
	return slices.ContainsFunc(c.run.Info.Filled, during) || slices.ContainsFunc(c.run.Faults, func(f history.Fault) bool {
		return slices.Contains(history.FullKinds, f.Kind) && during(history.Span{From: f.From, Until: f.Until})
	})
}

// told reports whether a wait may have ended as it did when so many events had happened: it tells of the run that it is
// for, which may have ended long ago.
func (t *task) told(o *history.Operation, happened int) bool {
	asked := t.askedBy(o.Request)
	if o.Answer == history.Absent {
		return t.toldAbsent(asked, happened)
	}
	for i := max(asked, 0); i < happened; i++ {
		if outcome, ok := t.endOfRun(i); ok && outcome == o.Outcome {
			return true
		}
	}
	return false
}

// toldAbsent reports whether a wait may have been told that there is no such task. Who waits for a run that has ended
// is told how, whoever deletes the task after that; so is whoever attaches to a task that was only forgotten.
func (t *task) toldAbsent(asked, happened int) bool {
	theRun := asked >= 0 && t.steps[asked].state.phase != running // else the run after the one under way may be meant
	if !theRun && happened == 0 {
		return true
	}
	for i := max(asked, 0); i < happened; i++ {
		if _, ended := t.endOfRun(i); ended && theRun {
			return false
		}
		if t.steps[i].state.phase == absent && t.steps[i].ev != nil {
			return true
		}
	}
	return false
}

// askedBy returns the step that a request caused: no run that had ended before is what it asked for. Of one that met
// what had ended it is the end of the last run that there was: one that was taken away before it began is none. It
// returns -1 when it cannot be told: a request that was made twice may have joined a run without an event.
func (t *task) askedBy(request string) (at int) {
	made := 0
	for _, o := range t.operations {
		if o.Verb == history.Submit && o.Request == request {
			made++
		}
	}
	if request == "" || made != 1 {
		return -1
	}
	at = slices.IndexFunc(t.steps, func(s step) bool { return s.ev != nil && events.RequestKey(s.ev.RequestID) == request })
	if at >= 0 && t.steps[at].ev.Kind() == events.KindJoined && t.steps[at].state.final() {
		for told, ended := t.endOfRun(at); at > 0 && (!ended || told != t.steps[at].state.outcome); told, ended = t.endOfRun(at) {
			at--
		}
	}
	return at
}

// clock bounds the times at which the events of a task were committed, as the record tells them.
type clock struct {
	before []int64 // by event: it was committed at that time at the latest
	after  []int64 // by event: and not before that time
}

func (t *task) clock() *clock {
	k := &clock{before: make([]int64, len(t.steps)), after: make([]int64, len(t.steps))}
	byToken := make(map[events.Ref]*history.Execution, len(t.executions))
	for _, x := range t.executions {
		byToken[x.Token.Ref] = x
	}
	for i := range t.steps {
		if at := t.committed(i); at != 0 {
			k.before[i], k.after[i] = at, at
			continue
		}
		k.before[i] = math.MaxInt64
		s := &t.steps[i].state
		x := byToken[s.started]
		switch {
		case x == nil:
		case s.prev == s.started:
			k.before[i] = x.Begin
		case s.prev == s.ending && s.outcome == x.Outcome && t.steps[i-1].state.phase == running:
			k.after[i] = x.End
		}
	}
	return k
}

// committed returns when a step was, by the clock of the run; 0 = not known.
func (t *task) committed(step int) int64 { return t.shard.entries[t.steps[step].entry-1].at }

// least returns a lower bound of the events that had happened at a time.
func (k *clock) least(at int64) int {
	for i := len(k.before) - 1; i >= 0; i-- {
		if k.before[i] < at {
			return i + 1
		}
	}
	return 0
}

// most returns an upper bound of the events that had happened by a time.
func (k *clock) most(by int64) int {
	for i := range k.after {
		if k.after[i] > by {
			return i
		}
	}
	return len(k.after)
}

// describe lists what clients were told, in the order of the calls, and the events.
func describe(t *task) string {
	var b strings.Builder
	for _, o := range t.operations {
		if o.Answer == history.OK || o.Answer == history.Absent {
			fmt.Fprintf(&b, "%s %s", o.Verb, o.Answer)
			if o.Verb == history.Submit {
				fmt.Fprintf(&b, " joined=%t", o.Joined)
			}
			if o.Status != "" {
				fmt.Fprintf(&b, " %s, attempt %d", o.Status, o.Attempt)
			}
			if o.Outcome != "" {
				fmt.Fprintf(&b, " %.60q", o.Outcome)
			}
			fmt.Fprintf(&b, " [%d, %d]; ", o.Call, o.Return)
		}
	}
	b.WriteString("events:")
	for i := range t.steps {
		if ev := t.steps[i].ev; ev != nil {
			fmt.Fprintf(&b, " %s", ev.Kind())
		} else {
			b.WriteString(" (forgotten)")
		}
	}
	return b.String()
}
