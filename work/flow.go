package work

import (
	"context"
	"log/slog"
	"time"

	"taskledger/work/workledger"
)

// flow is the stream of a partition. It hides the type of the values of changes, which a Partition does not know.
type flow[P any] interface {
	// form returns the form, and whether the stream moves the token though its mode alone would not have it do so.
	form() (f Form, moves bool)
	// check returns what is wrong with the stream, beside what a partition may have wrong.
	check(name string, rules []Rule) error
	// sum adds what is data in the stream and in no plan.
	sum(h hasher)
	// run processes what the source has.
	run(ctx context.Context, of current[P]) error
	// runHold processes the changes of a hold in their order until none is left.
	runHold(ctx context.Context, of current[P]) error
}

// current tells a stream for which attempt it runs.
type current[P any] struct {
	params P
	plan   *PartitionPlan
	place  int // of the partition
	rules  []Rule
	info   Info
	ledger Ledger
	record workledger.Stream
	log    *slog.Logger
	grace  time.Duration
	tell   func(processed int64) // nil = nobody wants to know
}
