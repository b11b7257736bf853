package taskstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"taskledger/item"
	"taskledger/store"
)

// Backend reads and changes the store that each call names. engine.Stores implements it, and so does the client of
// package taskstore/client.
type Backend interface {
	Update(ctx context.Context, store string, u *item.Update) ([]item.Item, error)
	Claim(ctx context.Context, store string, c *item.Claim) (*item.Item, error) // nil: there is none
	Items(ctx context.Context, store string, ids []int64, linear bool) ([]*item.Item, error)
	Group(ctx context.Context, store string, p item.Page) (items []item.Item, more bool, err error)
	Groups(ctx context.Context, store string, linear bool) ([]item.Group, error)
}

// Defaults of what is left out.
const (
	// DefaultWait bounds how long a claim waits for an item.
	DefaultWait = 30 * time.Second
	// DefaultDuration is the time for which a claimed item is the client's.
	DefaultDuration = item.DefaultDuration
)

// Options of Open.
type Options struct {
	// Client identifies the caller, 1 to 2^53: no other client may change the items that it holds. Default: a
	// random number that this process has drawn. No two processes may be one client at a time: neither knows how
	// many keys the other uses.
	Client int64
	// Once has every call sent once, without a key: a lost answer is ErrUnknown, and a cluster that cannot be asked
	// or has no room is not asked again. A program sets it that repeats calls itself, or cannot wait.
	Once bool
}

// Store is one store as one client sees it. Its methods may be called by many at once. It starts nothing, and need
// not be closed.
type Store struct {
	backend Backend
	name    string
	client  int64
	once    bool
	linear  bool
	calls   *window
}

// Open returns the store of a name, 1 to 64 bytes of [A-Za-z0-9._:-]. It asks nothing.
func Open(b Backend, name string, o Options) (*Store, error) {
	if b == nil {
		return nil, &store.InvalidError{Field: "backend", Problem: "nil: want one that is asked"}
	}
	if err := item.ValidateStore(name); err != nil {
		return nil, fmt.Errorf("open task store: %w", err)
	}
	if o.Client < 0 || o.Client > item.MaxNumber {
		return nil, &store.InvalidError{
			Field:   "client",
			Problem: fmt.Sprintf("%d: want 1 to %d, or 0 for that of the process", o.Client, int64(item.MaxNumber)),
		}
	}
	s := &Store{backend: b, name: name, client: cmp.Or(o.Client, ProcessClient()), once: o.Once}
	s.calls = windowOf(clientOf{name, s.client})
	return s, nil
}

// ProcessClient returns the client of stores that are opened without one: a random number, 1 to 2^53, that stays the
// same as long as the process runs.
var ProcessClient = sync.OnceValue(func() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return int64(binary.NativeEndian.Uint64(b[:])>>11) + 1
})

// Name returns the name of the store.
func (s *Store) Name() string { return s.name }

// Client returns the client that the store acts for.
func (s *Store) Client() int64 { return s.client }

// Linear returns the same store with reads that reflect everything that was committed before they were called,
// whoever owns the store by now. Others reflect what this client has changed, and may miss what others have just
// changed through another node. Whoever asks whether any work is left needs them.
func (s *Store) Linear() *Store {
	is := *s
	is.linear = true
	return &is
}

// Groups returns the names of the groups that have items, sorted.
func (s *Store) Groups(ctx context.Context) ([]string, error) {
	all, err := s.groups(ctx)
	if err != nil {
		return nil, s.wrap("groups", err)
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, nil
}

// Stats returns the groups that have items, sorted by their names, with the numbers of their items. The owner of the
// store has counted: it reads no item.
func (s *Store) Stats(ctx context.Context) ([]item.Group, error) {
	all, err := s.groups(ctx)
	return all, s.wrap("stats", err)
}

func (s *Store) groups(ctx context.Context) (all []item.Group, err error) {
	err = s.repeat(ctx, func() (err error) {
		all, err = s.backend.Groups(ctx, s.name, s.linear)
		return err
	})
	return all, err
}

// Task returns the item of an id, nil if it is not there.
func (s *Store) Task(ctx context.Context, id int64) (*item.Item, error) {
	found, err := s.Tasks(ctx, id)
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// Tasks returns the items of ids in the order of the ids, with nil for each that is not there.
func (s *Store) Tasks(ctx context.Context, ids ...int64) (found []*item.Item, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if err := item.ValidateIDs("ids", ids); err != nil {
		return nil, s.wrap("tasks", err)
	}
	err = s.repeat(ctx, func() (err error) {
		found, err = s.backend.Items(ctx, s.name, ids, s.linear)
		return err
	})
	if err == nil && len(found) != len(ids) {
		err = fmt.Errorf("%d answers to %d ids", len(found), len(ids))
	}
	return found, s.wrap("tasks", err)
}

// List says which items of a group Group returns.
type List struct {
	Owned bool // also those that are not available; default: only available ones
	Limit int  // at most so many; default 0: all
}

// Group returns the items of a group by id, page by page as they are consumed: each page is of its own time. A
// group that does not exist has no items. An error is the last that it yields.
func (s *Store) Group(ctx context.Context, group string, l List) iter.Seq2[item.Item, error] {
	return func(yield func(item.Item, error) bool) {
		if l.Limit < 0 {
			yield(
				item.Item{},
				s.wrap("group", &store.InvalidError{Field: "limit", Problem: fmt.Sprintf("%d: want 0 or more", l.Limit)}),
			)
			return
		}
		p := item.Page{Group: group, Owned: l.Owned, Linear: s.linear, Limit: l.Limit}
		for {
			var items []item.Item
			var more bool
			err := s.repeat(ctx, func() (err error) {
				items, more, err = s.backend.Group(ctx, s.name, p)
				return err
			})
			if err != nil {
				yield(item.Item{}, s.wrap("group "+group, err))
				return
			}
			for _, it := range items {
				if !yield(it, nil) {
					return
				}
				p.After = it.ID
			}
			if l.Limit > 0 {
				if p.Limit -= len(items); p.Limit <= 0 {
					return
				}
			}
			if !more || len(items) == 0 {
				return
			}
		}
	}
}

// Update removes, changes and adds items: all of it, or nothing. It returns the items that it made: those that were
// added, then those that were changed, in the order of the request. Data of a change that keeps them are nil. With
// Depends alone it is a check.
//
// Client is set to that of the store. A Key is drawn unless the caller gives one, who may then repeat the update
// himself.
func (s *Store) Update(ctx context.Context, u item.Update) (made []item.Item, err error) {
	u.Client = s.client
	if err := u.Validate(); err != nil {
		return nil, s.wrap("update", err)
	}
	_, err = s.keyed(ctx, &u.Key, &u.Age, &u.Within, func() (err error) {
		made, err = s.backend.Update(ctx, s.name, &u)
		return err
	})
	return made, s.wrap("update", err)
}

// Claim takes one of the oldest available items of a group for a time, under a new id; nil if none came while it
// waited. Wait is DefaultWait, and may be as long as the caller likes; Duration is DefaultDuration, unless it is
// given; Client and Key are as for Update. What it depends on is checked first, and once more whenever it looks
// again, every few seconds at the latest. An *item.ConflictError also says that the answer of a claim was lost until
// its item was gone.
func (s *Store) Claim(ctx context.Context, c item.Claim) (*item.Item, error) {
	c.Wait = cmp.Or(c.Wait, DefaultWait)
	it, _, err := s.claim(ctx, &c)
	return it, err
}

// TryClaim is Claim without Wait: nil if there is no available item now.
func (s *Store) TryClaim(ctx context.Context, c item.Claim) (*item.Item, error) {
	c.Wait = 0
	it, _, err := s.claim(ctx, &c)
	return it, err
}

// lookAgain is the time between two looks of a claim for an item, while too many others of its client wait for theirs.
const lookAgain = time.Second

// claim fills in what c leaves out, and leaves in it the key under which it has asked last. lost says that the
// answer to an earlier try was: the item may be claimed since then.
func (s *Store) claim(ctx context.Context, c *item.Claim) (it *item.Item, lost bool, err error) {
	given, until := c.Key, time.Now().Add(c.Wait)
	c.Client, c.Duration = s.client, cmp.Or(c.Duration, DefaultDuration)
	last := c.Wait <= item.MaxWait
	c.Wait = min(c.Wait, item.MaxWait)
	if err := c.Validate(); err != nil {
		return nil, false, s.wrap("claim", err)
	}
	for {
		began, waits := time.Now(), c.Wait > 0 && (s.once || s.calls.wait())
		it, lost, err = s.ask(ctx, *c, waits, &c.Key)
		if waits && !s.once {
			s.calls.waited()
		}
		left := time.Until(until)
		if it != nil || err != nil || waits && last || left <= 0 {
			return it, lost, s.wrap("claim", err)
		}
		if !waits || time.Since(began) < c.Wait { // a node that drains lets nobody wait
			if err := sleep(ctx, min(left, lookAgain)); err != nil {
				return nil, false, s.wrap("claim", err)
			}
		}
		if left = max(time.Until(until), 0); c.Age > 0 {
			c.Age += time.Since(began)
		}
		c.Key, c.Wait, last = given, min(left, item.MaxWait), left <= item.MaxWait
	}
}

// ask makes a claim once, which waits or does not, and tells under which key.
func (s *Store) ask(ctx context.Context, c item.Claim, waits bool, key *string) (it *item.Item, lost bool, err error) {
	if !waits {
		c.Wait = 0
	}
	lost, err = s.keyed(ctx, &c.Key, &c.Age, nil, func() (err error) {
		*key = c.Key
		it, err = s.backend.Claim(ctx, s.name, &c)
		return err
	})
	return it, lost, err
}

// wrap says what was done with which store, unless the error names that.
func (s *Store) wrap(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "store "+s.name+":"):
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("task store %s: %s: %w", s.name, doing, err)
}
