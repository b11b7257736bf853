package items

import (
	"cmp"
	"fmt"

	"taskledger/events"
	"taskledger/item"
)

// Head bounds the oldest available items of a group among which a claim chooses.
const Head = 64

// Decision holds what follows from a request.
type Decision struct {
	Events   []Event        // in the order in which they are to be applied; none of a request that was answered before
	First    uint64         // the id of the first change; the others follow: adds, then updates
	Now      events.Millis  // what times were counted from
	Changed  []*Item        // the items that the updates replace, or the one that was claimed, as they were; of a claim nil = there is none
	Problems []item.Problem // why nothing is to be applied; in the order depends, deletes, updates, adds
	Repeated bool           // the request was carried out before, at Now
}

// Event is an event of an item that is to be applied.
type Event struct {
	Item TaskOf
	Body events.Body
}

// TaskOf holds what an event says of its item besides the body.
type TaskOf struct {
	Task events.TaskID
	Seq  uint64
	Prev events.Ref
}

// Refusal reports that a key stands for another request or may have been forgotten, or that a request exceeds what
// the shard may hold.
type Refusal struct {
	OtherRequest bool
	Forgotten    bool          // the request may have been carried out
	Full         string        // which limit
	Wait         events.Millis // until there may be room; 0 = nobody knows
}

// Error says why the request is refused.
func (r *Refusal) Error() string {
	switch {
	case r.OtherRequest:
		return "the key stands for another request"
	case r.Forgotten:
		return "the store may have forgotten the key: the request may have been carried out"
	}
	return r.Full
}

// DecideUpdate decides an update, which item.Update.Validate has passed. request is the id of the request, ""
// without a key. An error is a *Refusal.
func (s *Stores) DecideUpdate(store string, u *item.Update, request string, now events.Millis) (Decision, error) {
	if d, done, err := s.answered(store, request, since{u.Age, u.Within}, now); done || err != nil {
		return d, err
	}
	d := Decision{Now: now}
	p := problems{s: s, store: store, client: uint64(u.Client), now: now}
	p.depend(u.Depends)
	for _, id := range u.Deletes {
		p.changeable("deletes", id)
	}
	for i := range u.Changes {
		c := &u.Changes[i]
		was := p.changeable("updates", c.ID)
		if was != nil && c.Group != "" && c.Group != was.Group.Name {
			p.add("updates", c.ID, item.OtherGroup, "it is of group %q, not %q", was.Group.Name, c.Group)
		}
		d.Changed = append(d.Changed, was)
	}
	if len(p.found) > 0 {
		return Decision{Problems: p.found, Now: now}, nil
	}
	if err := s.room(store, u, request, now); err != nil {
		return Decision{}, err
	}
	for _, id := range u.Deletes {
		was := s.Item(store, uint64(id))
		d.Events = append(d.Events, after(store, was, &events.ItemRemoved{ID: was.ID, Owner: p.client}))
	}
	next := s.next(store)
	d.First = next
	for i := range u.Adds {
		a := &u.Adds[i]
		d.Events = append(d.Events, Event{TaskOf{Task: events.StoreItem(store, next), Seq: 1},
			&events.ItemAdded{ID: next, Group: a.Group, At: at(a.At, now), Owner: p.client, Data: events.Bytes(a.Data)}})
		next++
	}
	for i := range u.Changes {
		c, was := &u.Changes[i], d.Changed[i]
		b := &events.ItemReplaced{From: was.ID, To: next, At: at(c.At, now), Owner: p.client}
		if data := events.Bytes(c.Data); !c.Keep && string(data) != string(was.Data) {
			b.Data = data
		}
		d.Events = append(d.Events, after(store, was, b))
		next++
	}
	return d, nil
}

// DecideClaim decides a claim, which item.Claim.Validate has passed, after MakeDue of the same time. random chooses
// among the items that are oldest. An error is a *Refusal.
func (s *Stores) DecideClaim(
	store string,
	c *item.Claim,
	request string,
	random uint64,
	now events.Millis,
) (Decision, error) {
	if d, done, err := s.answered(store, request, since{asked: c.Age}, now); done || err != nil {
		return d, err
	}
	p := problems{s: s, store: store, client: uint64(c.Client), now: now}
	if p.depend(c.Depends); len(p.found) > 0 {
		return Decision{Problems: p.found, Now: now}, nil
	}
	g := s.group(store, c.Group)
	if g == nil || g.free.Len() == 0 {
		return Decision{Now: now}, nil
	}
	if err := cmp.Or(s.idsLeft(store, 1), s.roomForKey(store, request, now)); err != nil {
		return Decision{}, err
	}
	was, _ := g.free.GetAt(int(random % uint64(min(Head, g.free.Len()))))
	next := s.next(store)
	b := &events.ItemReplaced{From: was.ID, To: next, At: min(now.Add(c.Duration), events.MaxItemTime), Owner: p.client}
	return Decision{Events: []Event{after(store, was, b)}, First: next, Now: now, Changed: []*Item{was}}, nil
}

// answered returns the decision of a request that was carried out before.
func (s *Stores) answered(store, request string, first since, now events.Millis) (d Decision, done bool, err error) {
	if request == "" {
		return Decision{}, false, nil
	}
	in := s.byName[store]
	k := s.find(in, request, now)
	switch {
	case k == nil && s.mayHaveForgotten(in, request, first, now):
		return Decision{}, false, &Refusal{Forgotten: true}
	case k == nil:
		return Decision{}, false, nil
	case k.request != request:
		return Decision{}, false, &Refusal{OtherRequest: true}
	}
	return Decision{First: k.first, Now: k.at, Repeated: true}, true, nil
}

// room refuses an update that makes more than a shard may hold.
func (s *Stores) room(store string, u *item.Update, request string, now events.Millis) error {
	if n := s.Len() - len(u.Deletes) + len(u.Adds); len(u.Adds) > 0 && n > MaxItems {
		return &Refusal{Full: fmt.Sprintf("%d items in the shard, want %d at most", n, MaxItems)}
	}
	if s.byName[store] == nil {
		if err := s.storeRoom(now); err != nil {
			return err
		}
	}
	made := map[string]bool{}
	for i := range u.Adds {
		if s.group(store, u.Adds[i].Group) == nil {
			made[u.Adds[i].Group] = true
		}
	}
	if n := s.groups.Len() + len(made); len(made) > 0 && n > MaxGroups {
		return &Refusal{Full: fmt.Sprintf("%d groups in the shard, want %d at most", n, MaxGroups)}
	}
	return cmp.Or(s.idsLeft(store, len(u.Adds)+len(u.Changes)), s.roomForKey(store, request, now))
}

// roomForKey refuses a key for which there is no room.
func (s *Stores) roomForKey(store, request string, now events.Millis) error {
	if request == "" {
		return nil
	}
	if room, wait := s.keyRoom(store, now); !room {
		return &Refusal{Full: fmt.Sprintf("%d keys of the last 10 minutes in the shard, want %d at most", s.keys.inOrder.Len(), MaxKeys), Wait: wait}
	}
	return nil
}

// idsLeft refuses what needs more ids than are left.
func (s *Stores) idsLeft(store string, n int) error {
	if s.next(store)+uint64(n)-1 > events.MaxItemNumber {
		return &Refusal{Full: fmt.Sprintf("the ids of store %s are used up", store)}
	}
	return nil
}

// at is a time that was asked for; a clock may be so wrong that it would be beyond all times.
func at(w item.When, now events.Millis) events.Millis { return min(w.From(now), events.MaxItemTime) }

// after returns an event that follows the last one of an item.
func after(store string, was *Item, body events.Body) Event {
	return Event{TaskOf{events.StoreItem(store, was.Lineage), was.Seq + 1, was.Last}, body}
}

// problems collects why a request cannot be carried out.
type problems struct {
	s      *Stores
	store  string
	client uint64
	now    events.Millis
	found  []item.Problem
}

func (p *problems) add(field string, id int64, kind item.Kind, format string, args ...any) {
	p.found = append(p.found, item.Problem{Field: field, ID: id, Kind: kind, Text: fmt.Sprintf(format, args...)})
}

func (p *problems) missing(field string, id int64) {
	p.add(field, id, item.NotThere, "it is not there")
}

func (p *problems) depend(ids []int64) {
	for _, id := range ids {
		if p.s.Item(p.store, uint64(id)) == nil {
			p.missing("depends", id)
		}
	}
}

// changeable returns the item of an id that is to be changed, nil if it is not there or another's.
func (p *problems) changeable(field string, id int64) *Item {
	was := p.s.Item(p.store, uint64(id))
	switch {
	case was == nil:
		p.missing(field, id)
	case !was.changeable(p.client, p.now):
		p.add(field, id, item.Held, "it is held by %d for %d ms more", was.Owner, was.At-p.now)
		return nil
	}
	return was
}
