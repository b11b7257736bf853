package command

import (
	"fmt"
	"maps"
	"slices"

	"taskledger/internal/message"
	"taskledger/projection"
	"taskledger/task"
)

// Tally asks how many tasks of a behavior, or of each, have each status and substatus.
type Tally struct {
	Behavior string // "" = all
}

func (*Tally) Op() uint64 { return opTally }

func (c *Tally) Size() int { return 16 + len(c.Behavior) }

func (c *Tally) Limits() error { return limitBehavior(c.Behavior) }

// maxTallied bounds the behaviors that are counted apart, the first by name, and maxCounts the rows of an answer then.
const (
	maxTallied = 500
	maxCounts  = (maxTallied + 1) * 19
)

// counts answers a Tally.
type counts struct {
	Tasks int64 // of all rows
	Rows  []countRow
}

type countRow struct {
	Behavior          string
	Status, Substatus uint64
	Tasks             int64
}

// Check refuses more rows than there are, and numbers that none has.
func (c *counts) Check() error {
	if len(c.Rows) > maxCounts {
		return fmt.Errorf("%d counts, at most %d", len(c.Rows), maxCounts)
	}
	tasks := c.Tasks
	for _, r := range c.Rows {
		tasks -= r.Tasks
		if r.Status > uint64(task.Failure) || r.Substatus > uint64(task.SubCancelled) || r.Tasks < 0 {
			return fmt.Errorf("%d tasks of status %d and substatus %d", r.Tasks, r.Status, r.Substatus)
		}
	}
	if tasks != 0 {
		return fmt.Errorf("%d tasks, of which %d are in no row", c.Tasks, tasks)
	}
	return nil
}

// EncodeTallies answers a Tally.
func EncodeTallies(s *projection.Shard, c *Tally) []byte {
	var msg counts
	rest, all := s.Tally(), maps.Collect(s.Tallies())
	maps.DeleteFunc(all, func(name string, _ *projection.Tally) bool { return c.Behavior != "" && name != c.Behavior })
	names := slices.Sorted(maps.Keys(all))
	for _, behavior := range names[:min(len(names), maxTallied)] {
		of := all[behavior]
		msg.add(behavior, of)
		for status := range of {
			for substatus, n := range of[status] {
				rest[status][substatus] -= n
			}
		}
	}
	if c.Behavior == "" {
		msg.add("", &rest)
	}
	return message.Encode(msg)
}

func (c *counts) add(behavior string, of *projection.Tally) {
	for status := range of {
		for substatus, n := range of[status] {
			if n > 0 {
				c.Tasks += int64(n)
				c.Rows = append(c.Rows, countRow{
					Behavior:  behavior,
					Status:    uint64(status),
					Substatus: uint64(substatus),
					Tasks:     int64(n),
				})
			}
		}
	}
}

// DecodeTallies reads what EncodeTallies writes.
func DecodeTallies(data []byte) ([]task.Count, error) {
	msg, err := ReadLenient[counts](data)
	if err != nil {
		return nil, err
	}
	rows := make([]task.Count, len(msg.Rows))
	for i, r := range msg.Rows {
		rows[i] = task.Count{
			Behavior:  r.Behavior,
			Status:    task.Status(r.Status),
			Substatus: task.Substatus(r.Substatus),
			Tasks:     r.Tasks,
		}
	}
	return rows, nil
}
