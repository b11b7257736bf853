package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/futures"
	"taskledger/engine/internal/sender"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// mergeTries bounds how often a submit combines parameters again because the task changed meanwhile.
const mergeTries = 5

// Submit commits a request and returns once it is durable. ctx bounds the call, never the task. The Future is never
// nil: after an error its Wait returns that error. After task.ErrUnknown its ID names the task that may exist:
// submit again with that id, or the same key. After any other error nothing was accepted: *store.InvalidError,
// *task.LimitError, *task.StateError, *task.OverloadError, store.ErrUnavailable, task.ErrClosed, or the error of
// b's Plan.
func (c *Client) Submit(ctx context.Context, b task.Behavior, params []byte, o task.SubmitOptions) (*Future, error) {
	return c.submit(ctx, &task.Request{Behavior: b, Params: params, SubmitOptions: o})
}

// SubmitRaw is Submit for a process without the behavior's code: a node that has the behavior plans the task. It
// returns task.ErrUnknownBehavior if no live node has it.
func (c *Client) SubmitRaw(ctx context.Context, behavior string, params []byte, o task.SubmitOptions) (*Future, error) {
	return c.submit(ctx, &task.Request{Name: behavior, Params: params, SubmitOptions: o})
}

// remoteMerger combines parameters on a node that has the behavior.
type remoteMerger struct {
	ctx      context.Context
	client   *Client
	behavior string
}

func (m *remoteMerger) Merge(stored, requested []byte) ([]byte, error) {
	planned, err := m.client.planAway(m.ctx, &command.Plan{
		Behavior: m.behavior,
		Params:   requested,
		Merge:    true,
		Stored:   stored,
	})
	return planned.Merged, err
}

// submission is a request on its way to the owner of its task's shard.
type submission struct {
	params []byte // of the request
	cmd    *command.Submit
	merge  task.Merger // nil: the behavior combines no parameters
}

func (c *Client) submit(ctx context.Context, q *task.Request) (*Future, error) {
	s, err := c.plan(ctx, q)
	if err == nil {
		c.name(ctx, s.cmd, q.RequestKey)
		err = check(s.cmd)
	}
	if err != nil {
		return failedFuture(q.ID, err), err
	}
	if err := c.gate.pass(ctx); err != nil {
		return failedFuture(s.cmd.Task, err), err
	}
	c.ids.Submitting.Add(1)
	a, err := c.askSubmit(ctx, s.cmd.Task, s.cmd)
	c.ids.Submitting.Add(-1)
	return c.conclude(ctx, s, a, err)
}

// plan lets the behavior plan a request, here or on a node that has it, and makes its command, which may name no
// task yet.
func (c *Client) plan(ctx context.Context, q *task.Request) (submission, error) {
	if !utf8.Valid(q.Params) { // a JSON decoder would let it pass
		return submission{}, &store.InvalidError{Field: "parameters", Problem: "no UTF-8"}
	}
	b := q.Behavior
	if b == nil {
		return c.planRaw(ctx, q)
	}
	now := c.now()
	plan, err := b.Plan(q.Params, now)
	if err != nil {
		return submission{}, err
	}
	policy := b.Policy()
	merge, _ := b.(task.Merger)
	return submissionOf(now, b.ID(), &policy, &plan, q, merge)
}

// planRaw is plan for a request that names its behavior alone.
func (c *Client) planRaw(ctx context.Context, q *task.Request) (submission, error) {
	if err := events.ValidateBehavior(q.Name); err != nil {
		problem := strings.TrimPrefix(err.Error(), "behavior ")
		return submission{}, &store.InvalidError{Field: "behavior", Problem: problem}
	}
	planned, err := c.planAway(ctx, &command.Plan{Behavior: q.Name, Params: q.Params})
	if err != nil {
		return submission{}, err
	}
	policy, err := planned.policy()
	if err != nil {
		return submission{}, err
	}
	plan := planned.plan()
	var merge task.Merger
	if planned.Merges {
		merge = &remoteMerger{ctx, c, q.Name}
	}
	return submissionOf(c.now(), q.Name, &policy, &plan, q, merge)
}

func submissionOf(
	now time.Time, behavior string, policy *task.Policy, plan *task.Plan, q *task.Request, merge task.Merger,
) (submission, error) {
	cmd, err := command.NewSubmit(now, behavior, policy, plan, q)
	if err != nil {
		return submission{}, err
	}
	cmd.Merges = merge != nil
	return submission{q.Params, cmd, merge}, nil
}

// name gives a submit that names no task the one of its request's key, or a random one.
func (c *Client) name(ctx context.Context, cmd *command.Submit, key string) {
	switch {
	case cmd.Task != "":
	case key != "":
		cmd.Task = events.TaskOfRequest(c.principal(ctx), cmd.Behavior, key)
	default:
		cmd.Task = c.ids.Draw(c.now())
	}
}

// check checks a submit that names its task, once in this process.
func check(cmd *command.Submit) error {
	err := cmd.Check()
	cmd.Checked = err == nil
	return err
}

// conclude takes the answer to a submit, and combines parameters where it asks for that.
func (c *Client) conclude(ctx context.Context, s submission, a command.Answer, err error) (*Future, error) {
	id := s.cmd.Task
	if err == nil && combines(a) {
		a, err = c.combineUntilIn(ctx, s)
	}
	if err == nil {
		err = a.Err(id)
	}
	if err != nil {
		return failedFuture(id, err), err
	}
	f := &Future{id: id, joined: a.Joined, repeated: a.Repeated}
	f.run.Begin(c.futures, futures.Run{
		Shard:  id.Shard(c.cfg.Shards),
		Task:   id,
		Life:   a.Life,
		Number: a.Run,
		Since:  events.Ref(a.Number) + 1,
	})
	return f, nil
}

// askSubmit sends a submit, or its second step, to the owner of the task.
func (c *Client) askSubmit(ctx context.Context, id events.TaskID, cmd command.Command) (command.Answer, error) {
	return c.sender.Ask(ctx, id.Shard(c.cfg.Shards), command.LaneSubmit, cmd)
}

// combineUntilIn is combine, again when the task changes meanwhile.
func (c *Client) combineUntilIn(ctx context.Context, s submission) (a command.Answer, err error) {
	for range mergeTries {
		if a, err = c.combine(ctx, s); err != nil || !combines(a) {
			return a, err
		}
	}
	return a, fmt.Errorf("task %s changed %d times while parameters were combined: %w",
		s.cmd.Task, mergeTries, store.ErrUnavailable)
}

// combines reports whether an answer asks for combined parameters.
func combines(a command.Answer) bool {
	return a.Code == command.AnswerMerge || a.Code == command.AnswerChanged
}

// principal returns the principal of the commands that a call under ctx sends.
func (c *Client) principal(ctx context.Context) string {
	if a, err := sender.CallerOf(ctx); err == nil && a != nil {
		return cmp.Or(a.Principal, c.cfg.Name)
	}
	return c.cfg.Name
}

// combine is the second step of a submit that met an existing task.
func (c *Client) combine(ctx context.Context, s submission) (command.Answer, error) {
	cmd := s.cmd
	stored, err := c.get(ctx, cmd.Task, false)
	if err == nil && stored.ParamsElided && stored.Params == nil {
		stored, err = c.get(ctx, cmd.Task, true) // which waits where they cannot be read at the moment
	}
	recorded := err == nil && stored.Final() && cmd.Policy.Existing == events.ReturnRecorded
	if recorded || errors.Is(err, task.ErrNotFound) {
		return c.askSubmit(ctx, cmd.Task, cmd)
	}
	if err != nil {
		return command.Answer{}, err
	}
	if stored.ParamsElided && stored.Params == nil {
		const problem = "cannot combine parameters: the stored ones are no longer kept"
		return command.Answer{}, &task.StateError{Task: cmd.Task, Problem: problem}
	}
	text, err := stored.Params.JSON()
	if err != nil {
		return command.Answer{}, fmt.Errorf("task %s: stored parameters: %w", cmd.Task, err)
	}
	merged, err := s.merge.Merge(text, s.params)
	if err != nil {
		return command.Answer{}, fmt.Errorf("task %s: combine parameters: %w", cmd.Task, err)
	}
	if len(merged) > events.MaxPayloadBytes {
		got := int64(len(merged))
		return command.Answer{}, &task.LimitError{Field: "merged parameters", Limit: events.MaxPayloadBytes, Got: got}
	}
	second := &command.Merge{Submit: *cmd, Life: stored.Created, Seq: stored.Seq}
	second.Submit.Params = events.JSON(merged)
	return c.askSubmit(ctx, cmd.Task, second)
}

// Attach returns the future of a task that any process has submitted, at any time: the outcome of its present run, or
// of its last one if no further run is due. For a task that retention has removed from memory the future finds what
// GetForgotten finds, at the same cost: its Wait returns task.ErrNotFound if the client lacks the Store or the
// Archive that holds the events. For an id that breaks the rules Wait returns a *store.InvalidError.
func (c *Client) Attach(id events.TaskID) *Future {
	if err := id.Validate(); err != nil {
		return failedFuture(id, &store.InvalidError{Field: "id", Problem: err.Error()})
	}
	f := &Future{id: id, joined: true}
	f.run.Begin(c.futures, futures.Run{Shard: id.Shard(c.cfg.Shards), Task: id})
	return f
}
