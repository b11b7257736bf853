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

// Explanation says why a task is not running.
type Explanation struct {
	Task  events.TaskID `json:"task"`
	Why   task.Reason   `json:"why"`
	Since events.Millis `json:"since,omitzero"` // 0 = not known
	Text  string        `json:"text"`

	// Substatus is the task's own; 0 = no owner that knows the task has answered.
	Substatus task.Substatus `json:"substatus,omitzero"`
}

// askOwnerFor bounds the wait of Explain for an owner: its absence is an explanation too.
const askOwnerFor = 3 * time.Second

// Explain returns why a task does not run, and since when. Where the shard has no owner it returns an Explanation
// with the reason task.WhyNoOwner, and no error. It returns store.ErrUnavailable, with the remedy in its text, for a
// shard that waits for room in the store, task.ErrNotFound where the owner knows no such task, and a
// *store.InvalidError for an id that breaks the rules.
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
	answered, err := explanation.Decode(id, a.Data)
	return Explanation(answered), err
}

// explainSilence explains that nobody answers for a task's shard, as far as the store and the node in this process
// can tell.
func (c *Client) explainSilence(ctx context.Context, id events.TaskID, shard int) Explanation {
	e := Explanation{Task: id, Why: task.WhyNoOwner, Text: fmt.Sprintf("nobody answers for shard %d", shard)}
	if n := c.nodeHere(); n != nil {
		e.Since = events.MillisOf(n.unservedSince(shard))
	}
	if c.cfg.Store == nil {
		return e
	}
	v, err := c.cfg.Store.ReadMembers(ctx)
	if err != nil {
		return e // perhaps because etcd is away, which questions for nodes or shards report
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
