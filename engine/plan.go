package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/liveness"
	"taskledger/engine/internal/sender"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/store"
	"taskledger/task"
)

const (
	// planWithin bounds how long a raw submit waits for a node that has its behavior.
	planWithin = 5 * time.Second
	// planLimit bounds the time of a plan.
	planLimit = time.Second
)

// planned is a node's plan for a raw submit of a behavior that it has: the id and the schedule of the task, the
// policy in its stored form, whether the behavior combines parameters, and the combined parameters.
type planned struct {
	ID        events.TaskID
	NotBefore int64 // ms
	Delay     int64 // ns
	Priority  int64
	RunNow    bool
	Policy    []byte
	Merges    bool
	Merged    []byte
	IDLimit   int64
}

func (p *planned) plan() task.Plan {
	return task.Plan{
		ID:        p.ID,
		NotBefore: events.Millis(p.NotBefore).Time(),
		Delay:     time.Duration(p.Delay),
		Priority:  p.Priority,
		RunNow:    p.RunNow,
		IDLimit:   p.IDLimit,
	}
}

func (p *planned) policy() (policy task.Policy, err error) {
	return policy, command.DecodeLenient(p.Policy, policy.Decode)
}

// planAway asks a node that has the behavior. It changes nothing, so an error is never task.ErrUnknown.
func (c *Client) planAway(ctx context.Context, cmd *command.Plan) (planned, error) {
	again := liveness.Again
	for began := time.Now(); ; {
		p, err := c.askPlanner(ctx, cmd)
		if !errors.Is(err, task.ErrNoNode) {
			return p, err
		}
		if time.Since(began) >= liveness.Timeout {
			if again = liveness.Later; !task.AwaitsNodes(ctx) {
				return p, err
			}
		}
		select {
		case <-ctx.Done():
			return p, err
		case <-time.After(again):
		}
	}
}

// askPlanner asks a node that is there, any over the bus, else some by way of the store.
func (c *Client) askPlanner(ctx context.Context, cmd *command.Plan) (planned, error) {
	if err := command.Check(cmd); err != nil {
		return planned{}, err
	}
	if n := c.nodeHere(); n != nil {
		if a, runs := n.plan(ctx, cmd); runs {
			return readPlanned(a, context.Cause(ctx), cmd.Behavior)
		}
	}
	if err := c.gate.pass(ctx); err != nil {
		return planned{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, planWithin, errNotPlanned)
	defer cancel()
	if c.cfg.Bus != nil && c.sender.Connected() {
		a, err := c.requestPlan(ctx, cmd)
		// Another node may get the next request.
		for c.cfg.Store == nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			a, err = c.requestPlan(ctx, cmd)
		}
		if err == nil || c.cfg.Store == nil {
			return readPlanned(a, err, cmd.Behavior)
		}
	}
	if c.cfg.Store == nil {
		return planned{}, fmt.Errorf("plan %s: %w", cmd.Behavior, store.ErrUnavailable)
	}
	members, err := c.cfg.Store.ReadMembers(ctx)
	switch {
	case err != nil:
		return planned{}, fmt.Errorf("plan %s: %w: %w", cmd.Behavior, store.ErrUnavailable, err)
	case len(members.Nodes) == 0:
		return planned{}, fmt.Errorf("plan %s: %w", cmd.Behavior, sender.ErrNoNode)
	}
	planners := plannersOf(&members, cmd.Behavior)
	if len(planners) == 0 {
		return planned{}, fmt.Errorf("%w: no node runs %s", task.ErrUnknownBehavior, cmd.Behavior)
	}
	a, err := c.postPlan(ctx, cmd, planners)
	return readPlanned(a, err, cmd.Behavior)
}

func readPlanned(a command.Answer, err error, behavior string) (planned, error) {
	switch {
	case errors.Is(err, task.ErrUnknownBehavior), a.Code == command.AnswerNotFound:
		return planned{}, fmt.Errorf("%w: no node runs %s", task.ErrUnknownBehavior, behavior)
	case err != nil:
		return planned{}, fmt.Errorf("plan %s: %w: %w", behavior, store.ErrUnavailable, err)
	case a.Code != command.AnswerOK:
		return planned{}, a.Err("")
	}
	return command.ReadLenient[planned](a.Data)
}

func planSubject(behavior string) string { return "plan." + behavior }

// requestPlan asks over the bus; one of the nodes that run the behavior answers.
func (c *Client) requestPlan(ctx context.Context, cmd *command.Plan) (command.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, planLimit+sender.BusTimeout)
	defer cancel()
	a, err := c.requestOnBus(ctx, planSubject(cmd.Behavior), "plan", message.Encode(cmd))
	if errors.Is(err, errNobody) {
		err = task.ErrUnknownBehavior
	}
	return a, err
}
