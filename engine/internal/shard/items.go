package shard

import (
	"context"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/itemcommand"
	"taskledger/engine/internal/itemwait"
	"taskledger/events"
	"taskledger/projection/items"
)

// itemNews is who waits for items, and which groups may have some for them.
type itemNews struct {
	waiters itemwait.Waiters
	got     map[itemwait.Group]struct{}
}

// ripenItems makes the items available whose time has come. What was available stays so when the wall clock is set
// back.
func (o *Owner) ripenItems(now events.Millis, at time.Duration) {
	if itemcommand.Ripen(items.Of(o.state), now, o.gotItem) {
		o.clock.Hold(now, at)
	}
}

// gotItem takes note of a group that may have an item more for who waits.
func (o *Owner) gotItem(store, group string) {
	if o.items.waiters.None() {
		return
	}
	if o.items.got == nil {
		o.items.got = map[itemwait.Group]struct{}{}
	}
	o.items.got[itemwait.Group{Store: store, Name: group}] = struct{}{}
}

// itemChanged is gotItem for the item of an event.
func (o *Owner) itemChanged(ev *events.Event, id uint64) {
	if o.items.waiters.None() {
		return
	}
	if store, _, err := events.ItemOf(ev.Task); err == nil {
		if i := items.Of(o.state).Item(store, id); i != nil {
			o.gotItem(store, i.Group.Name)
		}
	}
}

// answerItems answers a question about items, as answer has ripened them. All lists and questions about items of a
// turn share one budget: one that finds it used up is asked again, behind those that wait. What has to be proven is
// encoded after the proof.
func (o *Owner) answerItems(c command.Command, linear bool) (command.Answer, func(context.Context) command.Answer) {
	if q, is := c.(*itemcommand.Await); is { // it looks at nothing but two counts
		o.items.waiters.Set(itemwait.Group{Store: q.Store, Name: q.Group}, q.Sender, q.Count, time.Since(base))
	} else if o.looking.over() {
		return command.Answer{Code: command.AnswerTryAgain}, nil
	}
	found := itemcommand.Look(items.Of(o.state), c, o.now(), itemcommand.Budget{Items: o.looking.tasks, Over: o.looking.late})
	o.looking.took(found.Items, found.Bytes)
	if !linear {
		return found.Answer(), nil
	}
	return command.Answer{}, o.proven(func(context.Context) command.Answer { return found.Answer() })
}

// claimed takes note of a claim that got an item.
func (o *Owner) claimed(c *itemcommand.Claim) {
	o.items.waiters.Claimed(itemwait.Group{Store: c.Store, Name: c.Group})
}

// wakeItems tells who waits for items that are there, by the committed state.
func (o *Owner) wakeItems() {
	for g := range o.items.got {
		o.items.waiters.Wake(time.Since(base), g, items.Of(o.state).Free(g.Store, g.Name), func(sender string) {
			o.cfg.Effects.ItemsAvailable(sender, itemcommand.Hint{Store: g.Store, Group: g.Name, Count: 1})
		})
	}
	clear(o.items.got)
}
