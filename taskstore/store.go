package taskstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"iter"

	"taskledger/item"
)

// Items is what a Store needs of whoever holds the items of stores; an engine's Client and Node have it.
type Items interface {
	// UpdateItems returns what was added, then what was changed.
	UpdateItems(ctx context.Context, store string, u *item.Update) ([]item.Item, error)
	// ClaimItem returns nil if nothing is there.
	ClaimItem(ctx context.Context, store string, c *item.Claim) (*item.Item, error)
	// Items returns items in the order asked, nil for those that are not there.
	Items(ctx context.Context, store string, ids []int64, linear bool) ([]*item.Item, error)
	// ItemGroup returns a page by id; more tells that there may be others.
	ItemGroup(ctx context.Context, store string, p item.Page) (items []item.Item, more bool, err error)
	// ItemGroups returns the sorted names of the groups that have items.
	ItemGroups(ctx context.Context, store string, linear bool) ([]string, error)
}

// streamer has a group as one answer, where there are no pages.
type streamer interface {
	StreamGroup(ctx context.Context, store string, p item.Page) iter.Seq2[item.Item, error]
}

// Options are those of a Store. The zero value is that of a process of its own over an engine.
type Options struct {
	// Client owns what is claimed, 1 to 2^53. Who has the same is the same owner. Default: random.
	Client int64
	// Repeat draws a key for each update and claim that has none, and repeats calls whose answer was lost, and those that nobody answers or has
	// room for, until their context ends. So few keyed calls are under way that no key is forgotten before its answer is known: 64 at most,
	// 32 of them claims that wait, and fewer new ones while the answer to an old one is missing.
	Repeat bool
}

// Store is a task store by its name. Its methods may be called at the same time.
type Store struct {
	items  Items
	name   string
	client int64
	repeat bool
	linear bool
	window *window
}

// Open returns the store with a name, 1 to 64 bytes of [A-Za-z0-9._:-]. It asks nobody: a store is made by its first use.
func Open(items Items, name string, o Options) (*Store, error) {
	if err := item.ValidateStore(name); err != nil {
		return nil, err
	}
	if o.Client == 0 {
		o.Client = randomClient()
	}
	if o.Client < 1 || o.Client > item.MaxNumber {
		return nil, &InvalidError{Field: "client", Problem: "want 1 to 2^53, or 0 for a random one"}
	}
	return &Store{items: items, name: name, client: o.Client, repeat: o.Repeat, window: newWindow()}, nil
}

// randomClient draws one of 2^53 numbers, which are 1 and more.
func randomClient() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.LittleEndian.Uint64(b[:])>>11) + 1
}

// Name is that of the store.
func (s *Store) Name() string { return s.name }

// Client is who owns what the store claims, adds and changes.
func (s *Store) Client() int64 { return s.client }

// Linear returns the same store, whose reads hold all that was changed before them. Whether any work is left must be asked so.
func (s *Store) Linear() *Store {
	linear := *s
	linear.linear = true
	return &linear
}

// repeating returns the same store, which repeats calls.
func (s *Store) repeating() *Store {
	same := *s
	same.repeat = true
	return &same
}

// Groups returns the names of the groups that have items, in the order of their bytes.
func (s *Store) Groups(ctx context.Context) (names []string, err error) {
	err = s.ask(ctx, func() error {
		names, err = s.items.ItemGroups(ctx, s.name, s.linear)
		return err
	})
	return names, err
}

// Task returns an item, nil if it is not there.
func (s *Store) Task(ctx context.Context, id int64) (*Item, error) {
	all, err := s.Tasks(ctx, id)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Tasks returns items in the order asked, nil for each that is not there.
func (s *Store) Tasks(ctx context.Context, ids ...int64) (all []*Item, err error) {
	for i, id := range ids {
		if id < 1 || id > item.MaxNumber {
			return nil, &InvalidError{Field: fmt.Sprintf("ids[%d]", i), Problem: fmt.Sprintf("%d, want 1 to %d", id, int64(item.MaxNumber))}
		}
	}
	err = s.ask(ctx, func() error {
		all, err = s.items.Items(ctx, s.name, ids, s.linear)
		return err
	})
	return all, err
}

// Group lists items of a group by id, those that are available, or with Owned all, page by page. A Limit of 0 is none. A failure is the
// last that it yields.
func (s *Store) Group(ctx context.Context, p Page) iter.Seq2[Item, error] {
	p.Linear = p.Linear || s.linear
	return func(yield func(Item, error) bool) {
		if err := p.Validate(); err != nil {
			yield(Item{}, err)
			return
		}
		if one, is := s.items.(streamer); is {
			s.stream(ctx, one, p, yield)
		} else {
			s.pages(ctx, p, yield)
		}
	}
}

func (s *Store) pages(ctx context.Context, p Page, yield func(Item, error) bool) {
	limited, left := p.Limit > 0, p.Limit
	for more := true; more; {
		var items []Item
		p.Limit = min(max(left, 0), item.MaxIDs)
		err := s.ask(ctx, func() (err error) {
			items, more, err = s.items.ItemGroup(ctx, s.name, p)
			return err
		})
		if err != nil {
			yield(Item{}, err)
			return
		}
		for _, it := range items {
			if !yield(it, nil) {
				return
			}
			if left--; limited && left == 0 {
				return
			}
			p.After = it.ID
		}
		more = more && len(items) > 0
	}
}

// stream goes on behind the last item when the answer breaks off.
func (s *Store) stream(ctx context.Context, from streamer, p Page, yield func(Item, error) bool) {
	limited, stopped := p.Limit > 0, false
	err := s.ask(ctx, func() error {
		for it, err := range from.StreamGroup(ctx, s.name, p) {
			if err != nil {
				return err
			}
			if stopped = !yield(it, nil); stopped {
				return nil
			}
			p.After = it.ID
			if p.Limit--; limited && p.Limit == 0 {
				return nil
			}
			p.Limit = max(p.Limit, 0)
		}
		return nil
	})
	if err != nil {
		yield(Item{}, err)
	}
}

// Update changes items, all or none, and returns those that were added, then those that were changed. Data of a change that keeps them are nil.
// A Client of 0 is the store's.
func (s *Store) Update(ctx context.Context, u *Update) (made []Item, err error) {
	ask := *u
	if ask.Client == 0 {
		ask.Client = s.client
	}
	if err := ask.Validate(); err != nil {
		return nil, err
	}
	err = s.keyed(ctx, &ask.Key, true, func() error {
		made, err = s.items.UpdateItems(ctx, s.name, &ask)
		return err
	})
	return made, err
}

// Claim gives the caller one of the 64 oldest available items of a group for a time, under a new id; nil if there is none, or none came while it
// waited. A Client of 0 is the store's.
func (s *Store) Claim(ctx context.Context, c *Claim) (it *Item, err error) {
	ask := *c
	if ask.Client == 0 {
		ask.Client = s.client
	}
	if err := ask.Validate(); err != nil {
		return nil, err
	}
	err = s.keyed(ctx, &ask.Key, ask.Wait == 0, func() error {
		it, err = s.items.ClaimItem(ctx, s.name, &ask)
		return err
	})
	return it, err
}
