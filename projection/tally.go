package projection

import (
	"iter"

	"taskledger/task"
)

// count counts a task, or with sign -1 counts it no more. It is called while the task is where it belongs, or is
// suspended and nowhere.
func (s *Shard) count(t *Task, sign int32) {
	substatus := s.Substatus(t)
	s.tally[t.Status][substatus] += sign
	t.Kind.group.tally[t.Status][substatus] += sign
	s.created.sum(t, substatus, sign)
}

// Substatus returns the substatus of a task of the shard by its place in it: what waits for its time is ready from
// the MakeDue on that finds it due.
func (s *Shard) Substatus(t *Task) task.Substatus {
	return t.substatus(t.in == &t.Kind.group.ready || t.in == &t.Kind.group.repeats)
}

// Tally returns how many tasks of all behaviors have a status and a substatus, as Substatus tells it.
func (s *Shard) Tally() Tally { return s.tally }

// Tallies yields each behavior with its Tally, in no order.
func (s *Shard) Tallies() iter.Seq2[string, *Tally] {
	return func(yield func(string, *Tally) bool) {
		for behavior, g := range s.groups {
			if !yield(behavior, &g.tally) {
				return
			}
		}
	}
}
