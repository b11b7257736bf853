package progress

import (
	"strconv"

	"taskledger/events"
	"taskledger/task"
)

// State says how far a work, or a partition of one, has come.
type State string

// The states.
const (
	NotStarted State = "not-started"
	InProgress State = "in-progress"
	Suspended  State = "suspended" // an operator has suspended the task
	Failed     State = "failed"    // the run of the task has ended with FAILURE, or was cancelled
	Complete   State = "complete"  // every bucket is done
)

// Mode returns the word for the mode of a partition: "full", "simulate" or "dry-run".
func Mode(m events.WorkMode) string {
	switch m {
	case events.ModeSimulate:
		return "simulate"
	case events.ModeDryRun:
		return "dry-run"
	}
	return "full"
}

// Form returns the word for the form of a stream: "precise", "imprecise" or "pushed"; "" = it is none.
func Form(f events.WorkForm) string {
	switch f {
	case events.FormPrecise:
		return "precise"
	case events.FormImprecise:
		return "imprecise"
	case events.FormPushed:
		return "pushed"
	}
	return ""
}

// Note returns the note with which the attempt of a worker tells, as progress of its task, how many items of a bucket
// it has processed.
func Note(partition string, bucket uint64) string {
	return "bucket " + strconv.FormatUint(bucket, 10) + " of " + partition
}

// Work tells how far the work of a task has come, as the owner of the task knew it at a time.
type Work struct {
	Task     events.TaskID   `json:"task"`
	Version  events.Position `json:"version"` // the last event of the task
	Behavior string          `json:"behavior"`
	Status   task.Status     `json:"status" enum:"CREATED,RUNNING,SUCCESS,FAILURE"` // of the task
	State    State           `json:"state" enum:"not-started,in-progress,suspended,failed,complete"`
	// Progress tells State in words: "12.5 % (25 of 200 buckets)"; of several partitions "23 % in 2/3".
	Progress string        `json:"progress"`
	At       events.Millis `json:"at"` // by the owner's clock

	Run        int64         `json:"run"`                  // of the task; each run plans its buckets anew
	Definition string        `json:"definition,omitempty"` // hash of the definition that the run was planned by
	PlannedAt  events.Millis `json:"planned_at,omitzero"`  // when the run began; 0 = it was reset
	FailedOnly bool          `json:"failed_only,omitempty"`

	Error *events.Error `json:"error,omitempty"` // the last failure of the task

	Items       Items    `json:"items"`         // of all partitions
	WallClockMs int64    `json:"wall_clock_ms"` // of all partitions
	Workers     Workers  `json:"workers"`
	Open        []Bucket `json:"open_buckets"` // by number
	// Waits tells that the task waits, without a slot, for workers that have the last buckets.
	Waits   bool         `json:"waits_for_workers,omitempty"`
	Failing *Failing     `json:"failing,omitempty"`
	Errors  ErrorTexts   `json:"error_texts"`
	Permits PermitCounts `json:"permits"`
	Stream  *Stream      `json:"stream,omitempty"` // nil = the work is none

	Partitions []Partition `json:"partitions"` // in their order
}

// Partition tells how far a partition has come.
type Partition struct {
	ID       string   `json:"id"`
	Mode     string   `json:"mode" enum:"full,simulate,dry-run"`
	Stream   string   `json:"stream,omitempty" enum:"precise,imprecise,pushed"` // its form; "" = it is none
	State    State    `json:"state" enum:"not-started,in-progress,suspended,failed,complete"`
	Progress string   `json:"progress"`          // as that of the work
	Percent  *float64 `json:"percent,omitempty"` // of buckets, in steps of 0.1, not rounded up; nil = nothing tells it
	Buckets  Buckets  `json:"buckets"`
	Items    Items    `json:"items"`

	// BeginsSince tells since when an attempt of the task is about to begin the partition, as it is while Count runs.
	BeginsSince  events.Millis `json:"begins_since,omitzero"`
	StartedAt    events.Millis `json:"started_at,omitzero"`
	EndedAt      events.Millis `json:"ended_at,omitzero"`
	LastBucketAt events.Millis `json:"last_bucket_at,omitzero"` // when the last bucket ended, or a stream processed a change
	// StalledSince tells since when no bucket has ended or begun to be worked on, and of a stream no change was processed,
	// or it is BeginsSince; it is set after StallAfter.
	StalledSince events.Millis `json:"stalled_since,omitzero"`
	// WallClockMs is the time in which buckets were open, however many at once. Where all that were open are lost, it ends
	// with the last sign of life of an attempt of the work: nobody knows how long its nodes had been gone.
	WallClockMs      int64    `json:"wall_clock_ms"`
	ItemsPerSecond   *float64 `json:"items_per_second,omitempty"`
	BucketsPerSecond *float64 `json:"buckets_per_second,omitempty"`
	TimeLeftMs       *int64   `json:"time_left_ms,omitempty"` // of wall clock, at the rate so far

	Workers    int64       `json:"workers"` // at once, at most
	Threads    int64       `json:"threads"` // of each worker
	Thresholds []Threshold `json:"thresholds,omitempty"`
}

// Buckets counts the buckets of a partition in its run.
type Buckets struct {
	Total uint64 `json:"total"`
	Done  uint64 `json:"done"`
	Open  uint64 `json:"open"`
	// Failed counts those that are done and had failed items.
	Failed uint64 `json:"failed"`
	// FailedSpan tells that they are remembered as the span from the first of them to the last: a run over failed
	// buckets takes all of the span.
	FailedSpan bool `json:"failed_span,omitempty"`
}

// Items counts items by what became of them, in buckets that are done.
type Items struct {
	Done    uint64 `json:"done"`
	Failed  uint64 `json:"failed"`
	Skipped uint64 `json:"skipped"`
	// InOpen counts items that were processed in open buckets, as far as their attempts have told. Of a stream it counts
	// none that the others count.
	InOpen uint64 `json:"in_open_buckets,omitempty"`
	// Expected is the number of items where they were counted before.
	Expected *uint64 `json:"expected,omitempty"`
}

// processed counts the items that nothing takes back.
func (i *Items) processed() uint64 { return i.Done + i.Failed + i.Skipped }

// Threshold tells what a counter of a partition has counted. Partitions of different modes count apart.
type Threshold struct {
	Counter string `json:"counter"`
	Mode    string `json:"mode" enum:"full,simulate,dry-run"`
	Count   uint64 `json:"count"`
	Limit   uint64 `json:"limit"`
	// Tripped tells that a further item would have counted, which has ended the work.
	Tripped bool `json:"tripped,omitempty"`
}

// Bucket is a bucket that a worker has.
type Bucket struct {
	Number  uint64          `json:"bucket"`
	Worker  int64           `json:"worker"` // its number; 1 = the task itself
	Task    events.TaskID   `json:"task"`   // of the worker
	Attempt events.Position `json:"attempt"`
	Node    string          `json:"node,omitempty"`
	Since   events.Millis   `json:"since"`
	InOpen  uint64          `json:"items,omitempty"` // that were processed, as far as the attempt has told
}

// Workers counts the workers of a work.
type Workers struct {
	Active  int64  `json:"active"`  // have not ended, the task itself among them
	Running int64  `json:"running"` // have an attempt
	Ended   int64  `json:"ended"`   // are kept with the work
	Nodes   []Node `json:"nodes"`   // by name
}

// Node counts what runs of a work on a node.
type Node struct {
	Node    string `json:"node"`
	Session string `json:"session"`
	Workers int64  `json:"workers"`
	Buckets int64  `json:"open_buckets"`
}

// Failing names the bucket whose items could not be had in most attempts.
type Failing struct {
	Bucket   uint64 `json:"bucket"`
	Attempts int64  `json:"attempts"`
}

// ErrorTexts tells how much the errors of items take that the run tells.
type ErrorTexts struct {
	Bytes int64 `json:"bytes"`
	// Limit is the number of bytes from which on errors are counted alone.
	Limit int64 `json:"limit_bytes"`
}

// PermitCounts counts permits of items in open buckets.
type PermitCounts struct {
	Remembered uint64 `json:"remembered"`
	// Uncertain counts those that were counted without their items: an item that is processed again counts again.
	Uncertain uint64 `json:"uncertain,omitempty"`
}
