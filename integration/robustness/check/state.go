package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// phase is where a task stands: the statuses, and RUNNING told apart by whether it is on a node.
type phase uint8

const (
	absent phase = iota
	created
	running
	waiting // RUNNING without a node: lost, released or snoozed
	success
	failure
)

func (p phase) String() string {
	return [...]string{"absent", "CREATED", "RUNNING", "RUNNING without a node", "SUCCESS", "FAILURE"}[p]
}

// status returns the status that a client sees.
func (p phase) status() string {
	return [...]string{"", "CREATED", "RUNNING", "RUNNING", "SUCCESS", "FAILURE"}[p]
}

// mayHappen is the table of the design: in which phases a kind of event is legal.
var mayHappen = map[events.Kind][]phase{
	events.KindCreated:          {absent},
	events.KindStarted:          {created, waiting, success, failure},
	events.KindProgressed:       {running},
	events.KindSucceeded:        {running},
	events.KindFailed:           {running, created, waiting, failure},
	events.KindSnoozed:          {running},
	events.KindLost:             {running},
	events.KindReleased:         {running},
	events.KindRescheduled:      {created, waiting, success, failure},
	events.KindMerged:           {created, running, waiting, success, failure},
	events.KindSuspended:        {created, running, waiting, success, failure},
	events.KindResumed:          {created, running, waiting, success, failure},
	events.KindCancelRequested:  {running},
	events.KindDeleted:          {created, success, failure},
	events.KindJoined:           {created, running, waiting, success, failure},
	events.KindWorkPlanned:      {running, success, failure},
	events.KindPartitionStarted: {running},
	events.KindPartitionEnded:   {running, waiting, failure},
	events.KindBucketsMoved:     {running, waiting, success, failure},
	events.KindPermitsGranted:   {running, waiting, failure},
	events.KindWorkReset:        {waiting, success, failure},
	events.KindTokenMoved:       {running, waiting, failure},
	events.KindChangeHeld:       {running, waiting, failure},
	events.KindHoldMoved:        {running, waiting, success, failure},
	events.KindDescribed:        {created, running, waiting, success, failure},
}

// state is the fold of a task's events.
type state struct {
	run
	birth
	phase     phase
	suspended bool
	cancelled bool // and still on its node

	life     events.Ref // its Created
	creator  string     // principal
	behavior string
	policy   *events.Policy
	priority int64
	seq      uint64
	prev     events.Ref // of the last event
	started  events.Ref // of the last attempt
	node     string
	lastNode string // that a Started named
	attempt  uint32

	cause       string        // the kind that took it off its node, while it waits for another one
	waits       events.Millis // since then, or since it was rescheduled, or resumed after its time
	suspendedAt events.Millis

	due     events.Millis // 0 = nothing is due
	since   events.Millis // of the last start
	endedAt events.Millis
	ending  events.Ref // of the last outcome
	outcome string     // of SUCCESS and FAILURE, as history.Operation has it

	requests []request // those that made, changed or joined it, the latest maxRequests
}

// birth tells how a life of a task began.
type birth struct {
	made   events.Millis
	origin events.RunOrigin // what made a run of a schedule; 0 = it is none
}

// request is a submit with a request key, of which a task has an event.
type request struct {
	id string
	at events.Millis
}

// maxRequests bounds the requests that a task remembers.
const maxRequests = 16

// final reports that nothing will run again unless somebody asks.
func (s *state) final() bool { return (s.phase == success || s.phase == failure) && s.due == 0 }

// isRepetition reports that the next run is one that nobody has asked for: its behavior or policy repeats the task.
func (s *state) isRepetition() bool {
	return (s.phase == success || s.phase == failure) && s.runEnded && s.due != 0 && s.waits == 0
}

// step pairs an event of a task with the state after it. A nil event stands for a finished task that was forgotten with
// an entry.
type step struct {
	ev       *events.Event
	entry    uint64
	state    state
	replaced bool   // its schedule cancels it, to make room for a tick that is due
	tended   bool   // nobody asked for it: the owner of the shard tends a work
	try      uint32 // of the run, which the attempt is told that the step has started
	anew     uint64 // the entry since which that attempt is the first try: a bucket of its work ended; 0 = none has
}

// problem is a broken rule of the fold.
type problem struct{ invariant, text string }

// judge returns the rule that an event breaks, nil for none. After an attempt that is given back the task rests.
func judge(s *state, ev *events.Event, rest between) *problem {
	if !slices.Contains(mayHappen[ev.Kind()], s.phase) {
		return &problem{outOfPlace(s, ev), "not allowed there"}
	}
	if ev.Seq != s.seq+1 {
		return &problem{legal, fmt.Sprintf("sequence %d expected", s.seq+1)}
	}
	if ev.Prev != s.prev {
		return &problem{legal, fmt.Sprintf("names %d as the event before it, which is %d", ev.Prev, s.prev)}
	}
	if p := judgeRequest(s, ev); p != nil {
		return p
	}
	switch b := ev.Body.(type) {
	case *events.Created:
		if b.NotBefore <= 0 || !b.Policy.IsComplete() {
			return &problem{legal, "without a time or a complete policy"}
		}
		if strings.HasPrefix(string(ev.Task), events.StorePrefix) {
			return &problem{legal, "of an id that is reserved"}
		}
	case *events.Started:
		return judgeStart(s, ev, b)
	case *events.Succeeded:
		if b.Next == 0 && s.repeats("") {
			return &problem{legal, "the success of a task that is repeated, and no next run"}
		}
		return judgeEnd(s, ev, b.Next, b.Run, s.runs+1)
	case *events.Failed:
		return judgeFailure(s, ev, b)
	case *events.Snoozed:
		if b.Until < ev.At {
			return &problem{legal, fmt.Sprintf("waits until %d, it is %d", b.Until, ev.At)}
		}
	case *events.Lost:
		most := s.lostWait(s.policy)
		return judgeGivenUp(s, ev, b.Node, b.Until, most/2, most)
	case *events.Released:
		return judgeGivenUp(s, ev, b.Node, b.Until, rest.least, rest.most)
	case *events.Rescheduled:
		if b.At == 0 && s.phase != success && s.phase != failure {
			return &problem{legal, "a task that has not ended must have a time"}
		}
	case *events.Described:
		if s.prev.Entry() != ev.Position.Ref.Entry() {
			return &problem{legal, "in another entry than the beginning of the run"}
		}
	}
	return nil
}

// judgeRequest holds that what a request makes and changes is in one entry, and that no other request has its key.
func judgeRequest(s *state, ev *events.Event) *problem {
	for _, r := range s.requests {
		switch id := r.id; {
		case id == ev.RequestID && s.prev.Entry() != ev.Position.Ref.Entry():
			return &problem{once, fmt.Sprintf("of request %q, which has made or changed it before", id)}
		case id != ev.RequestID && events.RequestKey(id) == events.RequestKey(ev.RequestID):
			return &problem{once, fmt.Sprintf("of request %q, after request %q of the same key", ev.RequestID, id)}
		}
	}
	return nil
}

// outOfPlace names the invariant that an event breaks which its task's phase forbids.
func outOfPlace(s *state, ev *events.Event) string {
	switch ev.Kind() {
	case events.KindCreated:
		return once
	case events.KindStarted:
		if s.phase == running {
			return attempts
		}
	case events.KindSucceeded, events.KindFailed, events.KindSnoozed, events.KindLost, events.KindReleased:
		if s.attempt > 0 {
			return outcomes
		}
	}
	return legal
}

func judgeStart(s *state, ev *events.Event, b *events.Started) *problem {
	switch {
	case b.Attempt != s.attempt+1:
		return &problem{attempts, fmt.Sprintf("attempt %d after attempt %d", b.Attempt, s.attempt)}
	case b.Node == "":
		return &problem{legal, "on no node"}
	case s.suspended || s.cancelled || s.due == 0:
		return &problem{legal, fmt.Sprintf("suspended %t, cancelled %t, due %d", s.suspended, s.cancelled, s.due)}
	case ev.At < s.due:
		return &problem{once, fmt.Sprintf("at %d, %d ms before its time", ev.At, s.due-ev.At)}
	case s.overdue(ev.At):
		return &problem{once, fmt.Sprintf("at %d, %d ms after its deadline", ev.At, ev.At-s.deadline)}
	case !s.runEnded && s.spent:
		return &problem{once, fmt.Sprintf("after %d losses of at most %d", s.losses(), s.policy.MaxLost)}
	}
	return nil
}

func judgeEnd(s *state, ev *events.Event, next events.Millis, run, want uint32) *problem {
	switch {
	case run != want:
		return &problem{outcomes, fmt.Sprintf("ends run %d, %d runs have ended", run, s.runs)}
	case s.cancelled && next != 0:
		return &problem{legal, "of a cancelled task, with a next run"}
	case next != 0 && next < ev.At:
		return &problem{legal, fmt.Sprintf("next run at %d, it is %d", next, ev.At)}
	}
	return nil
}

func judgeFailure(s *state, ev *events.Event, b *events.Failed) *problem {
	failures := s.tries() + 1
	byOwner := s.works && endsWork(&b.Error) || b.Error.Code == events.CodeDeadline
	switch {
	case b.Error.Code == events.CodeDeadline && !s.overdue(ev.At):
		return &problem{once, fmt.Sprintf("at %d, the deadline is %d", ev.At, s.deadline)}
	case s.phase == failure && !(byOwner && s.due != 0 && !s.runEnded):
		return &problem{outcomes, "of a task that has failed, and no owner takes its retry away"}
	case s.phase != running && !s.mayEndWaiting(&b.Error):
		return &problem{outcomes, fmt.Sprintf("with %q, after %d losses of at most %d", b.Error.Code, s.losses(), s.policy.MaxLost)}
	case b.Run != 0 || b.Next == 0:
		if repeats := s.repeats(b.Error.Code); repeats != (b.Next != 0) {
			return &problem{legal, fmt.Sprintf("the end of a run with %q, to be followed %t, next at %d", b.Error.Code, repeats, b.Next)}
		}
		if at := s.repetition(ev.At); b.Next != 0 && b.Next != at {
			return &problem{once, fmt.Sprintf("another run at %d follows, its policy says %d", b.Next, at)}
		}
		return judgeEnd(s, ev, b.Next, b.Run, s.runs+1)
	case s.phase != running:
		return &problem{legal, "a run without an attempt is tried again"}
	case int(failures) >= s.policy.MaxAttempts:
		return &problem{once, fmt.Sprintf("failure %d of at most %d is tried again", failures, s.policy.MaxAttempts)}
	}
	return judgeEnd(s, ev, b.Next, b.Run, 0)
}

// repeats reports whether the end of a run with the code, "" for a success, is followed by another run as the policy
// says.
func (s *state) repeats(code string) bool {
	return s.policy.Every != 0 && !s.cancelled && code != events.CodeCancelled
}

// leastRepeat is the least time from the start of an attempt to another one that its policy does not count.
const leastRepeat = 50 * time.Millisecond

// repetition returns when another run follows one that ends at a time, as the policy says.
func (s *state) repetition(end events.Millis) events.Millis {
	return max(end.Add(s.policy.Every), s.since.Add(leastRepeat))
}

// mayEndWaiting reports whether a task that is on no node may fail so: somebody cancelled it, or it was lost too often.
func (s *state) mayEndWaiting(e *events.Error) bool {
	return e.Code == events.CodeCancelled || e.Code == events.CodeDeadline || e.Code == events.CodeLost && s.spent ||
		s.works && endsWork(e)
}

// overdue reports whether the run has a deadline that has passed.
func (s *state) overdue(now events.Millis) bool { return s.deadline != 0 && s.deadline <= now }

// endsWork reports whether an owner ends the run of the task of a work with an error, whatever an attempt does. With the
// last two codes it follows a worker, and with the name of a bucket the last failure of those that had it.
func endsWork(e *events.Error) bool {
	switch e.Code {
	case events.CodeThreshold, events.CodeItems, events.CodeStopped, events.CodeLost, events.CodeRejected, events.CodeHolds:
		return true
	}
	return e.Properties["bucket"] != ""
}

// between bounds a time.
type between struct{ least, most time.Duration }

// judgeGivenUp holds that the attempt was of the node, and how long the next one waits.
func judgeGivenUp(s *state, ev *events.Event, node string, until events.Millis, least, most time.Duration) *problem {
	if node != s.node {
		return &problem{legal, fmt.Sprintf("of an attempt on %q, which ran on %q", node, s.node)}
	}
	if until < ev.At.Add(least) || until > ev.At.Add(most) {
		return &problem{legal, fmt.Sprintf("waits until %d, it is %d and must be for %s at least, and %s at most", until, ev.At, least, most)}
	}
	return nil
}

// after returns the state that a legal event leads to.
func (s *state) after(ev *events.Event) state {
	n := *s
	n.seq, n.prev = ev.Seq, ev.Position.Ref
	switch b := ev.Body.(type) {
	case *events.Created:
		n = state{phase: created, life: ev.Position.Ref, creator: cmp.Or(b.Ties.By, ev.Caller.Principal), behavior: b.Behavior, policy: &b.Policy, priority: b.Priority, due: b.NotBefore,
			seq: ev.Seq, prev: ev.Position.Ref, birth: birth{ev.At, cmp.Or(b.Ties.Run, events.OriginOf(ev.Task))}}
	case *events.Started:
		n.begin()
		n.phase, n.node, n.attempt, n.started, n.since = running, b.Node, b.Attempt, ev.Position.Ref, ev.At
		n.due, n.outcome, n.lastNode = 0, "", b.Node
		n.cause, n.waits = "", 0
	case *events.Succeeded:
		n.end(ev, success, b.Next, resultOf(b))
		n.endRun()
	case *events.Failed:
		n.end(ev, failure, b.Next, "!"+b.Error.Code)
		n.failures++
		if b.Run != 0 {
			n.endRun()
		}
	case *events.Snoozed:
		n.wait(ev, b.Until)
	case *events.Lost:
		n.wait(ev, b.Until)
		n.lose(n.policy)
	case *events.Released:
		n.wait(ev, b.Until)
	case *events.Rescheduled:
		n.due, n.waits = b.At, ev.At
		n.agree(b.Terms)
		if n.phase == failure && n.due == 0 && !n.runEnded {
			n.endRun() // the retry that it waited for is taken away
		}
		if b.At == 0 {
			n.deadline = 0
		}
	case *events.Described:
		n.deadline = b.Deadline
	case *events.Merged:
		n.rerun = n.rerun || n.phase == running
		n.agree(b.Terms)
	case *events.Joined:
		n.agree(b.Terms)
	case *events.Suspended:
		if !n.suspended {
			n.suspended, n.suspendedAt = true, ev.At
		}
	case *events.Resumed:
		if n.suspended && n.due != 0 && n.due <= ev.At {
			n.waits = ev.At
		}
		n.suspended, n.suspendedAt = false, 0
	case *events.CancelRequested:
		n.cancelled = true
	case *events.Deleted:
		return state{}
	}
	if id := ev.RequestID; id != "" && !n.requested(func(known string) bool { return known == id }) {
		n.requests = append(slices.Clone(n.requests[max(0, len(n.requests)-maxRequests+1):]), request{id, ev.At})
	}
	return n
}

// requested reports whether the task remembers a request with such an id.
func (s *state) requested(is func(id string) bool) bool {
	return slices.ContainsFunc(s.requests, func(r request) bool { return is(r.id) })
}

// agree takes the terms of a further submit, if it brings any.
func (s *state) agree(t *events.Terms) {
	if t != nil {
		s.policy, s.priority = &t.Policy, t.Priority
	}
}

// terms returns the terms of the task in the form of history.Operation.
func (s *state) terms() string { return history.TermsOf(s.policy, s.priority) }

func (s *state) end(ev *events.Event, p phase, next events.Millis, outcome string) {
	s.phase, s.node, s.due, s.cancelled = p, "", next, false
	s.cause, s.waits = "", 0
	s.ending, s.endedAt, s.outcome = ev.Position.Ref, ev.At, outcome
}

func (s *state) wait(ev *events.Event, until events.Millis) {
	s.phase, s.node, s.due = waiting, "", until
	s.cause, s.waits = ev.Kind().String(), ev.At
}

// resultOf is the result of a success, as history.Operation has it.
func resultOf(b *events.Succeeded) string {
	text, err := b.Result.JSON()
	if err != nil {
		return "=" + err.Error()
	}
	return "=" + string(text)
}
