package events

import (
	"strconv"
	"strings"
)

// A work is a task whose items are processed bucket by bucket, by itself and by further tasks, its workers. Its events
// belong to the task: they stand in the task's own sequence, between those of its attempts.
const (
	// MaxWorkParentBytes bounds the id of a task that has a work: the ids of its workers add a number.
	MaxWorkParentBytes = 96
	// MaxPartitions bounds the partitions of a work.
	MaxPartitions = 64
	// MaxPartitionBytes bounds the id of a partition.
	MaxPartitionBytes = MaxBehaviorBytes
	// MaxBuckets bounds the buckets of a partition.
	MaxBuckets = 1_000_000_000
	// MaxWorkers bounds the workers of a partition, the work's own task among them, and MaxThreads the threads of each.
	MaxWorkers = 256
	MaxThreads = 256
	// MaxSegmentBytes bounds what says how the partitions of a work are cut into buckets, together.
	MaxSegmentBytes = 192 << 10
	// MaxRuleBytes bounds the rules of the partitions of a work, together.
	MaxRuleBytes = 16 << 10
	// MaxThresholds bounds the counters of a partition.
	MaxThresholds = 16
	// MaxCounterBytes bounds the name of a counter.
	MaxCounterBytes = 64
	// MaxBucketErrors and MaxBucketErrorBytes bound the errors that the end of a bucket tells; it counts the others.
	MaxBucketErrors     = 20
	MaxBucketErrorBytes = 8 << 10
	// MaxPermits bounds the permits of an event.
	MaxPermits = 256
	// MaxDefinitionBytes bounds the hash of a definition.
	MaxDefinitionBytes = 64
)

// Codes of failures that the engine gives to works.
const (
	CodeItems     = "items"     // the items of a bucket could not be had, in as many attempts as the policy allows
	CodeStopped   = "stopped"   // a rule of the work stops it at the failure of an item
	CodeThreshold = "threshold" // a counter has reached its limit, and a further item would have counted
	CodeHolds     = "holds"     // a stream has no room for a further change that is held apart
)

// WorkerID returns the id of a worker of a task, by its number: the same affinity has both. Number 1 is the task
// itself.
func WorkerID(parent TaskID, number uint32) TaskID {
	if number <= 1 {
		return parent
	}
	return besideID(parent, 'w', number)
}

// besideID returns the id of a task that was made for another one of its affinity.
func besideID(parent TaskID, letter byte, number uint32) TaskID {
	separator := "/"
	if strings.Contains(string(parent), "/") {
		separator = "."
	}
	return parent + TaskID(separator+string(letter)+strconv.FormatUint(uint64(number), 10))
}

// WorkerNumber is the reverse of WorkerID; 0 = the id is none of a worker of the task.
func WorkerNumber(parent, id TaskID) uint32 {
	if id == parent {
		return 1
	}
	digits := strings.TrimLeft(strings.TrimPrefix(string(id), string(parent)), "./w")
	number, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || number < 2 || WorkerID(parent, uint32(number)) != id {
		return 0
	}
	return uint32(number)
}

// WorkMode says what becomes of the items of a partition.
type WorkMode uint8

// The modes.
const (
	ModeFull     WorkMode = iota // items are processed
	ModeSimulate                 // items are processed, and nothing is applied
	ModeDryRun                   // items are fetched, filtered and counted
	workModeEnd
)

// WorkPartition says how a part of the items of a work is processed. The partitions of a work follow one another.
type WorkPartition struct {
	ID         string
	Mode       WorkMode
	Buckets    uint64 // 1, 2, 3 ... are their numbers
	Workers    uint32 // at once, at most
	Threads    uint32 // of each worker
	Segments   []byte // how the items are cut into buckets, as the definition wrote it
	Thresholds []WorkThreshold
	Form       WorkForm
	MovesToken bool // of a stream that is not ModeFull: it moves the token as one that is does
	// Rules hold what errors of items do, as the definition wrote it; empty = each node goes by its own, as streams do.
	Rules []byte
}

// WorkThreshold bounds what a counter of a partition may count.
type WorkThreshold struct {
	Counter string
	Limit   uint64
}

// WorkPlanned begins a run of a work.
type WorkPlanned struct {
	Run        uint32 // number of the run, from 1 on; one run of the work may go on over several runs of the task
	Definition string // hash of the definition that the partitions were made by
	Partitions []WorkPartition
	// Failed tells that the run has the partitions of the one before, and of these the buckets with failed items alone.
	Failed bool
}

// PartitionStarted begins a partition of the run.
type PartitionStarted struct {
	Partition uint32 // 1, 2, 3 ...
	Counted   bool   // Expected is known
	Expected  uint64 // items
}

// PartitionEnded ends a partition whose buckets are done.
type PartitionEnded struct{ Partition uint32 }

// ReturnCause says why a bucket was returned.
type ReturnCause uint8

// The causes.
const (
	NotReturned      ReturnCause = iota
	ReturnedGivenUp              // the attempt ended before the bucket did: it was released or snoozed, or its task ended
	ReturnedFailed               // the attempt failed
	ReturnedByWorker             // the worker gave it back
	ReturnedLost                 // the attempt was lost
	returnCauseEnd
)

// BucketsMoved records which bucket of a worker has ended or was returned, and which one it has now.
type BucketsMoved struct {
	Worker   uint32 // its number: 1 is the task itself; 0 = all workers, whose buckets are returned
	Attempt  Ref    // the Started of the worker's attempt
	Ended    uint64 // number of the bucket that is done; 0 = none
	Items    ItemCounts
	Errors   []ItemError // the first of Ended
	Returned uint64      // number of the bucket that is free again; 0 = none, or those of all workers
	Cause    ReturnCause
	Started  uint64 // number of the bucket that the worker has from now on; 0 = none
}

// ItemCounts counts the items of a bucket by what became of them.
type ItemCounts struct{ Done, Failed, Skipped uint64 }

// ItemError tells why an item failed.
type ItemError struct{ Item, Code, Message string }

// PermitsGranted records that items of a bucket that is open may be counted: each one counts once.
type PermitsGranted struct {
	Counter  string
	Bucket   uint64
	Simulate bool
	Items    []uint64 // hashes of bucket and key
}

// ResetScope says what a WorkReset forgets.
type ResetScope uint8

// The scopes.
const (
	ResetAll        ResetScope = 1 + iota // the run: its buckets and counters. The next attempt plans another one
	ResetThresholds                       // what the counters have counted, and permits: older journals have it
	ResetToken                            // where the stream stands: it goes on from another token
	ResetCounts                           // what the counters have counted: an item of an open bucket keeps its permit
	resetScopeEnd
)

// WorkReset forgets what a run has done.
type WorkReset struct {
	What   ResetScope
	Token  string // of ResetToken: the stream goes on from it; "" = from the beginning
	Reason string // of ResetToken
}
