package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
)

// Why a task does not run, as Explanation.Why says it.
const (
	WhyScheduled   = "scheduled"   // its time has not come
	WhyWaiting     = "waiting"     // ready, and every slot for it is taken
	WhyNoNode      = "no-node"     // no live node runs its behavior
	WhyNoOwner     = "no-owner"    // nobody serves its shard at the moment
	WhySuspended   = "suspended"   // an operator suspended it
	WhyPaused      = "paused"      // an operator paused its behavior
	WhySettings    = "settings"    // what operators paused is not known: nothing starts
	WhyQuarantined = "quarantined" // its shard's journal is damaged
	WhyRunning     = "running"     // it does run
	WhyFinished    = "finished"    // it has ended
)

// Explanation says why a task is not running.
type Explanation struct {
	Task  events.TaskID `json:"task"`
	Why   string        `json:"why"` // one of the Why constants
	Since events.Millis `json:"since,omitzero"`
	Text  string        `json:"text"`
}

// Explain says why a task does not run, and since when. A shard without owner is an explanation, not an error.
func (c *Client) Explain(ctx context.Context, id events.TaskID) (e Explanation, err error) {
	if err := id.Validate(); err != nil {
		return e, &InvalidError{Field: "id", Problem: err.Error()}
	}
	shard := id.Shard(c.cfg.Shards)
	ask, cancel := context.WithTimeout(ctx, askOwnersFor)
	defer cancel()
	a, err := c.read(ask, shard, &explainCommand{id})
	if err != nil && ask.Err() != nil && ctx.Err() == nil {
		return Explanation{Task: id, Why: WhyNoOwner, Text: fmt.Sprintf("nobody answers for shard %d", shard)}, nil
	}
	if err == nil {
		err = a.err(id)
	}
	if err != nil {
		return e, err
	}
	return decodeExplanation(id, a.data)
}

func decodeExplanation(id events.TaskID, data []byte) (e Explanation, err error) {
	r, err := scanned(data)
	if err != nil {
		return e, err
	}
	r.ArrayOf(3)
	e = Explanation{Task: id, Why: r.Text(), Since: events.Millis(r.Int()), Text: r.Text()}
	return e, r.Close()
}

func (o *owner) explain(c *explainCommand) answer {
	t := o.state.Task(c.Task)
	if t == nil {
		return answer{code: answerNotFound}
	}
	why, since, text := o.why(t)
	return answer{data: encodeExplanation(Explanation{Why: why, Since: since, Text: text})}
}

func encodeExplanation(e Explanation) []byte {
	var w wire.Writer
	w.Array(3)
	w.Text(e.Why)
	w.Int(int64(e.Since))
	w.Text(e.Text)
	return w.B
}

func (o *owner) why(t *projection.Task) (why string, since events.Millis, text string) {
	behavior := t.Kind.Behavior
	switch {
	case t.OnNode():
		return WhyRunning, t.StartedAt, fmt.Sprintf("attempt %d runs on node %s", t.Attempt, t.Node)
	case t.Final():
		return WhyFinished, t.EndedAt, "it has ended with " + t.Status.String()
	case t.Suspended:
		return WhySuspended, 0, "an operator suspended the task"
	case o.m.settings.known.Load() != nil && o.m.paused(behavior):
		return WhyPaused, 0, "an operator paused behavior " + behavior
	case t.Due > o.now():
		return WhyScheduled, 0, "it is due at " + t.Due.Time().Format(time.RFC3339)
	case o.m.settings.known.Load() == nil:
		return o.m.whySettings()
	}
	for _, n := range o.m.view.Load().Nodes {
		if n.Slots > 0 && !n.Draining && slices.Contains(n.Behaviors, behavior) {
			return WhyWaiting, t.Due, "every slot of the nodes that run " + behavior + " is taken"
		}
	}
	return WhyNoNode, t.Due, "no live node with slots runs " + behavior
}
