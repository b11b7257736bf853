package work

import (
	"encoding/hex"

	"taskledger/work/segmentation"
	"taskledger/work/workledger"
)

// Bucket is a part of the items of a partition: its number, from 1 on, and the bounds of its keys.
type Bucket = segmentation.Bucket

// The types of the port by which attempts reach the record of their work.
type (
	Ledger        = workledger.Ledger
	Opened        = workledger.Opened
	Beginning     = workledger.Beginning
	Report        = workledger.Report
	Counts        = workledger.Counts
	ItemError     = workledger.ItemError
	State         = workledger.State
	Answer        = workledger.Answer
	Ask           = workledger.Ask
	Mode          = workledger.Mode
	Threshold     = workledger.Threshold
	Plan          = workledger.Plan
	PartitionPlan = workledger.PartitionPlan
)

// The modes of partitions.
const (
	Full     = workledger.Full
	Simulate = workledger.Simulate
	DryRun   = workledger.DryRun
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

const definitionBytes = 16

func definitionText(sum []byte) string { return hex.EncodeToString(sum[:definitionBytes]) }
