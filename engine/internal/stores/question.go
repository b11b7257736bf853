package stores

import (
	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/item"
	"taskledger/projection/items"
)

// IsQuestion reports whether the command is a question about items, and whether its answer has to wait for a proof
// of ownership.
func IsQuestion(c command.Command) (linear, is bool) {
	switch c := c.(type) {
	case *Read:
		return c.Linear, true
	case *Page:
		return c.Linear, true
	case *Groups:
		return c.Linear, true
	case *Await:
		return false, true
	}
	return false, false
}

// Find finds the answer to a question within a budget that is not used up.
func Find(all *items.Stores, c command.Command, now events.Millis, b command.Budget) command.Found {
	switch c := c.(type) {
	case *Read:
		return c.find(all, &b)
	case *Page:
		return c.find(all, now, &b)
	case *Groups:
		return c.find(all, &b)
	case *Await:
		state := Awaited{Group: c.Group, Available: int64(all.Free(c.Store, c.Group)), DueIn: -1}
		if next := all.NextOf(c.Store, c.Group); next != 0 {
			state.DueIn = int64(max(next-now, 0))
		}
		return command.Found{Answer: func() command.Answer { return command.Answer{Data: state.Encode()} }}
	}
	return command.Found{Answer: func() command.Answer {
		return command.Refused(command.AnswerBug, "command %d is no question about items", c.Op())
	}}
}

func (c *Read) find(all *items.Stores, b *command.Budget) command.Found {
	var out rows
	for _, id := range c.IDs {
		if out.Scanned > 0 && b.SpentAt(int(out.Scanned)) {
			break
		}
		if id > 0 {
			if it := all.Item(c.Store, uint64(id)); it != nil && !out.add(itemOf(it)) {
				break
			}
		}
		out.Scanned++
	}
	return out.result(int(out.Scanned))
}

func (c *Page) find(all *items.Stores, now events.Millis, b *command.Budget) command.Found {
	var out rows
	limit, scanned := MaxItems, 0
	if c.Limit > 0 {
		limit = int(min(c.Limit, MaxItems))
	}
	all.Group(c.Store, c.Group, uint64(c.After), func(it *items.Item) bool {
		if scanned > 0 && b.SpentAt(scanned) {
			out.More = true
			return false
		}
		scanned++
		if !c.Owned && !it.Available(now) {
			out.Last = int64(it.ID)
			return true
		}
		if len(out.Rows) == limit || !out.add(itemOf(it)) {
			out.More = true
			return false
		}
		out.Last = int64(it.ID)
		return true
	})
	return out.result(scanned)
}

// result returns the rows, for which n items were scanned, as an answer.
func (r *rows) result(n int) command.Found {
	answer := func() command.Answer { return command.Answer{Data: message.Encode(r.found)} }
	return command.Found{Items: n, Bytes: r.bytes, Answer: answer}
}

func (c *Groups) find(all *items.Stores, b *command.Budget) command.Found {
	var out foundGroups
	all.Groups(c.Store, c.After, func(g *items.Group) bool {
		if len(out.Rows) > 0 && b.SpentAt(len(out.Rows)) {
			out.More = true
			return false
		}
		return out.add(g)
	})
	answer := func() command.Answer { return command.Answer{Data: message.Encode(out.groups)} }
	return command.Found{Items: len(out.Rows), Bytes: out.bytes, Answer: answer}
}

func itemOf(i *items.Item) item.Item {
	return item.Item{
		ID:     int64(i.ID),
		Group:  i.Group.Name,
		At:     i.At,
		Owner:  int64(i.Owner),
		Claims: int64(i.Claims),
		Data:   dataOf(i),
	}
}
