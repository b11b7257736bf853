package itemcommand

import (
	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/item"
	"taskledger/projection/items"
)

// Answers of an owner to questions, from its state. Ripen has been called with now.

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

// Answer answers a question.
func Answer(all *items.Stores, c command.Command, now events.Millis) command.Answer {
	switch c := c.(type) {
	case *Read:
		return c.answer(all)
	case *Page:
		return c.answer(all, now)
	case *Groups:
		return command.Answer{Data: EncodeNames(func(yield func(string) bool) { all.Groups(c.Store, c.After, yield) })}
	case *Await:
		told := Awaited{Group: c.Group, Available: int64(all.Free(c.Store, c.Group)), DueIn: -1}
		if next := all.NextOf(c.Store, c.Group); next != 0 {
			told.DueIn = int64(max(next-now, 0))
		}
		return command.Answer{Data: told.Encode()}
	}
	return command.Refused(command.AnswerBug, "command %d is no question about items", c.Op())
}

func (c *Read) answer(all *items.Stores) command.Answer {
	var out rows
	for _, id := range c.IDs {
		if id > 0 {
			if it := all.Item(c.Store, uint64(id)); it != nil && !out.add(itemOf(it)) {
				break
			}
		}
		out.Looked++
	}
	return command.Answer{Data: message.Encode(out.found)}
}

// looksAt bounds the items that a page passes over because they are not available.
const looksAt = 20_000

func (c *Page) answer(all *items.Stores, now events.Millis) command.Answer {
	var out rows
	limit, looked := MaxItems, 0
	if c.Limit > 0 {
		limit = int(min(c.Limit, MaxItems))
	}
	all.Group(c.Store, c.Group, uint64(c.After), func(it *items.Item) bool {
		if looked++; looked > looksAt {
			out.More = true
			return false
		}
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
	return command.Answer{Data: message.Encode(out.found)}
}

func itemOf(i *items.Item) item.Item {
	return item.Item{ID: int64(i.ID), Group: i.Group.Name, At: i.At, Owner: int64(i.Owner), Data: dataOf(i)}
}
