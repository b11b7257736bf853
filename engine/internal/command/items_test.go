package command_test

import (
	"bytes"
	"strings"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/stores"
	"taskledger/events"
	"taskledger/item"
	"taskledger/projection/items"
)

// The largest texts and numbers of items.
var (
	largeStore = strings.Repeat("s", events.MaxStoreBytes)
	largeGroup = strings.Repeat("g", events.MaxGroupBytes)
	largeKey   = strings.Repeat("k", item.MaxKeyBytes)
)

const largeClient = int64(item.MaxNumber)

// adds asks for so many items, with groups of so many bytes, in as much of the limit as they leave.
func adds(n, group int) *stores.Update {
	c := &stores.Update{Store: largeStore, Client: largeClient, Key: largeKey}
	for range n {
		c.Adds = append(c.Adds, stores.Add{Group: largeGroup[:group], At: int64(item.MaxTime)})
	}
	c.Adds[0].Data = bytes.Repeat([]byte{1}, item.MaxBytes-n*(item.ItemBytes+group))
	return c
}

// stored adds items whose ids are as large as they get, available or not, and returns the last one.
func (l *journalDriver) stored(n int, at int64) (last int64) {
	first := adds(1, 1)
	first.Key = "first"
	l.decide(first)
	for range 1 << 20 {
		items.Of(l.state).Recovered()
	}
	c := adds(n, 1)
	c.Key, c.Adds[0].Data = "stored", nil
	for i := range c.Adds {
		c.Adds[i].At = at
	}
	l.decide(c)
	return int64(items.Of(l.state).Store(largeStore).Last)
}

// ids returns the ids of the n latest items.
func ids(last int64, n int) (all []int64) {
	for i := range int64(n) {
		all = append(all, last-i)
	}
	return all
}

// itemCases are the updates and claims that add the most to an entry.
var itemCases = map[string]func(l *journalDriver) command.Command{
	"one large item":       func(l *journalDriver) command.Command { l.stored(1, 1); return adds(1, events.MaxGroupBytes) },
	"many items":           func(l *journalDriver) command.Command { l.stored(1, 1); return adds(item.MaxIDs, 1) },
	"many items of groups": func(l *journalDriver) command.Command { l.stored(1, 1); return adds(585, events.MaxGroupBytes) },
	"removal of many items": func(l *journalDriver) command.Command {
		return &stores.Update{Store: largeStore, Client: largeClient, Key: largeKey, Deletes: ids(l.stored(item.MaxIDs, int64(item.MaxTime)), item.MaxIDs)}
	},
	"change of many items without their groups": func(l *journalDriver) command.Command {
		c := &stores.Update{Store: largeStore, Client: largeClient, Key: largeKey}
		for _, id := range ids(l.stored(item.MaxIDs, int64(item.MaxTime)), item.MaxIDs) {
			c.Changes = append(c.Changes, stores.Change{ID: id, At: int64(item.MaxTime), Data: []byte{2}})
		}
		return c
	},
	"claim": func(l *journalDriver) command.Command {
		l.stored(1, 1)
		return &stores.Claim{Store: largeStore, Client: largeClient, Key: largeKey, Group: "g", Duration: int64(item.MaxDuration)}
	},
}

// itemConflicts are the updates and claims whose refusal says the most.
var itemConflicts = map[string]func(l *journalDriver) command.Command{
	"update of items that are not there": func(*journalDriver) command.Command {
		return &stores.Update{Store: largeStore, Client: largeClient, Depends: ids(item.MaxNumber, item.MaxIDs)}
	},
	"claim that depends on what is not there": func(*journalDriver) command.Command {
		return &stores.Claim{Store: largeStore, Client: largeClient, Group: "g", Duration: int64(item.MaxDuration), Depends: ids(item.MaxNumber, item.MaxIDs)}
	},
	"update of items that are held, and of other groups": func(l *journalDriver) command.Command {
		c := &stores.Update{Store: largeStore, Client: largeClient - 1}
		for _, id := range ids(l.stored(500, int64(item.MaxTime)), 500) {
			c.Changes = append(c.Changes, stores.Change{ID: id, Group: largeGroup, At: int64(item.MaxTime)})
		}
		return c
	},
}
