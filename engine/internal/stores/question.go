package stores

import (
	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/item"
	"taskledger/projection/items"
)

// IsQuestion reports whether the command is a question about items, and whether the answer has to wait for a proof of ownership.
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

// Look looks for the answer to a question within a budget that is not used up.
func Look(all *items.Stores, c command.Command, now events.Millis, b command.Budget) command.Found {
	switch c := c.(type) {
	case *Read:
		return c.look(all, &b)
	case *Page:
		return c.look(all, now, &b)
	case *Groups:
		return c.look(all, &b)
	case *Await:
		told := Awaited{Group: c.Group, Available: int64(all.Free(c.Store, c.Group)), DueIn: -1}
		if next := all.NextOf(c.Store, c.Group); next != 0 {
			told.DueIn = int64(max(next-now, 0))
		}
		return command.Found{Answer: func() command.Answer { return command.Answer{Data: told.Encode()} }}
	}
	return command.Found{Answer: func() command.Answer {
		return command.Refused(command.AnswerBug, "command %d is no question about items", c.Op())
	}}
}

func (c *Read) look(all *items.Stores, b *command.Budget) command.Found {
	var out rows
	for _, id := range c.IDs {
		if out.Looked > 0 && b.SpentAt(int(out.Looked)) {
			break
		}
		if id > 0 {
			if it := all.Item(c.Store, uint64(id)); it != nil && !out.add(itemOf(it)) {
				break
			}
		}
		out.Looked++
	}
	return out.looked(int(out.Looked))
}

func (c *Page) look(all *items.Stores, now events.Millis, b *command.Budget) command.Found {
	var out rows
	limit, looked := MaxItems, 0
	if c.Limit > 0 {
		limit = int(min(c.Limit, MaxItems))
	}
	all.Group(c.Store, c.Group, uint64(c.After), func(it *items.Item) bool {
		if looked > 0 && b.SpentAt(looked) {
			out.More = true
			return false
		}
		looked++
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
	return out.looked(looked)
}

// looked is the answer of rows that took so many looks.
func (r *rows) looked(n int) command.Found {
	answer := func() command.Answer { return command.Answer{Data: message.Encode(r.found)} }
	return command.Found{Items: n, Bytes: r.bytes, Answer: answer}
}

func (c *Groups) look(all *items.Stores, b *command.Budget) command.Found {
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
