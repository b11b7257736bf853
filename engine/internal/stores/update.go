package stores

import (
	"time"

	"taskledger/item"
)

// Update asks for changes of items of a store, as an item.Update does.
type Update struct {
	Store   string
	Client  int64
	Key     string
	Depends []int64
	Deletes []int64
	Changes []Change
	Adds    []Add
	Age     int64 // ns
	Within  int64
}

// Change is an item.Change that travels.
type Change struct {
	ID    int64
	Group string
	At    int64
	Keep  bool
	Data  []byte
}

// Add is an item.Add that travels.
type Add struct {
	Group string
	At    int64
	Data  []byte
}

// UpdateOf makes the command of a request.
func UpdateOf(store string, u *item.Update) *Update {
	c := &Update{
		Store:   store,
		Client:  u.Client,
		Key:     u.Key,
		Age:     int64(u.Age),
		Within:  int64(u.Within),
		Depends: u.Depends,
		Deletes: u.Deletes,
	}
	for i := range u.Changes {
		from := &u.Changes[i]
		c.Changes = append(c.Changes, Change{
			ID:    from.ID,
			Group: from.Group,
			At:    int64(from.At),
			Keep:  from.Keep,
			Data:  from.Data,
		})
	}
	for i := range u.Adds {
		c.Adds = append(c.Adds, Add{u.Adds[i].Group, int64(u.Adds[i].At), u.Adds[i].Data})
	}
	return c
}

// Asked is the request of the command.
func (c *Update) Asked() *item.Update {
	u := &item.Update{
		Client:  c.Client,
		Key:     c.Key,
		Age:     time.Duration(c.Age),
		Within:  int(c.Within),
		Depends: c.Depends,
		Deletes: c.Deletes,
	}
	for i := range c.Changes {
		from := &c.Changes[i]
		u.Changes = append(u.Changes, item.Change{
			ID:    from.ID,
			Group: from.Group,
			At:    item.When(from.At),
			Data:  from.Data,
			Keep:  from.Keep,
		})
	}
	for i := range c.Adds {
		u.Adds = append(u.Adds, item.Add{Group: c.Adds[i].Group, At: item.When(c.Adds[i].At), Data: c.Adds[i].Data})
	}
	return u
}

// Waited implements command.Aging.
func (c *Update) Waited(d time.Duration) { c.Age = older(c.Age, d) }

// older adds to the age of a repetition; 0 stays that of a request which is none.
func older(age int64, d time.Duration) int64 {
	if age <= 0 {
		return age
	}
	return min(age+int64(max(d, 0)), int64(item.MaxAge))
}

// Op implements command.Command.
func (*Update) Op() uint64 { return opUpdate }

// Shard returns the shard of the store.
func (c *Update) Shard(count int) int { return Shard(c.Store, count) }

// Size implements command.Command.
func (c *Update) Size() int {
	n := commandBytes + len(c.Store) + len(c.Key) + itemBytes*(len(c.Depends)+len(c.Deletes))
	unnamed := 0
	for i := range c.Changes {
		n += itemBytes + len(c.Changes[i].Group) + len(c.Changes[i].Data)
		if c.Changes[i].Group == "" {
			unnamed = maxAnsweredGroups
		}
	}
	for i := range c.Adds {
		n += itemBytes + len(c.Adds[i].Group) + len(c.Adds[i].Data)
	}
	return n + unnamed
}
