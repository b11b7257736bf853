package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"taskledger/engine/internal/asker"
	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/task"
)

// SubmitOptions override what the behavior plans; a zero field leaves it as planned.
type SubmitOptions struct {
	ID        events.TaskID // default: the behavior's rule
	NotBefore time.Time     // default: the behavior's delay
	Delay     time.Duration // instead of NotBefore: so long after the submit; 0 or less = none
	Priority  int64         // 0 to 9,223,371, higher first among the ready tasks of its shard; 0: the plan's
	// RequestKey, up to 239 bytes of UTF-8, makes a repeated submit the same request: what a request has made or changed of a task, it
	// neither makes nor changes again, and its Future says Repeated. A key that was used with other parameters, which are compared byte by
	// byte, or another NotBefore, Delay or Priority is refused: task.ErrOtherRequest. A repetition gives Delay, or the same NotBefore.
	//
	// If neither ID nor the behavior's rule names the task, its id derives from the principal, which is the client's name or that of
	// WithAsker, the behavior and the key: all who repeat a request of one principal, at once or after an answer was lost, meet in one
	// task. Otherwise the key counts within the task.
	//
	// The task is kept for 10 minutes at least after its last outcome. When it has been forgotten, or was deleted, so are its keys: a
	// submit makes a new task. A task remembers its last 16 requests, those that joined it among them. One that joins while the store is
	// almost full, or a node is present that cannot read that, is not recorded: repeated after the end of the run, it is a new request.
	RequestKey string
}

// mergeTries is how often a submit combines parameters again because the task changed meanwhile.
const mergeTries = 5

// maxDelay is how far in the future a task may be scheduled: 10 years.
const maxDelay = 10 * 365 * 24 * time.Hour

// Submit commits a request and returns once it is durable. ctx bounds the call, never the task. The Future is never nil: after an error
// its Wait returns that error. After ErrUnknown its ID names the task that may exist: submit again with that id, or the same key. After any other error nothing was accepted:
// *InvalidError, *LimitError, *StateError, *OverloadError, ErrUnavailable, ErrClosed, or the error of b's Plan.
func (c *Client) Submit(ctx context.Context, b Behavior, params []byte, o SubmitOptions) (*Future, error) {
	now := c.now()
	plan, err := b.Plan(params, now)
	if err != nil {
		return failedFuture(o.ID, err), err
	}
	merge, _ := b.(task.Merger)
	return c.submit(ctx, now, b.ID(), b.Policy(), plan, params, o, merge)
}

// SubmitRaw is Submit for a process without the behavior's code: a node that has the behavior plans the task. It returns
// ErrUnknownBehavior if no live node has it.
func (c *Client) SubmitRaw(ctx context.Context, behavior string, params []byte, o SubmitOptions) (*Future, error) {
	if err := events.ValidateBehavior(behavior); err != nil {
		err = &InvalidError{Field: "behavior", Problem: strings.TrimPrefix(err.Error(), "behavior ")}
		return failedFuture(o.ID, err), err
	}
	planned, err := c.planAway(ctx, &command.Plan{Behavior: behavior, Params: params})
	if err != nil {
		return failedFuture(o.ID, err), err
	}
	policy, err := planned.policy()
	if err != nil {
		return failedFuture(o.ID, err), err
	}
	var merge task.Merger
	if planned.Merges {
		merge = &remoteMerger{ctx, c, behavior}
	}
	return c.submit(ctx, c.now(), behavior, policy, planned.plan(), params, o, merge)
}

// remoteMerger combines parameters on a node that has the behavior.
type remoteMerger struct {
	ctx      context.Context
	client   *Client
	behavior string
}

func (m *remoteMerger) Merge(stored, requested []byte) ([]byte, error) {
	planned, err := m.client.planAway(m.ctx, &command.Plan{Behavior: m.behavior, Params: requested, Merge: true, Stored: stored})
	return planned.Merged, err
}

func (c *Client) submit(ctx context.Context, now time.Time, behavior string, policy Policy, plan Plan, params []byte, o SubmitOptions, merge task.Merger) (*Future, error) {
	cmd, err := c.request(ctx, now, behavior, policy, plan, params, o)
	if err != nil {
		return failedFuture(o.ID, err), err
	}
	cmd.Merges = merge != nil
	if err := c.awaitRun(ctx); err != nil {
		return failedFuture(cmd.Task, err), err
	}
	shard := cmd.Task.Shard(c.cfg.Shards)
	c.ids.Submitting.Add(1)
	a, err := c.router.ask(ctx, shard, command.LaneSubmit, cmd)
	c.ids.Submitting.Add(-1)
	for try := 0; err == nil && (a.Code == command.AnswerMerge || a.Code == command.AnswerChanged); try++ {
		if try == mergeTries {
			err = fmt.Errorf("task %s changed %d times while parameters were combined: %w", cmd.Task, mergeTries, ErrUnavailable)
			break
		}
		a, err = c.combine(ctx, cmd, params, merge)
	}
	if err == nil {
		err = a.Err(cmd.Task)
	}
	if err != nil {
		return failedFuture(cmd.Task, err), err
	}
	return &Future{futures: c.futures, shard: shard, id: cmd.Task, joined: a.Joined, repeated: a.Repeated, life: a.Life, run: a.Run, since: events.Ref(a.Number) + 1}, nil
}

func checkParams(params []byte) error {
	if len(params) > events.MaxPayloadBytes {
		return &LimitError{Field: "parameters", Limit: events.MaxPayloadBytes, Got: int64(len(params))}
	}
	return nil
}

// request checks a submit and makes its command.
func (c *Client) request(ctx context.Context, now time.Time, behavior string, policy Policy, plan Plan, params []byte, o SubmitOptions) (*command.Submit, error) {
	complete, err := policy.Complete()
	if err != nil {
		return nil, &InvalidError{Field: "policy", Problem: err.Error()}
	}
	if err := checkParams(params); err != nil {
		return nil, err
	}
	notBefore := plan.NotBefore
	switch {
	case !o.NotBefore.IsZero():
		notBefore = o.NotBefore
	case o.Delay > 0:
		notBefore = now.Add(o.Delay)
	}
	if d := notBefore.Sub(now); d > maxDelay {
		return nil, &InvalidError{Field: "not before", Problem: fmt.Sprintf("%s ahead, want at most %s", d, maxDelay)}
	}
	cmd := &command.Submit{Behavior: behavior, Policy: complete, NotBefore: max(events.MillisOf(notBefore), 0), Params: events.JSON(params),
		Task: cmp.Or(o.ID, plan.ID), RunNow: plan.RunNow, Priority: cmp.Or(o.Priority, plan.Priority, complete.Priority)}
	if o.RequestKey != "" {
		asked := events.Request{Behavior: behavior, Params: cmd.Params, NotBefore: events.MillisOf(o.NotBefore), Delay: o.Delay, Priority: o.Priority}
		cmd.RequestID = asked.ID(o.RequestKey)
	}
	switch {
	case cmd.Task != "":
	case o.RequestKey != "":
		cmd.Task = events.TaskOfRequest(c.principal(ctx), behavior, o.RequestKey)
	default:
		cmd.Task = c.ids.Draw(now)
	}
	err = cmd.Check()
	cmd.Checked = err == nil
	return cmd, err
}

// principal is who asks for what a call under ctx sends.
func (c *Client) principal(ctx context.Context) string {
	if a, err := asker.Of(ctx); err == nil && a != nil {
		return cmp.Or(a.Principal, c.cfg.Name)
	}
	return c.cfg.Name
}

// combine is the second step of a submit that met an existing task.
func (c *Client) combine(ctx context.Context, cmd *command.Submit, params []byte, merge task.Merger) (command.Answer, error) {
	stored, err := c.get(ctx, cmd.Task, false)
	if err == nil && stored.ParamsElided && stored.Params == nil {
		stored, err = c.GetLinear(ctx, cmd.Task) // which waits where they cannot be read at the moment
	}
	if recorded := err == nil && stored.Final() && cmd.Policy.Existing == events.ReturnRecorded; recorded || errors.Is(err, ErrNotFound) {
		return c.router.askTask(ctx, cmd.Task, command.LaneSubmit, cmd)
	}
	if err != nil {
		return command.Answer{}, err
	}
	if stored.ParamsElided && stored.Params == nil {
		return command.Answer{}, &StateError{Task: cmd.Task, Problem: "cannot combine parameters: the stored ones are no longer kept"}
	}
	text, err := stored.Params.JSON()
	if err != nil {
		return command.Answer{}, fmt.Errorf("task %s: stored parameters: %w", cmd.Task, err)
	}
	merged, err := merge.Merge(text, params)
	if err != nil {
		return command.Answer{}, fmt.Errorf("task %s: combine parameters: %w", cmd.Task, err)
	}
	if len(merged) > events.MaxPayloadBytes {
		return command.Answer{}, &LimitError{Field: "merged parameters", Limit: events.MaxPayloadBytes, Got: int64(len(merged))}
	}
	second := &command.Merge{Submit: *cmd, Life: stored.Created, Seq: stored.Seq}
	second.Submit.Params = events.JSON(merged)
	return c.router.askTask(ctx, cmd.Task, command.LaneSubmit, second)
}

// Attach returns the future of a task that any process has submitted, at any time: the outcome of its present run, or of its last
// one if no further run is due. For a task that retention has removed from memory it finds what Get finds, at the same cost. Wait
// returns ErrNotFound for such a task if the client lacks the Store or the Archive that holds its events.
func (c *Client) Attach(id events.TaskID) *Future {
	if err := id.Validate(); err != nil {
		return failedFuture(id, &InvalidError{Field: "id", Problem: err.Error()})
	}
	return &Future{futures: c.futures, shard: id.Shard(c.cfg.Shards), id: id, joined: true}
}
