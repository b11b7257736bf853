package engine

import (
	"context"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/itemcommand"
	"taskledger/engine/internal/itemwait"
	"taskledger/events"
	"taskledger/store"
)

// ripenItems makes the items available whose time has come. What was available stays so when the wall clock is set back.
func (o *owner) ripenItems(now events.Millis, at time.Duration) {
	if o.state.Stores().Ripen(now, nil) {
		o.clock.Hold(now, at)
		o.itemsMoved = true
	}
}

// answerItems answers a question about items, as answer has ripened them. All lists and questions about items of a turn share one
// budget: one that finds it used up is asked again, behind those that wait. What has to be proven is encoded after the proof.
func (o *owner) answerItems(c command.Command, linear bool) (command.Answer, func(context.Context) command.Answer) {
	if q, is := c.(*itemcommand.Await); is { // it looks at nothing but two counts
		o.waiters.Set(itemwait.Group{Store: q.Store, Name: q.Group}, q.Sender, q.Count, time.Since(clockBase))
	} else if o.looking.over() {
		return command.Answer{Code: command.AnswerTryAgain}, nil
	}
	found := itemcommand.Look(o.state.Stores(), c, o.now(), itemcommand.Budget{Items: o.looking.tasks, Over: o.looking.late})
	o.looking.took(found.Items, found.Bytes)
	if !linear {
		return found.Answer(), nil
	}
	return command.Answer{}, o.proven(func(context.Context) command.Answer { return found.Answer() })
}

// claimed takes note of a claim that got an item.
func (o *owner) claimed(c *itemcommand.Claim) {
	o.waiters.Claimed(itemwait.Group{Store: c.Store, Name: c.Group})
}

// wakeItems tells who waits for items that are there, by the committed state.
func (o *owner) wakeItems() {
	if !o.itemsMoved || o.waiters.None() {
		o.itemsMoved = false
		return
	}
	o.itemsMoved = false
	free := func(g itemwait.Group) int { return o.state.Stores().Free(g.Store, g.Name) }
	o.waiters.Wake(time.Since(clockBase), free, func(g itemwait.Group, sender string) {
		hint := itemcommand.Hint{Store: g.Store, Group: g.Name, Count: 1}
		if sender == o.m.router.sender {
			o.m.node.items.Hinted(hint)
			return
		}
		o.m.router.hint(itemSubject(sender), "", itemcommand.EncodeHint(hint))
	})
}

func itemSubject(sender string) string { return "node." + sender + ".items" }

// onItems takes the news that items are there.
func (c *Client) onItems(m store.Message) {
	h, err := itemcommand.DecodeHint(m.Data)
	if err != nil {
		c.cfg.Log.Warn("hint cannot be read", "err", err)
		return
	}
	c.items.Hinted(h)
}
