package projection

import (
	"iter"
	"sort"

	"taskledger/events"
	"taskledger/task"
)

// Sought says what a search through a shard looks for. Zero fields match everything.
type Sought struct {
	Before    events.Ref    // created by an earlier event
	Until     events.Millis // created at this time at the latest
	Status    task.Status
	Substatus task.Substatus // as Shard.Substatus tells it
	Behavior  string
	Creator   string
}

// Stretch is tasks of a shard that were created one after the other.
type Stretch struct {
	Tasks []*Task // oldest first, nil for one that has left; none at all where none of them is sought

	// No task of it, or of a newer stretch, was created by an event before First, or at a time before At.
	First events.Ref
	At    events.Millis
}

// Newest yields the tasks of the shard, newest first, in stretches. Tasks that are not sought are left out by
// stretches, and otherwise there. The shard must not change meanwhile.
func (s *Shard) Newest(of Sought) iter.Seq[Stretch] {
	order := s.created.order
	begin := sort.Search(len(order), func(i int) bool {
		return of.Before != 0 && order[i].first >= of.Before || of.Until != 0 && order[i].firstAt > of.Until
	})
	behavior, creator := mark(of.Behavior), mark(of.Creator)
	return func(yield func(Stretch) bool) {
		for i := begin - 1; i >= 0; i-- {
			in := order[i]
			found := Stretch{First: in.first, At: in.firstAt}
			if (of.Status == 0 || in.statuses[of.Status] > 0) && (of.Substatus == 0 || in.substatuses[of.Substatus] > 0) &&
				(of.Behavior == "" || in.behaviors&behavior != 0) && (of.Creator == "" || in.creators&creator != 0) {
				found.Tasks = in.tasks[:in.used]
			}
			if !yield(found) {
				return
			}
		}
	}
}
