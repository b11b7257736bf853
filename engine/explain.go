package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// The values of Explanation.Why.
const (
	WhyScheduled   = "scheduled"         // its time has not come
	WhyWaiting     = explanation.Waiting // ready, and waits for a slot
	WhyNoNode      = explanation.NoNode  // no live node may run its behavior
	WhyNoOwner     = "no-owner"          // no node serves its shard at the moment
	WhySuspended   = "suspended"         // an operator suspended it
	WhyPaused      = "paused"            // an operator paused its behavior
	WhySettings    = "settings"          // the owner does not know yet what operators paused, and starts nothing before it does
	WhyQuarantined = "quarantined"       // its shard cannot be read
	WhyStoreFull   = "store-full"        // it is repeated, and repetitions wait while the store is almost full
	WhyRunning     = "running"           // it runs
	WhyFinished    = "finished"          // it has ended
)

// Explanation says why a task is not running.
type Explanation = explanation.Explanation

// askOwnerFor is how long Explain waits for an owner: its absence is an explanation too.
const askOwnerFor = 3 * time.Second

// Explain says why a task does not run, and since when. A shard without an owner is an explanation and not an error. For a shard
// that waits for room in the store it returns ErrUnavailable, with the remedy.
func (c *Client) Explain(ctx context.Context, id events.TaskID) (e Explanation, err error) {
	if err := id.Validate(); err != nil {
		return e, &InvalidError{Field: "id", Problem: err.Error()}
	}
	shard := id.Shard(c.cfg.Shards)
	ask, cancel := context.WithTimeout(ctx, askOwnerFor)
	defer cancel()
	a, err := c.read(ask, shard, &command.Explain{Task: id})
	if errors.Is(err, task.ErrNoNode) || err != nil && ask.Err() != nil && ctx.Err() == nil {
		return c.explainSilence(ctx, id, shard), nil
	}
	if err == nil {
		err = a.Err(id)
	}
	if err != nil {
		return e, err
	}
	return explanation.Decode(id, a.Data)
}

// explainSilence explains that nobody answers for a task's shard, as far as the store and the node in this process can tell.
func (c *Client) explainSilence(ctx context.Context, id events.TaskID, shard int) Explanation {
	e := Explanation{Task: id, Why: WhyNoOwner, Text: fmt.Sprintf("nobody answers for shard %d", shard)}
	if c.local != nil {
		if m := c.local.Load(); m != nil {
			e.Since = events.MillisOf(m.place.unservedSince(shard))
		}
	}
	if c.cfg.Store == nil {
		return e
	}
	v, err := c.cfg.Store.ReadMembers(ctx)
	if err != nil {
		return e // that etcd is away may be the reason; who asks for nodes or shards is told
	}
	owner := v.Owners[shard].Node
	switch n, alive := v.Nodes[owner]; {
	case len(v.Nodes) == 0:
		e.Text += ": " + task.ErrNoNode.Error()
	case owner == "":
		e.Text += ": no node has ever served it"
	case !alive:
		e.Text += fmt.Sprintf(": the session of its owner, node %s (%s), has ended", store.NodeName(owner), owner)
	default:
		e.Text += fmt.Sprintf(": its owner, node %s (%s), is there and does not answer", n.Name, owner)
	}
	return e
}

// explain says why a task does not run.
func (o *owner) explain(c *command.Explain) command.Answer {
	t := o.state.Task(c.Task)
	if t == nil {
		return command.Answer{Code: command.AnswerNotFound}
	}
	return o.why(t).Answer()
}

// why explains.
func (o *owner) why(t *projection.Task) (e Explanation) {
	behavior := t.Kind.Behavior
	substatus, since := t.Substatus(o.now())
	defer func() { e.Substatus = substatus }()
	known := o.m.settings.known.Load()
	switch {
	case t.OnNode():
		return Explanation{Why: WhyRunning, Since: since, Text: explanation.OfRunning(t)}
	case t.Final():
		return Explanation{Why: WhyFinished, Since: since, Text: explanation.OfEnd(t)}
	case t.Suspended:
		return Explanation{Why: WhySuspended, Since: since, Text: explanation.OfSuspended(t)}
	case known != nil && known.Paused(behavior):
		p, _ := known.Pause(behavior)
		return Explanation{Why: WhyPaused, Since: max(p.Since, since), Text: p.String()}
	case substatus != projection.SubReady:
		return Explanation{Why: WhyScheduled, Since: since, Text: explanation.OfWait(t)}
	case !o.m.heard.Load():
		return o.m.whySettings()
	}
	if why := *o.m.brake.Load(); why != "" && t.Repeats() {
		return Explanation{Why: WhyStoreFull, Since: since, Text: "it is repeated, and repetitions wait: " + why}
	}
	e = o.whyReady(t)
	e.Since = since
	return e
}

// whyReady explains why a task that could run does not.
func (o *owner) whyReady(t *projection.Task) Explanation {
	behavior := t.Kind.Behavior
	e := explanation.OfReady(o.m.view.Load().Nodes, behavior, func() bool { return o.m.exec.Free(behavior) || o.offerFor(behavior) != nil })
	if stuck := o.m.exec.stuckNow(); stuck > 0 && e.Why == WhyWaiting {
		e.Text += fmt.Sprintf("; %d slots of node %s are held by functions that did not return after their context had ended", stuck, o.m.cfg.Name)
	}
	return e
}
