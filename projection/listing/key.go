package listing

import (
	"cmp"
	"math"

	"taskledger/events"
	"taskledger/projection"
)

// Key is the place of a task in a list. A list goes from greater keys to smaller ones.
type Key struct {
	At    events.Millis // when the task was created
	Shard int
	Ref   events.Ref // of the event that created it
}

// Newest is greater than the key of any task.
var Newest = Key{At: math.MaxInt64}

// KeyOf returns the key of a task of a shard.
func KeyOf(t *projection.Task, shard int) Key { return Key{t.CreatedAt, shard, t.Created} }

// Compare is negative when the key is smaller than the other, 0 when it is the same.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.At, other.At), cmp.Compare(k.Shard, other.Shard), cmp.Compare(k.Ref, other.Ref))
}

// In returns the place in a shard below which the keys of its tasks are smaller.
func (k Key) In(shard int) Place {
	switch {
	case k == Newest:
		return Place{}
	case shard == k.Shard:
		return Place{k.Ref, k.At}
	case shard < k.Shard:
		return Place{Until: k.At}
	case k.At == 1: // 0 would be no bound
		return Place{Until: -1}
	}
	return Place{Until: k.At - 1}
}

// Place is where a search in a shard goes on: with the tasks that were created by events before Before, and not later
// than Until; 0 is no bound.
type Place struct {
	Before events.Ref
	Until  events.Millis
}

// Key is greater than the keys of the tasks with which a search goes on that has looked at something, and not greater
// than those of what it has looked at.
func (p Place) Key(shard int) Key { return Key{p.Until, shard, p.Before} }

// holds reports whether the search goes on with a task, or has passed it.
func (p Place) holds(t *projection.Task) bool {
	return (p.Before == 0 || t.Created < p.Before) && (p.Until == 0 || t.CreatedAt <= p.Until)
}
