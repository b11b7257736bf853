package workledger

import (
	"strconv"
	"time"

	"taskledger/work/segmentation"
)

// Mode says what a partition does with its items.
type Mode uint8

// The modes.
const (
	// Full processes the items.
	Full Mode = iota
	// Simulate processes the items, and Process applies nothing: Run tells it the mode.
	Simulate
	// DryRun fetches and counts the items, and never calls Process. Each item is done.
	DryRun
)

var modes = [...]string{"full", "simulate", "dry-run"}

// Valid reports whether m is one of the modes.
func (m Mode) Valid() bool { return int(m) < len(modes) }

// String returns "full", "simulate" or "dry-run".
func (m Mode) String() string {
	if int(m) < len(modes) {
		return modes[m]
	}
	return "mode " + strconv.Itoa(int(m))
}

// FailuresPrefix begins the names of the counters of rules.
const FailuresPrefix = "failures:"

// Threshold limits how often a counter may count in a run of a partition.
type Threshold struct {
	// Counter is the name, 1 to 64 bytes of [A-Za-z0-9._-], without another of its name in the partition. The counters of
	// rules have names of their own, with a colon.
	Counter string
	// Limit is the number of items that may be counted, 0 or more: one more trips. 0: the first one trips.
	Limit int64
}

// Plan holds what a run of a work follows, as data. It is recorded when the run begins, and what is recorded counts
// until the run ends, on every node.
type Plan struct {
	// Definition is the hash of the definition that the plan was made of: hexadecimal, 32 bytes.
	Definition string
	// Partitions follow one another.
	Partitions []PartitionPlan
}

// PartitionPlan holds what a run follows in one of its partitions, with every default filled in.
type PartitionPlan struct {
	ID           string
	Mode         Mode
	Form         Form // of a stream: Buckets and Workers are 1
	MovesToken   bool // of a stream that is not Full: it moves the token as one that is does
	Segmentation segmentation.Plan
	Buckets      int64 // Segmentation.Total
	Workers      int64 // 1 to MaxWorkers
	Threads      int64 // of each worker, 1 to MaxThreads
	// Thresholds holds those of the partition, and one for each of its rules that stops the work at the n-th failure: its
	// counter is FailuresPrefix and the place of the rule, from 0 on, and its limit n-1.
	Thresholds []Threshold
	// Rules say what errors of items do; nil = a node goes by those that it has, as of a stream.
	Rules []Rule
}

// Rule says what the errors of items with a code do. It is as package work has it, with every default filled in.
type Rule struct {
	Code    string
	React   uint8
	Times   int64
	Backoff time.Duration
}
