package stores

import (
	"time"

	"taskledger/item"
)

// Claim is the command of an item.Claim. The Wait of that stays with the client.
type Claim struct {
	Store    string
	Client   int64
	Key      string
	Group    string
	Duration int64 // ns
	Random   uint64
	Depends  []int64
	Age      int64 // ns
}

// ClaimOf makes the command of a request, which takes the item that a random number selects.
func ClaimOf(store string, q *item.Claim, random uint64) *Claim {
	return &Claim{
		Store:    store,
		Client:   q.Client,
		Key:      q.Key,
		Group:    q.Group,
		Duration: int64(q.Duration),
		Random:   random,
		Depends:  q.Depends,
		Age:      int64(q.Age),
	}
}

// Asked is the request of the command.
func (c *Claim) Asked() *item.Claim {
	return &item.Claim{
		Client:   c.Client,
		Key:      c.Key,
		Group:    c.Group,
		Age:      time.Duration(c.Age),
		Duration: time.Duration(c.Duration),
		Depends:  c.Depends,
	}
}

// Waited implements command.Aging.
func (c *Claim) Waited(d time.Duration) { c.Age = older(c.Age, d) }

// Op implements command.Command.
func (*Claim) Op() uint64 { return opClaim }

// Shard returns the shard of the store.
func (c *Claim) Shard(count int) int { return Shard(c.Store, count) }

// Size implements command.Command.
func (c *Claim) Size() int {
	return commandBytes + itemBytes + len(c.Store) + len(c.Key) + len(c.Group) + itemBytes*len(c.Depends)
}
