// Package model is a task store in memory: small, and so slow that it is seen to be right. Tests hold others to it,
// and try with it what asks a store. It knows the rules of package item, and nothing of the engine's.
package model

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/item"
	"taskledger/task"
)

// Cluster holds stores. It implements taskstore.Backend.
type Cluster struct {
	mu     sync.Mutex
	random *rand.Rand // chooses what a claim takes
	stores map[string]*kept
	// changed is closed, and made anew, by every change: who waits looks again.
	changed chan struct{}
}

// New returns a cluster without stores, which alone draws from random.
func New(random *rand.Rand) *Cluster {
	return &Cluster{random: random, stores: map[string]*kept{}, changed: make(chan struct{})}
}

const (
	keysPerClient = 64
	keysLast      = time.Hour
	head          = 64 // of the oldest available items, among which a claim chooses
	pageItems     = 1_000
	pageBytes     = 512 << 10
)

// kept holds the state of a store.
type kept struct {
	last  int64
	items map[int64]item.Item
	done  map[int64][]done // by client, oldest first
}

// done is a call that succeeded under a key.
type done struct {
	request string // of item's RequestID
	key     string
	at      time.Time
	made    []item.Item
}

// of returns a store, and makes it.
func (m *Cluster) of(name string) *kept {
	s := m.stores[name]
	if s == nil {
		s = &kept{items: map[int64]item.Item{}, done: map[int64][]done{}}
		m.stores[name] = s
	}
	return s
}

func (m *Cluster) hasChanged() {
	close(m.changed)
	m.changed = make(chan struct{})
}

func now() events.Millis { return events.Millis(time.Now().UnixMilli()) }

// Update implements taskstore.Backend.
func (m *Cluster) Update(ctx context.Context, name string, u *item.Update) ([]item.Item, error) {
	if err := check(ctx, name, u); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, at := m.of(name), now()
	if was, err := s.before(u.Client, u.Key, u.RequestID()); was != nil || err != nil {
		return clone(was), err
	}
	if found := s.problems(u, at); len(found) > 0 {
		return nil, &item.ConflictError{Store: name, Problems: found}
	}
	made := s.apply(u, at)
	s.remember(u.Client, u.Key, u.RequestID(), made)
	m.hasChanged()
	return clone(made), nil
}

func check(ctx context.Context, name string, request interface{ Validate() error }) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := item.ValidateStore(name); err != nil {
		return err
	}
	return request.Validate()
}

const notThere = "it is not there"

// problems returns the problems of an update, in the order in which they are reported.
func (s *kept) problems(u *item.Update, at events.Millis) (all []item.Problem) {
	add := func(field string, id int64, kind item.Kind, text string) {
		all = append(all, item.Problem{Field: field, ID: id, Kind: kind, Text: text})
	}
	all = s.missing(u.Depends)
	changeable := func(field string, id int64) (it item.Item, there bool) {
		it, there = s.items[id]
		switch {
		case !there:
			add(field, id, item.NotThere, notThere)
		case it.At > at && it.Owner != u.Client:
			add(field, id, item.Held, "it is held")
			return it, false
		}
		return it, there
	}
	for _, id := range u.Deletes {
		changeable("deletes", id)
	}
	for _, c := range u.Changes {
		if it, there := changeable("updates", c.ID); there && c.Group != "" && c.Group != it.Group {
			add("updates", c.ID, item.OtherGroup, fmt.Sprintf("it is of group %q", it.Group))
		}
	}
	return all
}

func (s *kept) missing(ids []int64) (all []item.Problem) {
	for _, id := range ids {
		if _, there := s.items[id]; !there {
			all = append(all, item.Problem{Field: "depends", ID: id, Kind: item.NotThere, Text: notThere})
		}
	}
	return all
}

func (s *kept) apply(u *item.Update, at events.Millis) (made []item.Item) {
	for _, id := range u.Deletes {
		delete(s.items, id)
	}
	for _, a := range u.Adds {
		made = append(made, s.put(item.Item{Group: a.Group, At: a.At.From(at), Owner: u.Client, Data: bytes.Clone(a.Data)}))
	}
	for _, c := range u.Changes {
		was := s.items[c.ID]
		delete(s.items, c.ID)
		is := item.Item{Group: was.Group, At: c.At.From(at), Owner: u.Client, Claims: was.Claims, Data: was.Data}
		switch {
		case !c.Keep && !bytes.Equal(c.Data, was.Data):
			is.Data, is.Claims = bytes.Clone(c.Data), 0
		case was.At <= at && is.At > at:
			is.Claims++
		}
		is = s.put(is)
		if is.Claims = 0; c.Keep { // they are not told
			is.Data = nil
		}
		made = append(made, is)
	}
	return made
}

// put places an item under the next id.
func (s *kept) put(it item.Item) item.Item {
	s.last++
	it.ID = s.last
	s.items[it.ID] = it
	return it
}

// before returns the answer to an earlier call under the key, nil if there was none.
func (s *kept) before(client int64, key, request string) ([]item.Item, error) {
	for _, d := range s.done[client] {
		if key == "" || d.key != key || time.Since(d.at) > keysLast {
			continue
		}
		if d.request != request {
			return nil, fmt.Errorf("key %.64q: %w", key, task.ErrOtherRequest)
		}
		return append([]item.Item{}, d.made...), nil
	}
	return nil, nil
}

func (s *kept) remember(client int64, key, request string, made []item.Item) {
	if key == "" {
		return
	}
	all := slices.DeleteFunc(s.done[client], func(d done) bool { return d.key == key })
	all = append(all, done{request, key, time.Now(), made})
	s.done[client] = all[max(0, len(all)-keysPerClient):]
}

// Claim implements taskstore.Backend.
func (m *Cluster) Claim(ctx context.Context, name string, c *item.Claim) (*item.Item, error) {
	if err := check(ctx, name, c); err != nil {
		return nil, err
	}
	deadline := time.NewTimer(c.Wait)
	defer deadline.Stop()
	for last := c.Wait == 0; ; {
		it, due, changed, err := m.claim(name, c)
		if it != nil || err != nil || last {
			return it, err
		}
		ripe := time.NewTimer(due)
		select {
		case <-ctx.Done():
			ripe.Stop()
			return nil, context.Cause(ctx)
		case <-deadline.C:
			last = true
		case <-ripe.C:
		case <-changed:
		}
		ripe.Stop()
	}
}

// claim looks once. It tells in how long the next item of the group is due, and what is closed when something has
// changed.
func (m *Cluster) claim(name string, c *item.Claim) (it *item.Item, due time.Duration, changed chan struct{}, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, at := m.of(name), now()
	if was, err := s.before(c.Client, c.Key, c.RequestID()); was != nil || err != nil {
		if len(was) == 0 {
			return nil, 0, nil, err
		}
		if is, there := s.items[was[0].ID]; there {
			return &is, 0, nil, nil
		}
		gone := item.Problem{Field: "claim", ID: was[0].ID, Kind: item.NotThere, Text: notThere}
		return nil, 0, nil, &item.ConflictError{Store: name, Problems: []item.Problem{gone}}
	}
	if found := s.missing(c.Depends); len(found) > 0 {
		return nil, 0, nil, &item.ConflictError{Store: name, Problems: found}
	}
	var free []item.Item
	due = time.Hour
	for _, it := range s.items {
		switch {
		case it.Group != c.Group:
		case it.At <= at:
			free = append(free, it)
		default:
			due = time.Duration(min(int64(it.At-at), due.Milliseconds())) * time.Millisecond
		}
	}
	if len(free) == 0 {
		return nil, due, m.changed, nil
	}
	slices.SortFunc(free, func(a, b item.Item) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return int(a.ID - b.ID)
	})
	is := free[m.random.IntN(min(head, len(free)))]
	delete(s.items, is.ID)
	is.At, is.Owner, is.Claims = at.Add(c.Duration), c.Client, is.Claims+1
	is = s.put(is)
	s.remember(c.Client, c.Key, c.RequestID(), []item.Item{is})
	m.hasChanged()
	is.Data = bytes.Clone(is.Data)
	return &is, 0, nil, nil
}

// Items implements taskstore.Backend.
func (m *Cluster) Items(ctx context.Context, name string, ids []int64, linear bool) (found []*item.Item, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		if it, there := m.items(name)[id]; there {
			it.Data = bytes.Clone(it.Data)
			found = append(found, &it)
		} else {
			found = append(found, nil)
		}
	}
	return found, nil
}

// items returns the items of a store. Reading a missing store does not create it.
func (m *Cluster) items(name string) map[int64]item.Item {
	if s := m.stores[name]; s != nil {
		return s.items
	}
	return nil
}

// Group implements taskstore.Backend.
func (m *Cluster) Group(ctx context.Context, name string, p item.Page) (page []item.Item, more bool, err error) {
	if err := check(ctx, name, &p); err != nil {
		return nil, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	size, limit := 0, pageItems
	if p.Limit > 0 {
		limit = min(limit, p.Limit)
	}
	of := m.items(name)
	for _, id := range slices.Sorted(maps.Keys(of)) {
		it := of[id]
		if it.Group != p.Group || id <= p.After || !p.Owned && it.At > now() {
			continue
		}
		if size += len(it.Data); len(page) == limit || size > pageBytes && len(page) > 0 {
			return page, true, nil
		}
		it.Data = bytes.Clone(it.Data)
		page = append(page, it)
	}
	return page, false, nil
}

// Groups implements taskstore.Backend.
func (m *Cluster) Groups(ctx context.Context, name string, linear bool) ([]item.Group, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	groups, at := map[string]*item.Group{}, now()
	for _, it := range m.items(name) {
		g := groups[it.Group]
		if g == nil {
			g = &item.Group{Name: it.Group}
			groups[it.Group] = g
		}
		g.Bytes += int64(len(it.Data))
		switch {
		case it.At <= at:
			g.Available++
			if g.Oldest == 0 || it.At < g.Oldest {
				g.Oldest = it.At
			}
		case it.Claims > 0:
			g.Claimed++
		default:
			g.Waiting++
		}
	}
	all := make([]item.Group, 0, len(groups))
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		all = append(all, *groups[name])
	}
	return all, nil
}

func clone(all []item.Item) []item.Item {
	all = slices.Clone(all)
	for i := range all {
		all[i].Data = bytes.Clone(all[i].Data)
	}
	return all
}
