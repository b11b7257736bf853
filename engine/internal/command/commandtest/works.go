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
	all[0].Segments = make([]byte, events.MaxSegmentBytes)
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
		return []command.Command{&works.Reset{Task: string(id), What: int64(events.ResetThresholds), Seen: math.MaxUint64}}
	case *works.Rerun:
		return []command.Command{&works.Rerun{Task: string(id), Seen: math.MaxUint64}}
	case *works.Show:
		return []command.Command{&works.Show{Task: string(id), Plan: true, Linear: true}}
	}
	return nil
}
