package commandtest

import (
	"math"
	"strings"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/commands"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/work/workledger"
)

// workID is the largest id of a task that has a work.
var workID = strings.Repeat("i", events.MaxWorkParentBytes)

// partitions are the largest ones of a work.
func partitions() []byte {
	all := make([]events.WorkPartition, events.MaxPartitions)
	for i := range all {
		p := &all[i]
		p.ID = strings.Repeat("p", events.MaxPartitionBytes-2) + string(rune('a'+i/26)) + string(rune('a'+i%26))
		p.Mode, p.Buckets = events.ModeDryRun, events.MaxBuckets
		p.Workers, p.Threads = events.MaxWorkers, events.MaxThreads
	}
	all[0].Segments, all[0].Rules = make([]byte, events.MaxSegmentBytes), make([]byte, events.MaxRuleBytes)
	for i := range events.MaxThresholds {
		counter := strings.Repeat("c", events.MaxCounterBytes-1) + string(rune('a'+i))
		all[0].Thresholds = append(all[0].Thresholds, events.WorkThreshold{Counter: counter, Limit: math.MaxUint64})
	}
	return works.EncodePartitions(all)
}

// itemErrors are the largest ones of a bucket.
func itemErrors() []byte {
	all := make([]events.ItemError, events.MaxBucketErrors)
	for i := range all {
		all[i].Message = strings.Repeat("m", events.MaxBucketErrorBytes/events.MaxBucketErrors)
	}
	var w wire.Writer
	events.EncodeItemErrors(&w, all)
	return w.B
}

// holds are the largest ones of a Move: each begins, one is as large as may be, and keys grow in parameters.
func holds() []workledger.Hold {
	all := make([]workledger.Hold, 4)
	for i := range all {
		all[i] = workledger.Hold{
			Key:    strings.Repeat("\x01", events.MaxChangeKeyBytes-1) + string(rune('a'+i)),
			Parked: true,
			Change: workledger.HeldChange{
				Data:    []byte("1"),
				Code:    name,
				Message: strings.Repeat("m", events.MaxHeldMessageBytes),
			},
		}
	}
	all[0].Change.Data, all[0].Change.At = make([]byte, events.MaxHeldBytes), strings.Repeat("t", events.MaxTokenBytes)
	return all
}

// workForms is Largest for the commands of works; nil for any other.
func workForms(op uint64) []command.Command {
	const many = 1 << 53
	switch commands.Table.New(op).(type) {
	case *works.Plan:
		return []command.Command{&works.Plan{
			Task:       workID,
			Started:    math.MaxUint64,
			Node:       name,
			Definition: strings.Repeat("d", events.MaxDefinitionBytes),
			Partitions: partitions(),
		}, &works.Plan{
			Task:       string(events.WorkerID(events.TaskID(workID), math.MaxUint32)),
			Started:    math.MaxUint64,
			Node:       name,
			Parent:     workID,
			Definition: strings.Repeat("d", events.MaxDefinitionBytes),
		}}
	case *works.Begin:
		return []command.Command{&works.Begin{
			Task:      string(id),
			Started:   math.MaxUint64,
			Node:      name,
			Partition: events.MaxPartitions,
			Counted:   true,
			Expected:  math.MaxUint64,
		}}
	case *works.Bucket:
		return []command.Command{&works.Bucket{
			Task:    string(id),
			Started: math.MaxUint64,
			Node:    name,
			Run:     1,
			Ended:   events.MaxBuckets,
			Done:    many,
			Failed:  many,
			Skipped: many,
			Errors:  itemErrors(),
			Want:    true,
		}}
	case *works.Permits:
		items := make([]uint64, events.MaxPermits)
		for i := range items {
			items[i] = math.MaxUint64 - uint64(i)
		}
		return []command.Command{&works.Permits{
			Task:    string(id),
			Started: math.MaxUint64,
			Node:    name,
			Counter: strings.Repeat("c", events.MaxCounterBytes),
			Items:   items,
			Reason:  strings.Repeat("r", workledger.MaxMessageBytes),
		}}
	case *works.Reset:
		return []command.Command{&works.Reset{Task: string(id), What: int64(events.ResetThresholds), Seen: math.MaxUint64}, &works.Reset{
			Task:   string(id),
			What:   int64(events.ResetToken),
			Seen:   math.MaxUint64,
			Token:  make([]byte, events.MaxTokenBytes),
			Reason: name,
		}}
	case *works.Rerun:
		return []command.Command{&works.Rerun{Task: string(id), Seen: math.MaxUint64}}
	case *works.Position:
		return []command.Command{&works.Position{
			Task:    string(id),
			Started: math.MaxUint64,
			Node:    name,
			Linear:  true,
		}}
	case *works.Left:
		return []command.Command{&works.Left{
			Task:    string(id),
			Started: math.MaxUint64,
			Node:    name,
			Linear:  true,
		}}
	case *works.Move:
		return []command.Command{&works.Move{
			Task:    string(id),
			Started: math.MaxUint64,
			Node:    name,
			Token:   make([]byte, events.MaxTokenBytes),
			Done:    many,
			Failed:  many,
			Skipped: many,
			Errors:  itemErrors(),
			Open:    many,
			Oldest:  int64(events.MaxItemTime),
			Holds:   works.EncodeHolds(holds()),
		}}
	case *works.Held:
		return []command.Command{&works.Held{
			Task:      string(id),
			Started:   math.MaxUint64,
			Node:      name,
			From:      math.MaxUint64,
			Processed: events.MaxHeldChanges,
		}}
	case *works.Show:
		return []command.Command{&works.Show{Task: string(id), Plan: true, Linear: true}}
	}
	return nil
}
