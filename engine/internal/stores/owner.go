package stores

import (
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/projection"
	"taskledger/projection/items"
)

// atOwner is the extension of the owner of a shard.
type atOwner struct {
	stores  *items.Stores
	waiters Waiters
	got     map[Group]struct{} // the groups that may have a further item for waiters
	hint    func(sender string, data []byte)
}

// base anchors the monotonic clock.
var base = time.Now()

// AtOwner returns the extension of owners. hint sends a Hint to a sender that waits for items; it must not block.
func AtOwner(hint func(sender string, data []byte)) shard.NewExtension {
	return func(state *projection.Shard) shard.Extension {
		o := &atOwner{
			stores: items.Of(state),
			got:    map[Group]struct{}{},
			hint:   hint,
		}
		return shard.Extension{
			NextDue:  o.stores.NextDue,
			MakeDue:  o.makeDue,
			Decide:   o.forget,
			Note:     o.note,
			Complete: o.complete,
			Perform:  o.wake,
			Answer:   o.answer,
			Gauges:   o.gauges,
		}
	}
}

// makeDue makes items available once their time has come.
func (o *atOwner) makeDue(now events.Millis) (moved bool) {
	return o.stores.MakeDue(now, func(i *items.Item) { o.gotItem(i.Group) })
}

// gotItem notes a group that may have a further item for waiters.
func (o *atOwner) gotItem(g *items.Group) {
	if !o.waiters.None() {
		o.got[Group{Store: g.Store.Name, Name: g.Name}] = struct{}{}
	}
}

// note notes the group of an event's item.
func (o *atOwner) note(ev *events.Event) {
	if o.waiters.None() {
		return
	}
	var id uint64
	switch b := ev.Body.(type) {
	case *events.ItemAdded:
		id = b.ID
	case *events.ItemReplaced:
		id = b.To
	default:
		return
	}
	if store, _, err := events.ItemOf(ev.Task); err == nil {
		if i := o.stores.Item(store, id); i != nil {
			o.gotItem(i.Group)
		}
	}
}

// forget records that task stores which have been empty for long are forgotten. Their number alone bounds the time,
// since each takes a microsecond or two.
func (o *atOwner) forget(d *command.Decider, b command.Budget) {
	if !d.MayRecord(events.KindStoreForgotten) {
		return
	}
	for _, body := range o.stores.Forgettable(d.Now, b.Items) {
		if d.EntryFull() || d.Err != nil {
			return
		}
		d.EmitRecord(&body)
	}
}

// complete adds the data of claimed items to the answers of a batch: an entry does not hold them again.
func (o *atOwner) complete(commands []command.Command, answers []command.Answer) []command.Answer {
	return WithData(o.stores, commands, answers, func(c *Claim) {
		o.waiters.Claimed(Group{Store: c.Store, Name: c.Group})
	})
}

// wake sends a hint to waiters for whom the committed state has items.
func (o *atOwner) wake() {
	for g := range o.got {
		o.waiters.Wake(time.Since(base), g, o.stores.Free(g.Store, g.Name), func(sender string) {
			o.hint(sender, EncodeHint(Hint{Store: g.Store, Group: g.Name, Count: 1}))
		})
	}
	clear(o.got)
}

// answer answers a question about items. All items that are due were made available before.
func (o *atOwner) answer(c command.Command, now events.Millis, b command.Budget) (command.Found, bool) {
	linear, is := IsQuestion(c)
	if !is {
		return command.Found{}, false
	}
	if q, waits := c.(*Await); waits { // it reads nothing but two counts
		o.waiters.Set(Group{Store: q.Store, Name: q.Group}, q.Sender, q.Count, time.Since(base))
	} else if b.Spent() {
		return command.Found{Answer: command.TryAgain}, true
	}
	found := Find(o.stores, c, now, b)
	found.Linear = linear
	return found, true
}

func (o *atOwner) gauges(set func(meter.Gauge, int64)) {
	n := o.stores.Counts()
	set(meter.ItemsAvailable, int64(n.Available))
	set(meter.ItemsWaiting, int64(n.Waiting))
	set(meter.ItemsClaimed, int64(n.Claimed))
}
