package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/projection"
	"taskledger/store"
)

// The values of Explanation.Why.
const (
	WhyScheduled   = "scheduled"   // its time has not come
	WhyWaiting     = "waiting"     // ready, and waits for a slot
	WhyNoNode      = "no-node"     // no live node may run its behavior
	WhyNoOwner     = "no-owner"    // no node serves its shard at the moment
	WhySuspended   = "suspended"   // an operator suspended it
	WhyPaused      = "paused"      // an operator paused its behavior
	WhySettings    = "settings"    // the owner does not know yet what operators paused, and starts nothing before it does
	WhyQuarantined = "quarantined" // its shard cannot be read
	WhyRunning     = "running"     // it runs
	WhyFinished    = "finished"    // it has ended
)

// Explanation says why a task is not running.
type Explanation struct {
	Task  events.TaskID `json:"task"`
	Why   string        `json:"why"`            // one of the Why constants
	Since events.Millis `json:"since,omitzero"` // 0 = not known
	Text  string        `json:"text"`

	// Substatus is the task's own; 0 = nobody who knows the task answers.
	Substatus projection.Substatus `json:"substatus,omitzero"`
}

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
	if err != nil && ask.Err() != nil && ctx.Err() == nil {
		return c.explainSilence(ctx, id, shard), nil
	}
	if err == nil {
		err = a.Err(id)
	}
	if err != nil {
		return e, err
	}
	told, err := command.ReadTold[explained](a.Data)
	return Explanation{id, told.Why, events.Millis(told.Since), told.Text, projection.Substatus(told.Substatus)}, err
}

// explained is an Explanation that travels; its task is known.
type explained struct {
	Why   string
	Since int64 // ms
	Text  string

	Substatus uint64
}

// answer is the answer that carries the explanation.
func (e Explanation) answer() command.Answer {
	return command.Answer{Data: message.Encode(explained{e.Why, int64(e.Since), e.Text, uint64(e.Substatus)})}
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
	return o.why(t).answer()
}

// why explains.
func (o *owner) why(t *projection.Task) (e Explanation) {
	behavior := t.Kind.Behavior
	substatus, since := t.Substatus(o.now())
	defer func() { e.Substatus = substatus }()
	known := o.m.settings.known.Load()
	switch {
	case t.OnNode():
		return Explanation{Why: WhyRunning, Since: since, Text: fmt.Sprintf("attempt %d runs on node %s (%s)", t.Attempt, store.NodeName(t.Node), t.Node)}
	case t.Final():
		return Explanation{Why: WhyFinished, Since: since, Text: "it has ended with " + t.Status.String()}
	case t.Suspended:
		return Explanation{Why: WhySuspended, Since: since, Text: "an operator suspended the task"}
	case known != nil && known.Paused(behavior):
		p, _ := known.Pause(behavior)
		return Explanation{Why: WhyPaused, Since: max(p.Since, since), Text: p.String()}
	case substatus != projection.SubReady:
		return Explanation{Why: WhyScheduled, Since: since, Text: "it is due at " + t.Due.Time().Format(time.RFC3339)}
	case !o.m.heard.Load():
		return o.m.whySettings()
	}
	e = o.whyReady(t)
	e.Since = since
	return e
}

// whyReady explains why a task that could run does not.
func (o *owner) whyReady(t *projection.Task) Explanation {
	behavior := t.Kind.Behavior
	var may, mayNot []string // names of nodes that run it
	for _, n := range o.m.view.Load().Nodes {
		limit, limited := n.Limits[behavior]
		switch {
		case n.Slots <= 0 || n.Draining || !slices.Contains(n.Behaviors, behavior):
		case limited && limit == 0:
			mayNot = append(mayNot, n.Name)
		default:
			may = append(may, n.Name)
		}
	}
	switch {
	case len(may)+len(mayNot) == 0:
		return Explanation{Why: WhyNoNode, Text: "no live node with slots runs " + behavior}
	case len(may) == 0:
		return Explanation{Why: WhyNoNode, Text: fmt.Sprintf("no node may run it: the limit of %s is 0 on %s", behavior, named(mayNot))}
	case o.m.exec.Free(behavior) || o.offerFor(behavior) != nil:
		return Explanation{Why: WhyWaiting, Text: "it has just become due, and a slot is free: it starts next"}
	}
	return Explanation{Why: WhyWaiting, Text: fmt.Sprintf("it is ready and waits for a slot for %s on %s", behavior, named(may))}
}

// named lists names, not more than a line takes.
func named(names []string) string {
	const most = 5
	slices.Sort(names)
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
