package command

import (
	"cmp"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/task"
)

// Complete reports how an attempt ended.
type Complete struct {
	Task    events.TaskID
	Started events.Ref // names the attempt
	Node    string
	How     Completion
	Result  events.Payload
	Error   *events.Error // of failed; of released it counts where the task was cancelled

	// Next is the earliest time of the next attempt, but of snoozed. AnyTime = Wait alone counts; 0 = there is no next
	// attempt; of released, it is made at once.
	Next events.Millis

	ByPolicy bool          // of failed: Next follows from the recorded policy and Random
	Random   uint32        // drawn for the back-off; the fraction of 2^32
	Wait     time.Duration // how long the next attempt is put off at least; counts for snoozed, and beside a Next
}

// maxSentProperties bounds the properties of an error that are read; limits refuses what exceeds events.MaxProperties.
const maxSentProperties = 64 * events.MaxProperties

// ofContext is the text of context.Canceled, which a pure package does not import.
const ofContext = "context canceled"

// Completion names the way in which an attempt ended.
type Completion uint8

const (
	Succeeded Completion = iota
	Failed
	Snoozed
	Released
)

func (*Complete) Op() uint64 { return opComplete }

func (c *Complete) Size() int {
	// The task may be run again at once: two events, and what fronts let follow the first.
	n := 2*commandBytes + 2*len(c.Task) + len(c.Node) + len(c.Result) + projection.EndBytes
	if c.Error != nil {
		n += len(c.Error.Code) + len(c.Error.Message)
		for name, value := range c.Error.Properties {
			n += 16 + len(name) + len(value)
		}
	}
	return n
}

func (c *Complete) Limits() error {
	err := cmp.Or(limitID(c.Task), limitNode(c.Node), limitPayload("result", c.Result), limitTime("next", c.Next))
	if err != nil || c.Error == nil {
		return err
	}
	properties := 0
	for name, value := range c.Error.Properties {
		properties += len(name) + len(value)
	}
	return cmp.Or(
		atMost("error code", len(c.Error.Code), events.MaxNameBytes),
		atMost("error message", len(c.Error.Message), events.MaxPayloadBytes/2),
		atMost("number of error properties", len(c.Error.Properties), events.MaxProperties),
		atMost("error properties", properties, events.MaxPayloadBytes/2),
	)
}

func (c *Complete) encode(w *wire.Writer) {
	w.Array(10)
	w.Text(string(c.Task))
	w.Uint(uint64(c.Started))
	w.Text(c.Node)
	w.Uint(uint64(c.How))
	w.Bytes(c.Result)
	if c.Error == nil {
		w.Array(0)
	} else {
		w.Array(1)
		c.Error.Encode(w)
	}
	w.Int(int64(c.Next))
	w.Bool(c.ByPolicy)
	w.Uint(uint64(c.Random))
	w.Int(c.Wait.Milliseconds())
}

func (c *Complete) decode(r *wire.Reader) {
	r.ArrayOf(10)
	c.Task, c.Started, c.Node, c.How = events.TaskID(r.Text()), events.Ref(r.Uint()), r.Name(), Completion(r.Uint())
	c.Result = r.Bytes()
	if r.Array() > 0 {
		c.Error = new(events.Error)
		c.Error.DecodeUpTo(r, maxSentProperties)
	}
	c.Next, c.ByPolicy, c.Random = events.Millis(r.Int()), r.Bool(), uint32(r.Uint())
	c.Wait = events.Milliseconds(r.Int())
	if c.How > Released || c.How == Failed && c.Error == nil {
		r.Fail("completion %d", c.How)
	}
}

// leastRepeat bounds from below the time from the start of an attempt to a next one that the behavior asks for: by
// a repetition, a snooze or a retry after a wait or at a time. A behavior that asks for it at once, again and
// again, must not fill the journal. A retry by policy is exempt: its back-off has full jitter, and its attempts are
// counted.
const leastRepeat = 50 * time.Millisecond

// complete records how an attempt ended, if it is still the task's attempt: the first committed outcome wins.
func (c *Complete) Decide(d *Decider) Answer {
	t := d.State.Attempt(c.Started)
	if t == nil || t.ID != c.Task || t.Node != c.Node {
		d.Stale++
		return Answer{Code: AnswerStale}
	}
	switch c.How {
	case Succeeded:
		d.succeed(t, c)
	case Failed:
		e := *c.Error
		if e.Code == events.CodeCancelled && !t.Cancelled { // nobody has cancelled it
			e.Code = events.CodeFailed
		}
		d.fail(t, e, d.nextTry(t, c))
	case Snoozed:
		d.giveBack(t, &events.Snoozed{Until: d.waited(t, c)})
	case Released:
		if t.Cancelled && c.Error != nil {
			d.fail(t, *c.Error, 0)
			break
		}
		d.giveBack(t, &events.Released{Until: max(d.Now, d.chosen(t, c)), Node: t.Node})
	}
	return Answer{}
}

func (d *Decider) succeed(t *projection.Task, c *Complete) {
	next := cmp.Or(d.chosen(t, c), d.repetition(t))
	rerun := t.Rerun && !t.Cancelled
	if t.Cancelled || t.RunOf() != 0 { // runs of a schedule come by its ticks alone
		next = 0
	}
	t = d.emit(t.ID, t, "", d.Entry.Succeeded(events.Succeeded{Result: c.Result, Next: next, Run: t.Runs + 1}))
	if rerun {
		d.emit(t.ID, t, "", &events.Rescheduled{At: d.Now})
	}
}

// fail ends an attempt, or a waiting task's run where no retry follows. What was cancelled ends as cancelled,
// whatever else went wrong.
func (d *Decider) fail(t *projection.Task, e events.Error, next events.Millis) {
	rerun := t.Rerun && !t.Cancelled
	if t.Cancelled {
		e = cancelled(t, e)
	}
	body := &events.Failed{Error: e.Fit(), Next: next}
	switch {
	case t.Cancelled:
		body.Next, body.Run = 0, t.Runs+1
	case next == 0:
		body.Next, body.Run = d.repetition(t), t.Runs+1
	}
	t = d.emit(t.ID, t, "", body)
	if rerun && body.Run != 0 {
		d.emit(t.ID, t, "", &events.Rescheduled{At: d.Now})
	}
}

// repetition returns when the next run of a task begins whose policy repeats it; 0 = it does not.
func (d *Decider) repetition(t *projection.Task) events.Millis {
	every := t.Kind.Policy.Every
	if every == 0 {
		return 0
	}
	return max(d.Now.Add(every), t.StartedAt.Add(leastRepeat))
}

// cancelled returns the failure of a task that was cancelled while an attempt ran. It includes the error of the
// attempt, unless the function has returned the cause of its context's end.
func cancelled(t *projection.Task, e events.Error) events.Error {
	is := events.Error{Code: events.CodeCancelled, Message: "cancelled"}
	if t.Wait != nil && t.Wait.Reason != "" {
		is.Message = t.Wait.Reason
	} else if e.Code == events.CodeCancelled {
		return e
	}
	if e.Code != events.CodeCancelled && e.Message != ofContext &&
		!strings.HasPrefix(e.Message, task.ErrCancelled.Error()) {
		is.Message += "; the attempt ended with " + e.Code + ": " + e.Message
	}
	return is
}

// chosen returns when a task starts again as its behavior chose; 0 = it did not.
func (d *Decider) chosen(t *projection.Task, c *Complete) events.Millis {
	if c.Next == 0 {
		return 0
	}
	return max(c.Next, d.waited(t, c))
}

// waited returns when a completion's wait is over. It counts from now, not from the clock of the worker, which may be
// wrong.
func (d *Decider) waited(t *projection.Task, c *Complete) events.Millis {
	return max(d.Now.Add(max(c.Wait, 0)), t.StartedAt.Add(leastRepeat))
}

// nextTry returns when a failed attempt is tried again; 0 = never, also where the deadline of the run comes before.
func (d *Decider) nextTry(t *projection.Task, c *Complete) events.Millis {
	next := d.nextByPolicy(t, c)
	if by := t.Deadline(); by != 0 && next >= by {
		return 0
	}
	return next
}

func (d *Decider) nextByPolicy(t *projection.Task, c *Complete) events.Millis {
	policy := &t.Kind.Policy
	_, failed := d.State.Tries(t, d.Now)
	failed++
	switch {
	case !c.ByPolicy && c.Next == 0, c.ByPolicy && failed >= policy.MaxAttempts:
		return 0
	case !c.ByPolicy:
		return d.chosen(t, c)
	}
	return d.Now.Add(policy.Backoff.Delay(failed, float64(c.Random)/(1<<32)))
}
