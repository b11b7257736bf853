package stores

import (
	"cmp"
	"unicode/utf8"

	"taskledger/events"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// The numbers of the commands and questions of task stores.
const (
	opUpdate uint64 = iota + 19
	opClaim
	opRead
	opPage
	opGroups
	opAwait
)

const (
	// commandBytes bounds the bytes of a command without its texts and items.
	commandBytes = 512
	// itemBytes bounds the bytes of an item in a command, its event and its answer, without its group and its data.
	itemBytes = item.ItemBytes
	// maxAnsweredGroups bounds the bytes of the groups in the answer to an update: those of the changes that named
	// none.
	maxAnsweredGroups = 16 << 10
)

func atMost(field string, got, limit int) error {
	if got <= limit {
		return nil
	}
	return &task.LimitError{Field: field, Limit: int64(limit), Got: int64(got)}
}

func limitText(field, text string, limit int) error {
	if !utf8.ValidString(text) {
		return &store.InvalidError{Field: field, Problem: "want UTF-8"}
	}
	return atMost(field, len(text), limit)
}

// Limits implements command.Command.
func (c *Update) Limits() error { return cmp.Or(item.ValidateStore(c.Store), c.Asked().Validate()) }

// Limits implements command.Command.
func (c *Claim) Limits() error { return cmp.Or(item.ValidateStore(c.Store), c.Asked().Validate()) }

// Limits implements command.Command.
func (c *Read) Limits() error {
	return cmp.Or(item.ValidateStore(c.Store), atMost("ids", len(c.IDs), MaxItems))
}

// Limits implements command.Command.
func (c *Page) Limits() error { return cmp.Or(item.ValidateStore(c.Store), c.asked().Validate()) }

// Limits implements command.Command.
func (c *Groups) Limits() error {
	return cmp.Or(item.ValidateStore(c.Store), limitText("after", c.After, events.MaxGroupBytes))
}

// Limits implements command.Command.
func (c *Await) Limits() error {
	return cmp.Or(
		item.ValidateStore(c.Store),
		item.ValidateGroup(c.Group),
		limitText("sender", c.Sender, events.MaxNameBytes),
	)
}

// Shard returns the shard of a store in a cluster of so many.
func Shard(store string, shards int) int {
	return events.TaskID(events.StorePrefix + store + "/").Shard(shards)
}

// PageOf asks for the items of a page.
func PageOf(store string, p item.Page) *Page {
	return &Page{
		Store:  store,
		Group:  p.Group,
		After:  p.After,
		Limit:  int64(p.Limit),
		Owned:  p.Owned,
		Linear: p.Linear,
	}
}

func (c *Page) asked() *item.Page {
	return &item.Page{
		Group:  c.Group,
		After:  c.After,
		Limit:  int(c.Limit),
		Owned:  c.Owned,
		Linear: c.Linear,
	}
}
