package work

import (
	"encoding/hex"

	"taskledger/work/segmentation"
	"taskledger/work/workledger"
)

// Bucket is a part of the items of a partition. Its fields:
//
//	Number        int64  // 1 for the bucket of the lowest keys, in the order of keys
//	Kind          Kind   // says which of the others count: None, Numeric, Interval, Prefix or Exact
//	From, To      int64  // of Numeric: the numbers n with From <= n < To
//	Lower, Upper  string // of Interval: the texts t with Lower <= t < Upper, by bytes; "" = no bound
//	Text          string // of Prefix: the beginning of the texts; of Exact: the text
//
// Contains(key string) and ContainsNumber(n int64) report whether a key belongs to it.
type Bucket = segmentation.Bucket

// Mode says what is done with the items of a partition. It is a number, whose String is its word:
//
//	Full      // 0, "full": Process runs
//	Simulate  // 1, "simulate": Process runs and must apply nothing, as Run tells it
//	DryRun    // 2, "dry-run": items are fetched and counted, and Process does not run
type Mode = workledger.Mode

// Threshold limits how often Permit permits something in a run of a partition. Its fields:
//
//	Counter string // the name by which Permit asks: 1 to 64 bytes of [A-Za-z0-9._-], unique in the partition
//	Limit   int64  // items, 0 or more: so many are permitted, and one more ends the work
type Threshold = workledger.Threshold

// Plan holds what a run follows, as data. Its fields:
//
//	Definition string          // hash of the definition: 32 hexadecimal digits
//	Partitions []PartitionPlan // they follow one another
type Plan = workledger.Plan

// PartitionPlan holds what a run follows in a partition, with every default filled in. Its fields:
//
//	ID           string
//	Mode         Mode
//	Segmentation segmentation.Plan
//	Form         Form        // Bucketed, or that of a stream
//	MovesToken   bool        // a stream that is not Full moves the token as one that is does
//	Buckets      int64       // how many the segmentation has
//	Workers      int64       // at once, 1 to MaxWorkers
//	Threads      int64       // of each worker, 1 to MaxThreads
//	Thresholds   []Threshold // those of the partition, and one for each rule that stops the work
//	Rules        []workledger.Rule // what errors of items do; nil = a node goes by those that it has, as of a stream
type PartitionPlan = workledger.PartitionPlan

// Form says whether a partition is cut into buckets or is a stream, and of which form.
type Form = workledger.Form

// Counts counts items by what became of them. Its fields are numbers of items: Done, Failed and Skipped, int64 each.
type Counts = workledger.Counts

// ItemError tells why an item failed. Its fields are texts: Item names the item by its key, or by its ordinal in the
// bucket, such as #7; Code is the code of the error, and Message its text.
type ItemError = workledger.ItemError

// The types of the port by which attempts reach the record of their work: package workledger has their fields.
type (
	Ledger    = workledger.Ledger
	Opened    = workledger.Opened
	Beginning = workledger.Beginning
	Report    = workledger.Report
	State     = workledger.State
	Answer    = workledger.Answer
	Ask       = workledger.Ask
)

// The modes of partitions.
const (
	Full     = workledger.Full
	Simulate = workledger.Simulate
	DryRun   = workledger.DryRun
)

// The forms of partitions.
const (
	Bucketed  = workledger.Bucketed
	Precise   = workledger.Precise
	Imprecise = workledger.Imprecise
	Pushed    = workledger.Pushed
)

// The states of attempts.
const (
	Stopped  = workledger.Stopped
	Finished = workledger.Finished
	Waiting  = workledger.Waiting
	Starting = workledger.Starting
	Working  = workledger.Working
)

// The limits of the errors that a bucket reports.
const (
	MaxErrors       = workledger.MaxErrors
	MaxErrorBytes   = workledger.MaxErrorBytes
	MaxMessageBytes = workledger.MaxMessageBytes
	MaxItemBytes    = workledger.MaxItemBytes
)

// The limits of streams.
const (
	// MaxTokenBytes bounds the token of a change, and MaxKeyBytes its key.
	MaxTokenBytes = workledger.MaxTokenBytes
	MaxKeyBytes   = workledger.MaxKeyBytes
	// MaxHeldBytes bounds the changes that RetryLater or Park holds for a key, and MaxHeldChanges their number.
	MaxHeldBytes   = workledger.MaxHeldBytes
	MaxHeldChanges = workledger.MaxHeldChanges
	// MaxMessageChanges bounds the changes of a message of a pushed stream.
	MaxMessageChanges = 500
	// MaxHolds bounds the keys of a work that are held.
	MaxHolds = workledger.MaxHolds
)

const definitionBytes = 16

func definitionText(sum []byte) string { return hex.EncodeToString(sum[:definitionBytes]) }
