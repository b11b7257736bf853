package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// The values of Explanation.Why.
const (
	WhyScheduled   = explanation.Scheduled   // its time has not come
	WhyWaiting     = explanation.Waiting     // ready, and waits for a slot
	WhyNoNode      = explanation.NoNode      // no live node may run its behavior
	WhyNoOwner     = explanation.NoOwner     // no node serves its shard at the moment
	WhySuspended   = explanation.Suspended   // an operator suspended it
	WhyPaused      = explanation.Paused      // an operator paused its behavior
	WhySettings    = explanation.Settings    // what operators paused is not known yet, so nothing starts
	WhyQuarantined = explanation.Quarantined // its shard cannot be read
	WhyStoreFull   = explanation.StoreFull   // it is repeated, and repetitions wait while the store is almost full
	WhyRunning     = explanation.Running     // it runs
	WhyFinished    = explanation.Finished    // it has ended
)

// Explanation says why a task is not running.
type Explanation = explanation.Explanation

// askOwnerFor is how long Explain waits for an owner: its absence is an explanation too.
const askOwnerFor = 3 * time.Second

// Explain says why a task does not run, and since when. A shard without an owner is an explanation and not an error. For a shard
// that waits for room in the store it returns store.ErrUnavailable, with the remedy.
func (c *Client) Explain(ctx context.Context, id events.TaskID) (e Explanation, err error) {
	if err := id.Validate(); err != nil {
		return e, &store.InvalidError{Field: "id", Problem: err.Error()}
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
	if n := c.nodeHere(); n != nil {
		e.Since = events.MillisOf(n.unservedSince(shard))
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
