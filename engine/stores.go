package engine

import (
	"context"

	"taskledger/item"
)

// Stores reads and changes the items of task stores. Each call names its store, by 1 to 64 bytes of [A-Za-z0-9._:-]:
// the store is made by its first use, and lives in one shard. Package taskstore has a store as an object.
//
// Every method waits for Run as those of Client do. It returns a *store.InvalidError or a *task.LimitError for an
// argument that breaks a rule of package item, by field and limit; store.ErrUnavailable if the request was not
// sent, or nobody answers a question; a *task.OverloadError if there is no room; and, of Update and Claim alone,
// task.ErrUnknown if the request was sent and not answered: repeat it with the same key.
type Stores struct{ c *Client }

// Stores returns the task stores of the cluster.
func (c *Client) Stores() Stores { return Stores{c} }

// Update applies an update, all of it or nothing, and returns what it made: the items that were added, then those
// that were changed, with their new ids, in the order of the request. Data of a change that keeps them are nil. A
// group that the request left out is "" only where a repeated update is answered whose item has been changed since.
//
// It returns an *item.ConflictError with every problem if the items do not allow the update, and an error that wraps
// task.ErrOtherRequest if the key stands for another request. A key, of at most item.MaxKeyBytes, is remembered for an
// hour, the last 64 of a client and store: a caller that repeats calls has at most 64 of them with keys under way.
// Without one a repeated update is another. While the store is almost full, what adds more than it removes is refused.
func (s Stores) Update(ctx context.Context, store string, u *item.Update) ([]item.Item, error) {
	return s.c.items.Update(ctx, store, u)
}

// Claim gives the caller one of the 64 oldest available items of a group, for Duration (1 ms to 24 h), under a new
// id; nil if there is none. With Wait (default 0, at most 60 s) it waits in this process until one is there: the
// owner notifies it, directly or over NATS, within milliseconds, without NATS in another process within a second. On
// a node that drains it waits no longer and returns nil; on a client whose Run has ended it returns task.ErrClosed.
//
// It returns an *item.ConflictError if something that it depends on is not there, which it checks when it begins,
// whenever it is notified, every few seconds, and at its end; or, for a repeated claim, if the item is no longer
// there. It returns the cause of ctx if that ends while it waits: nothing was claimed then. The caller bounds how
// many of its claims may wait.
func (s Stores) Claim(ctx context.Context, store string, q *item.Claim) (*item.Item, error) {
	return s.c.items.Claim(ctx, store, q)
}

// Items returns items by their ids, in that order, nil for those that are not there. With linear it reflects
// everything that was committed before the call; else it may be a moment behind. More than 1,000 ids, or 512 KiB of
// items, take several questions.
func (s Stores) Items(ctx context.Context, store string, ids []int64, linear bool) ([]*item.Item, error) {
	return s.c.items.Items(ctx, store, ids, linear)
}

// Group returns a page of a group by id: at most 1,000 items, and 512 KiB. more reports that there may be others after
// the last one. A group that does not exist has no items.
func (s Stores) Group(ctx context.Context, store string, p item.Page) (items []item.Item, more bool, err error) {
	return s.c.items.Page(ctx, store, p)
}

// Groups returns the groups of a store that have items, with their counts, in the order of the bytes of their names;
// none for a store that was never used. Where one answer cannot hold them all, it asks again, and each answer is of
// its own time.
func (s Stores) Groups(ctx context.Context, store string, linear bool) ([]item.Group, error) {
	return s.c.items.Groups(ctx, store, linear)
}
