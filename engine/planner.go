package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/internal/wire"
	"taskledger/store"
	"taskledger/task"
)

// plan implements localNode.
func (m *member) plan(ctx context.Context, c *command.Plan) (a command.Answer, runs bool) {
	if m.exec.Behavior(c.Behavior) == nil {
		return a, false
	}
	return m.planHere(ctx, c), true
}

// planHere plans a raw submit with this node's code. A plan that has not returned within planLimit is abandoned,
// and still counts towards worker.MaxPlans.
func (m *member) planHere(ctx context.Context, c *command.Plan) command.Answer {
	if refusal, refused := command.RefuseInvalid(c); refused {
		return refusal
	}
	b := m.exec.Behavior(c.Behavior)
	if b == nil {
		return command.Answer{Code: command.AnswerNotFound}
	}
	ctx, cancel := context.WithTimeout(ctx, planLimit)
	defer cancel()
	places := m.exec.PlanPlaces(c.Behavior)
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return command.Overload("behavior %s: %d plans have not returned", c.Behavior, len(places))
	}
	planned := make(chan command.Answer, 1)
	if !m.exec.Detach(func() {
		defer func() { <-places }()
		callPlan(c, b, m.cfg.Now(), planned)
	}) {
		return command.Overload("the node is stopping")
	}
	select {
	case a := <-planned:
		return a
	case <-ctx.Done():
	}
	m.log.WarnContext(ctx, "a plan does not return and is left behind",
		"behavior", c.Behavior, "under way", len(places))
	return command.Overload("behavior %s: its plan does not return", c.Behavior)
}

// callPlan calls the behavior. What is deferred runs for a panic and for runtime.Goexit alike.
func callPlan(c *command.Plan, b task.Behavior, now time.Time, planned chan<- command.Answer) {
	a := command.Refused(command.AnswerInvalid, "behavior %s: plan ended its goroutine", c.Behavior)
	defer func() {
		if problem := recover(); problem != nil {
			a = command.Refused(command.AnswerInvalid, "behavior %s: plan panicked: %v", c.Behavior, problem)
		}
		planned <- a
	}()
	a = planWith(c, b, now)
}

func planWith(c *command.Plan, b task.Behavior, now time.Time) command.Answer {
	merge, merges := b.(task.Merger)
	var plan task.Plan
	var merged []byte
	var err error
	switch {
	case c.Merge && merges:
		merged, err = merge.Merge(c.Stored, c.Params)
	case !c.Merge:
		plan, err = b.Plan(c.Params, now)
	}
	if err != nil {
		return command.Refused(command.AnswerInvalid, "%v", err)
	}
	var stored wire.Writer
	policy := b.Policy()
	policy.Encode(&stored)
	return command.Answer{Data: message.Encode(planned{
		ID:        plan.ID,
		NotBefore: int64(events.MillisOf(plan.NotBefore)),
		Delay:     int64(plan.Delay),
		Priority:  plan.Priority,
		RunNow:    plan.RunNow,
		Policy:    stored.B,
		Merges:    merges,
		Merged:    merged,
		IDLimit:   plan.IDLimit,
	})}
}

// servePlans answers plan requests that come over the bus.
func (m *member) servePlans(ctx context.Context) error {
	for behavior := range m.node.behaviors {
		err := m.bus.Subscribe(ctx, planSubject(behavior), "plan", func(msg store.Message) {
			c, err := command.ReadMessage[command.Plan](msg.Data)
			if errors.Is(err, wire.ErrTail) && msg.Reply != "" {
				misplaced := command.Misplaced(command.LaterPlan, m.session.ID)
				m.sender.Hint(msg.Reply, "", command.EncodeAnswers([]command.Answer{misplaced}))
			}
			if err != nil || msg.Reply == "" {
				return
			}
			m.spawn(func(ctx context.Context) {
				m.sender.Hint(msg.Reply, "", command.EncodeAnswers([]command.Answer{m.planHere(ctx, &c)}))
			})
		})
		if err != nil {
			return fmt.Errorf("subscribe to plans of %s: %w", behavior, err)
		}
	}
	return nil
}

// answerPlans plans what clients ask this node for by way of the store.
func (m *member) answerPlans(ctx context.Context) error {
	for l, err := range m.mailbox.Batches(ctx, m.shards) {
		if err != nil {
			m.log.WarnContext(ctx, "plans asked for through the store are delayed", "err", err)
			continue
		}
		message, err := command.ReadMessage[command.PlanMessage](l.Batch)
		later := errors.Is(err, wire.ErrTail)
		if later {
			message, err = command.ReadLenient[command.PlanMessage](l.Batch)
		}
		if err != nil {
			m.log.WarnContext(ctx, "plan message cannot be read", "sender", l.Sender, "err", err)
			continue
		}
		if !slices.Contains(message.Planners, m.session.ID) || m.exec.Behavior(message.Plan.Behavior) == nil {
			continue
		}
		m.spawn(func(ctx context.Context) {
			a := command.Misplaced(command.LaterPlan, m.session.ID)
			if !later {
				a = m.planHere(ctx, &message.Plan)
			}
			err := m.mailbox.Answer(ctx, l, command.EncodeAnswers([]command.Answer{a}))
			if err != nil && ctx.Err() == nil {
				m.log.WarnContext(ctx, "the answer to a plan is lost until it is asked for again",
					"sender", l.Sender, "err", err)
			}
		})
	}
	return nil
}
