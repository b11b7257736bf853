package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"taskledger/work/internal/threads"
	"taskledger/work/progress"
	"taskledger/work/workledger"
)

// giveBack bounds the time for telling a Ledger of the last bucket of an attempt that has to stop.
const giveBack = 5 * time.Second

// Attempt is an attempt of the task of a work, or of one of its workers.
type Attempt struct {
	// Number counts the attempts within the life of the task, from 1 on.
	Number int
	// Log takes what is worth telling; nil: nothing is logged.
	Log *slog.Logger
	// Progress takes, every ten seconds of a bucket, how many of its items were processed, as task.Attempt.Progress does.
	// nil: nobody wants to know.
	Progress func(done, total int64, note string)
	// Grace is the time in which an iterator has to return after its context has ended. 0: ten seconds.
	Grace time.Duration
	// Stream is the record of the streams of the work; works of other partitions have none.
	Stream workledger.Stream
}

// Attempt works on buckets until the ledger has none for it: it returns Finished, Waiting or Stopped, as the ledger
// said. An error fails the attempt: it is the cause of ctx if ctx ended, an *ItemsError, a *StopError or a
// *ThresholdError, both of which are final, the error of the ledger, or tells that this node cannot go on with the run.
// Before it returns an error, it gives its bucket back, within five seconds, even if ctx has ended.
//
// Validate has to accept the definition. Attempt may be called concurrently, with a ledger for each call.
func (w *Work[P, I]) Attempt(ctx context.Context, l Ledger, params P, a Attempt) (State, error) {
	_, last, err := w.attempt(ctx, l, params, a)
	return last.State, err
}

// attempt is Attempt, and returns the run, and the last answer of the ledger.
func (w *Work[P, I]) attempt(ctx context.Context, l Ledger, params P, a Attempt) (*Opened, Answer, error) {
	a.Log = cmp.Or(a.Log, slog.New(slog.DiscardHandler))
	plan := w.Planned()
	opened, err := l.Open(ctx, plan)
	if err != nil {
		return nil, Answer{}, ended(ctx, fmt.Errorf("opening the run of work %s: %w", w.id, err))
	}
	if is := opened.Plan.Definition; is != plan.Definition && w.foreign.differs(is) {
		const say = "the run goes on by the definition it was begun with, which is not the one of this node"
		a.Log.WarnContext(ctx, say, "work", w.id, "run", opened.Run, "recorded", is, "here", plan.Definition)
	}
	loop := &loop[P, I]{
		Work:    w,
		opened:  opened,
		attempt: a,
		ledger:  l,
		params:  params,
	}
	last, err := loop.run(ctx)
	return &opened, last, err
}

// loop holds the state of a call of Attempt.
type loop[P, I any] struct {
	*Work[P, I]
	opened  Opened
	attempt Attempt
	ledger  Ledger
	params  P
}

// run works on buckets until the ledger has none for the attempt, and returns its last answer; with an error the zero
// value, whose state is Stopped.
func (l *loop[P, I]) run(ctx context.Context) (Answer, error) {
	var report Report
	for {
		next, err := l.next(ctx, report)
		if err != nil {
			return Answer{}, err
		}
		report = Report{}
		switch next.State {
		case Starting:
			err = l.begin(ctx, next.Partition)
		case Working:
			report, err = l.bucket(ctx, next)
		default:
			return next, nil
		}
		if err != nil {
			return Answer{}, err
		}
	}
}

// next reports on a bucket and asks for another one. If the attempt has to stop, the report is all that the ledger
// hears.
func (l *loop[P, I]) next(ctx context.Context, report Report) (Answer, error) {
	if ctx.Err() == nil {
		next, err := l.ledger.Next(ctx, report)
		if err != nil {
			err = ended(ctx, fmt.Errorf("asking for a bucket of work %s: %w", l.id, err))
		}
		return next, err
	}
	if report.Bucket != 0 {
		l.last(ctx, report)
	}
	return Answer{}, context.Cause(ctx)
}

// last tells the ledger of the last bucket of the attempt, though ctx may have ended.
func (l *loop[P, I]) last(ctx context.Context, report Report) {
	report.Last = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack)
	defer cancel()
	if _, err := l.ledger.Next(ctx, report); err != nil {
		const say = "the last report of the attempt was not taken: the end of the attempt gives its bucket back"
		l.attempt.Log.InfoContext(ctx, say, "work", l.id, "bucket", report.Bucket, "error", err)
	}
}

// at returns a partition of the run, as it is recorded and as it is defined.
func (l *loop[P, I]) at(place int) (*PartitionPlan, *Partition[P, I], error) {
	if place < 0 || place >= len(l.opened.Plan.Partitions) {
		return nil, nil, fmt.Errorf("partition %d of a run of %d", place, len(l.opened.Plan.Partitions))
	}
	plan := &l.opened.Plan.Partitions[place]
	defined := l.partition(plan.ID)
	switch {
	case defined == nil:
		return nil, nil, l.absent("the run has a partition %q, and the definition of this node has none", plan.ID)
	case defined.Process == nil && plan.Mode != DryRun:
		return nil, nil, l.absent("partition %q runs with the mode %s, and has no Process on this node", plan.ID, plan.Mode)
	case plan.Form != defined.plan().Form:
		return nil, nil, l.absent("partition %q is a stream of another form in the run than on this node", plan.ID)
	case plan.Mode != DryRun && !countsAlike(plan.Thresholds, defined.thresholds()):
		return nil, nil, l.absent("partition %q has other counters in the run than on this node, as {name limit}: %v and %v",
			plan.ID, plan.Thresholds, defined.thresholds())
	}
	return plan, defined, nil
}

// rules returns those of the run, or of this node where none are recorded.
func (l *loop[P, I]) rules(plan *PartitionPlan, defined *Partition[P, I]) ([]Rule, error) {
	if plan.Rules == nil {
		return defined.Rules, nil
	}
	rules, known := rulesOf(plan.Rules)
	if !known {
		return nil, l.absent("partition %q has rules in the run that this node does not know: %+v", plan.ID, plan.Rules)
	}
	return rules, nil
}

// rulesOf returns the rules that a plan has; false = it has some that this node does not know.
func rulesOf(recorded []workledger.Rule) (rules []Rule, known bool) {
	for _, r := range recorded {
		rules = append(rules, Rule{
			Code:    r.Code,
			React:   Reaction(r.React),
			Times:   r.Times,
			Backoff: r.Backoff,
		})
	}
	return rules, checkRules("", rules) == nil && !slices.ContainsFunc(rules, Rule.holds)
}

func (l *loop[P, I]) absent(format string, args ...any) error {
	return &absentError{l.opened.Plan.Definition, fmt.Sprintf(format, args...)}
}

func (l *loop[P, I]) info(plan *PartitionPlan, b Bucket) Info {
	return Info{
		Run:       l.opened.Run,
		Started:   l.opened.Started,
		Mode:      plan.Mode,
		Partition: plan.ID,
		Bucket:    b,
		Attempt:   l.attempt.Number,
	}
}

// begin counts the items of a partition and begins it.
func (l *loop[P, I]) begin(ctx context.Context, place int) error {
	plan, defined, err := l.at(place)
	if err != nil {
		return err
	}
	b := Beginning{Partition: place}
	if defined.Count != nil {
		b.Expected, err = l.count(ctx, plan, defined)
		b.Counted = err == nil
	}
	switch _, behind := errors.AsType[*threads.AbandonedError](err); {
	case behind:
		return errors.Join(context.Cause(ctx), err)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		const say = "the count failed, so the number of items is unknown"
		l.attempt.Log.WarnContext(ctx, say, "work", l.id, "partition", plan.ID, "error", err)
	}
	if err := l.ledger.Begin(ctx, b); err != nil {
		return ended(ctx, fmt.Errorf("beginning partition %s of work %s: %w", plan.ID, l.id, err))
	}
	return nil
}

// count returns the number of items of a partition, which is 0 with an error.
func (l *loop[P, I]) count(ctx context.Context, plan *PartitionPlan, defined *Partition[P, I]) (int64, error) {
	count := threads.Foreign{
		Name:      "the count of partition " + plan.ID,
		Grace:     l.attempt.Grace,
		Abandoned: &abandoned,
	}
	n, err := threads.Await(ctx, count, func(ctx context.Context) (int64, error) {
		return defined.Count(&scope{Context: ctx, info: l.info(plan, Bucket{})}, l.params)
	})
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, fmt.Errorf("%d items, want 0 or more", n)
	}
	return n, nil
}

// bucket works on the bucket of an answer. With an error it has given it back.
func (l *loop[P, I]) bucket(ctx context.Context, next Answer) (Report, error) {
	report := Report{
		Partition: next.Partition,
		Bucket:    next.Bucket,
	}
	plan, defined, err := l.at(next.Partition)
	var rules []Rule
	if err == nil {
		rules, err = l.rules(plan, defined)
	}
	if err == nil {
		switch b, ok := plan.Segmentation.Bucket(next.Bucket); {
		case !ok:
			err = fmt.Errorf("partition %s has no bucket %d", plan.ID, next.Bucket)
		case defined.flow != nil:
			err = l.stream(ctx, next.Partition, plan, defined)
		default:
			run := &bucketRun[P, I]{
				Partition: defined,
				plan:      plan,
				rules:     rules,
				place:     next.Partition,
				info:      l.info(plan, b),
				ledger:    l.ledger,
				log:       l.attempt.Log,
				grace:     l.attempt.Grace,
			}
			run.tally.tells(l.teller(plan, b))
			report, err = run.run(ctx, l.params)
		}
	}
	if err != nil {
		l.tell(ctx, plan, err)
		report.Returned, report.Cause = true, err
		l.last(ctx, report)
	}
	return report, err
}

// teller returns a function that tells how many items of a bucket were processed, nil if nobody wants to know.
func (l *loop[P, I]) teller(plan *PartitionPlan, b Bucket) func(processed int64) {
	if l.attempt.Progress == nil {
		return nil
	}
	return func(processed int64) {
		l.attempt.Progress(processed, 0, progress.Note(plan.ID, uint64(b.Number)))
	}
}

// stream works on the only bucket of a stream.
func (l *loop[P, I]) stream(ctx context.Context, place int, plan *PartitionPlan, defined *Partition[P, I]) error {
	if l.attempt.Stream == nil {
		return refuse("stream", "the ledger of the attempt has no record of streams")
	}
	b := Bucket{Number: 1}
	return defined.flow.run(ctx, current[P]{
		params: l.params,
		plan:   plan,
		place:  place,
		rules:  defined.Rules,
		info:   l.info(plan, b),
		ledger: l.ledger,
		record: l.attempt.Stream,
		log:    l.attempt.Log,
		grace:  l.attempt.Grace,
		tell:   l.teller(plan, b),
	})
}

// tell logs what an iterator did wrong while the attempt had to stop for another reason, which is what becomes known.
func (l *loop[P, I]) tell(ctx context.Context, plan *PartitionPlan, err error) {
	if wrong, ok := errors.AsType[*threads.IteratorError](err); ok && plan != nil {
		const say = "the iterator of a bucket failed"
		l.attempt.Log.WarnContext(ctx, say, "work", l.id, "partition", plan.ID, "error", wrong)
	}
}

// ended returns the cause of a context that has ended, else the error.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
