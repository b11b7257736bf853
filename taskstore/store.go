package taskstore

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"

	"taskledger/item"
)

// Engine is what a store needs of a client or node of package engine.
type Engine interface {
	UpdateItems(ctx context.Context, store string, u *item.Update) ([]item.Item, error)
	ClaimItem(ctx context.Context, store string, c *item.Claim) (*item.Item, error)
	Items(ctx context.Context, store string, ids []int64, linear bool) ([]*item.Item, error)
	ItemGroup(ctx context.Context, store string, p item.Page) (items []item.Item, more bool, err error)
	ItemGroups(ctx context.Context, store string, linear bool) ([]string, error)
}

// Store is a store as one client of it uses it.
type Store struct {
	engine Engine
	name   string
	client int64
	linear bool
}

// Open returns the store of a name, 1 to 64 bytes of [A-Za-z0-9._:-]; it is made by its first use. client is who uses it, 1 to 2^53: tasks that
// are not available can be changed by who has them alone. 0 draws one at random, which no other process has.
func Open(e Engine, name string, client int64) (*Store, error) {
	if err := item.ValidateStore(name); err != nil {
		return nil, fmt.Errorf("open a store: %w", err)
	}
	if client == 0 {
		client = DrawClient()
	}
	if err := item.ValidateClient(client); err != nil {
		return nil, fmt.Errorf("open store %s: %w", name, err)
	}
	return &Store{engine: e, name: name, client: client}, nil
}

// DrawClient draws a client at random among 2^53.
func DrawClient() int64 { return 1 + rand.Int64N(item.MaxNumber) }

// Client returns who uses the store.
func (s *Store) Client() int64 { return s.client }

// Linear returns the store with reads that prove that they are of its owner, which takes a read of etcd: without that a node that has just lost the
// store may answer from what it had. Whoever decides that no work is left needs it.
func (s *Store) Linear() *Store {
	is := *s
	is.linear = true
	return &is
}

// Groups returns the names of the groups that have tasks, sorted.
func (s *Store) Groups(ctx context.Context) ([]string, error) {
	return s.engine.ItemGroups(ctx, s.name, s.linear)
}

// Task returns a task by its id, nil if there is none.
func (s *Store) Task(ctx context.Context, id int64) (*item.Item, error) {
	all, err := s.Tasks(ctx, id)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Tasks returns up to 1,000 tasks by their ids, in the order of these; nil stands for one that is not there.
func (s *Store) Tasks(ctx context.Context, ids ...int64) ([]*item.Item, error) {
	return s.engine.Items(ctx, s.name, ids, s.linear)
}

// Group yields the tasks of a group by their ids, from page to page as they are by then; of a group that is not there it yields none. p.Group and
// p.Linear are set by Group. It ends with the first error.
func (s *Store) Group(ctx context.Context, name string, p item.Page) iter.Seq2[item.Item, error] {
	return func(yield func(item.Item, error) bool) {
		p.Group, p.Linear = name, s.linear
		for left := p.Limit; ; {
			page, more, err := s.engine.ItemGroup(ctx, s.name, p)
			if err != nil {
				yield(item.Item{}, err)
				return
			}
			for i := range page {
				if !yield(page[i], nil) {
					return
				}
			}
			left -= len(page)
			if !more || len(page) == 0 || p.Limit > 0 && left <= 0 {
				return
			}
			p.After = page[len(page)-1].ID
			if p.Limit > 0 {
				p.Limit = left
			}
		}
	}
}

// Update changes tasks, all or nothing, and returns those that were added, then those that were changed, each with its new id. The data of a change
// with Keep are not among what is returned. A Client of 0 is that of the store.
func (s *Store) Update(ctx context.Context, u *item.Update) ([]item.Item, error) {
	if u.Client == 0 {
		own := *u
		own.Client = s.client
		u = &own
	}
	return s.engine.UpdateItems(ctx, s.name, u)
}

// Claim takes a task of a group, one at random among the 64 that are oldest by the time since when they are available. It returns nil if there is none,
// after c.Wait. A Client of 0 is that of the store.
func (s *Store) Claim(ctx context.Context, c *item.Claim) (*item.Item, error) {
	if c.Client == 0 {
		own := *c
		own.Client = s.client
		c = &own
	}
	return s.engine.ClaimItem(ctx, s.name, c)
}
