package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strconv"
	"time"

	"taskledger/events"
	"taskledger/internal/coded"
	"taskledger/work/internal/threads"
)

// abandoned counts the iterators and counts of this process that were left behind.
var abandoned threads.Abandoned

// Abandoned returns the names of the functions Items and Count of this process that did not return when their context
// ended, were left behind, and have not returned since. It may be called concurrently.
func Abandoned() []string { return abandoned.Names() }

// bucketRun holds a bucket that an attempt works on.
type bucketRun[P, I any] struct {
	*Partition[P, I] // as it is defined
	plan             *PartitionPlan
	rules            []Rule // of the run
	place            int    // of the partition
	info             Info
	ledger           Ledger
	log              *slog.Logger
	grace            time.Duration
	tally            tally
}

// run works on all items of the bucket. An error tells that the bucket has to be given back.
func (b *bucketRun[P, I]) run(ctx context.Context, params P) (Report, error) {
	report := Report{
		Partition: b.place,
		Bucket:    b.info.Bucket.Number,
	}
	defer b.tally.watch()()
	err := threads.Run(ctx, threads.Config[I]{
		Name:    fmt.Sprintf("the iterator of bucket %[2]d of partition %[1]s", b.plan.ID, b.info.Bucket.Number),
		Threads: int(b.plan.Threads),
		Items: func(ctx context.Context) iter.Seq2[I, error] {
			return b.Items(&scope{Context: ctx, info: b.info}, params, b.info.Bucket)
		},
		Key:       b.Key,
		Process:   b.process,
		Grace:     b.grace,
		Abandoned: &abandoned,
	})
	if err != nil {
		return report, b.failure(err)
	}
	report.Items, report.Errors = b.tally.counts, b.tally.errors
	return report, nil
}

// failure names the bucket in an error of its iterator or of its function of keys. An error that is joined with that of
// the iterator had another reason first, and is left as it is.
func (b *bucketRun[P, I]) failure(err error) error {
	switch err.(type) {
	case *threads.IteratorError, *threads.PanicError:
		return &ItemsError{
			Partition: b.plan.ID,
			Bucket:    b.info.Bucket,
			Err:       err,
		}
	}
	return err
}

// process carries out an item and says what comes after it.
func (b *bucketRun[P, I]) process(ctx context.Context, it *threads.Item[I]) (v threads.Verdict) {
	if b.plan.Mode == DryRun {
		b.tally.done()
		return v
	}
	asks := &permits{
		ledger: b.ledger,
		ask: Ask{
			Partition: b.place,
			Bucket:    b.info.Bucket.Number,
			Item:      itemHash(b.info.Bucket.Number, it),
			Mode:      b.plan.Mode,
		},
		partition:  b.plan.ID,
		thresholds: b.plan.Thresholds,
	}
	err := b.call(&scope{Context: ctx, info: b.info, item: asks}, it.Value)
	denied := asks.denial()
	skip, skips := skipped(err)
	switch {
	case denied != nil:
		v.Stop = denied
	case err == nil:
		b.tally.done()
	case ctx.Err() != nil: // nobody knows what else it would have come to
		v.Stop = context.Cause(ctx)
	case skips:
		b.tally.skipped()
		b.log.DebugContext(ctx, "item skipped", "item", nameOf(it), "reason", skip.reason)
	default:
		return b.failed(ctx, asks, it, err)
	}
	return v
}

// call calls Process and makes an error of its panic.
func (b *bucketRun[P, I]) call(ctx context.Context, item I) (err error) {
	threads.Watch("the function of the item", func() { err = b.Process(ctx, item) }, func(failure error) { err = failure })
	return err
}

// failed does what the rules say of an item that failed.
func (b *bucketRun[P, I]) failed(
	ctx context.Context, asks *permits, it *threads.Item[I], err error,
) (v threads.Verdict) {
	e := itemError(nameOf(it), err)
	d := decide(b.rules, e.Code, int64(it.Try))
	switch d.React {
	case Ignore:
		b.tally.skipped()
		return v
	case Retry:
		v.Again, v.After = true, d.backoff(d.repetition)
		return v
	case Stop:
		passes, denied := passes(ctx, asks, d, e)
		if denied != nil {
			v.Stop = denied
			return v
		}
		if !passes {
			v.Stop = &StopError{
				Partition: b.plan.ID,
				Bucket:    b.info.Bucket.Number,
				Rule:      d.place,
				Item:      e,
				Err:       err,
			}
			return v
		}
	}
	b.tally.failed(e)
	return v
}

// passes reports whether a rule that stops lets a failure pass. Which failure is the last one, over all workers, the
// ledger knows by the counter of the rule.
func passes(ctx context.Context, asks *permits, d decision, e ItemError) (bool, error) {
	counter, _ := d.counter(d.place)
	reason := fmt.Sprintf("item %s in bucket %d failed with code %q: %s", e.Item, asks.ask.Bucket, e.Code, e.Message)
	err := asks.permit(ctx, counter.Counter, events.Cut(reason, MaxMessageBytes))
	if _, tripped := errors.AsType[*ThresholdError](err); tripped {
		return false, nil
	}
	return err == nil, err
}

// itemError returns the error of the item of a name. Of a panic it tells the frames above those of this package.
func itemError(name string, err error) ItemError {
	e := ItemError{
		Item:    name,
		Code:    cmp.Or(coded.Of(err), events.CodeFailed),
		Message: err.Error(),
	}
	if p, ok := errors.AsType[*threads.PanicError](err); ok {
		e.Code = CodePanic
		e.Message += "\n" + p.Frames("taskledger/work.")
	}
	return fit(e)
}

func nameOf[I any](it *threads.Item[I]) string {
	if it.Key == "" {
		return "#" + strconv.FormatInt(it.Ordinal, 10)
	}
	return it.Key
}
