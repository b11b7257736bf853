package engine

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/internal/message"
	"taskledger/store"
)

// firstPlanners is the number of nodes that are asked first for a plan through the store. One of them may have died
// a moment ago.
const firstPlanners = 3

// errNotPlanned reports a plan that was given up.
var errNotPlanned = errors.New("no node that runs it answers")

// plannersOf returns the sessions of the nodes that run a behavior, in any order: those that stay, if there are any,
// as many as are asked.
func plannersOf(v *store.Membership, behavior string) []string {
	run := maps.Collect(maps.All(v.Nodes))
	maps.DeleteFunc(run, func(_ string, n store.NodeInfo) bool { return !slices.Contains(n.Behaviors, behavior) })
	stay := maps.Clone(run)
	maps.DeleteFunc(stay, func(_ string, n store.NodeInfo) bool { return n.Draining })
	if len(stay) == 0 {
		stay = run
	}
	ids := slices.Collect(maps.Keys(stay))
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids[:min(len(ids), command.MaxPlanners)]
}

// postPlan asks the planners through the mailbox that every node reads, whether it owns shards or not: a few at
// first, then all. The first answer counts. Every plan is a sender of its own, so that questions do not wait for
// each other.
//
// Its mailboxes are removed in the end, also when it was answered: a message whose post had an unknown outcome may
// have been posted twice, and both are answered.
func (c *Client) postPlan(ctx context.Context, cmd *command.Plan, planners []string) (command.Answer, error) {
	from := randomID()
	defer c.removePlanMailboxes(ctx, from)
	got := make(chan command.Answer, 1)
	listen, stop := context.WithCancel(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer stop()
	listening.Go(func() { c.awaitPlan(listen, from, got) })
	for ask := planners[:min(len(planners), firstPlanners)]; ; ask = planners {
		question := message.Encode(command.PlanMessage{Planners: ask, Plan: *cmd})
		if err := c.cfg.Store.Post(ctx, c.cfg.Shards, from, command.LaneQuery, question); err != nil {
			return command.Answer{}, err
		}
		select {
		case a := <-got:
			return a, nil
		case <-ctx.Done():
			return command.Answer{}, context.Cause(ctx)
		case <-time.After(2 * planLimit): // a plan that hangs is answered sooner
		}
	}
}

// removePlanMailboxes removes the mailboxes of a plan. If that fails they are removed when the client ends, or swept.
func (c *Client) removePlanMailboxes(ctx context.Context, from string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeMailboxesWithin)
	defer cancel()
	if err := c.cfg.Store.RemoveMailboxes(ctx, from, c.cfg.Shards); err != nil {
		c.cfg.Log.WarnContext(ctx, "the mail of a plan is removed later", "err", err)
		c.sendersLeft.add(from)
	}
}

// awaitPlan takes the first answer that can be read.
func (c *Client) awaitPlan(ctx context.Context, from string, got chan<- command.Answer) {
	for l, err := range c.cfg.Store.Answers(ctx, from) {
		if ctx.Err() != nil {
			return
		}
		var answers []command.Answer
		if err == nil {
			answers, err = command.DecodeAnswers(l.Answer)
		}
		if err != nil || len(answers) != 1 {
			c.cfg.Log.WarnContext(ctx, "the answer to a plan cannot be read", "err", err)
			continue
		}
		got <- answers[0]
		return
	}
}
