package work

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
	"taskledger/work/workledger"
)

const (
	// asleep bounds the sleep of the work's own task while its workers have the last buckets. The owner of its shard wakes
	// it; the bound serves a wake-up that nobody could record.
	asleep = time.Hour
	// unanswered puts off an attempt whose ledger did not answer.
	unanswered = time.Second
	// forbidden puts off an attempt of which nothing may be recorded, as while a node is present that cannot read it.
	forbidden = 10 * time.Second
	// waits puts off an attempt of a hold until its stream may have run again.
	waits = time.Minute
)

// Types implements task.Behavior.
func (w *Work[P, I]) Types() string { return w.bound().Types() }

// Plan implements task.Behavior: a submit of a wrong definition, or of parameters that its P refuses, makes no task.
func (w *Work[P, I]) Plan(params []byte, now time.Time) (task.Plan, error) {
	if err := w.Validate(); err != nil {
		return task.Plan{}, err
	}
	plan, err := w.bound().Plan(params, now)
	plan.IDLimit = events.MaxWorkParentBytes
	return plan, err
}

// Run implements task.Behavior: it makes an attempt of the work's own task, or of one of its workers.
func (w *Work[P, I]) Run(ctx context.Context, a task.Attempt) task.Outcome {
	open, is := ctx.Value(workledger.Key{}).(workledger.Opener)
	if !is {
		return refused(errors.New("the context of the attempt has no ledger of works"))
	}
	access, err := open(ctx, a)
	switch {
	case errors.Is(err, workledger.ErrGone): // nothing is left to do for a worker
		return task.Outcome{}
	case errors.Is(err, workledger.ErrWaits):
		return task.Outcome{Release: true, Wait: waits}
	case err != nil:
		return task.Outcome{Release: true, Wait: unanswered}
	}
	a.Params = access.Params
	out := w.bound().Run(context.WithValue(ctx, accessKey{}, &access), a)
	if access.Worker || access.Hold {
		out.Result = nil
	}
	return out
}

func refused(err error) task.Outcome {
	return task.Outcome{Err: &events.Error{Code: events.CodeRejected, Message: err.Error()}}
}

type accessKey struct{}

// bound returns the work as a behavior with types.
func (w *Work[P, I]) bound() *behaviors.Bound[P, Result] {
	return w.behavior.Bind(w.run).(*behaviors.Bound[P, Result])
}

// run makes an attempt.
func (w *Work[P, I]) run(ctx context.Context, params P) (r Result, err error) {
	a, _ := behaviors.Attempt(ctx)
	access := ctx.Value(accessKey{}).(*workledger.Access)
	var of *Opened
	var last Answer
	if access.Hold {
		last.State = Finished
		err = w.hold(ctx, access.Partition, current[P]{
			params: params,
			info:   Info{Attempt: a.Number},
			record: access.Stream,
			log:    cmp.Or(a.Log, slog.New(slog.DiscardHandler)),
		})
	} else {
		of, last, err = w.attempt(ctx, access.Ledger, params, Attempt{
			Number:   a.Number,
			Log:      a.Log,
			Progress: a.Progress,
			Stream:   access.Stream,
		})
	}
	if absent, is := errors.AsType[*absentError](err); is {
		return r, behaviors.Release(w.putOff(ctx, a.Log, absent))
	}
	if err != nil {
		return r, w.verdict(ctx, err)
	}
	switch {
	case last.State == Finished && !access.Worker && !access.Hold:
		return result(of, last.Totals), nil
	case last.State == Finished, last.State == Waiting && access.Worker:
		return r, nil
	case last.State == Waiting:
		return r, behaviors.Snooze(asleep)
	}
	return r, behaviors.Release(0)
}

// verdict says what comes after an attempt that has not come to its end.
func (w *Work[P, I]) verdict(ctx context.Context, err error) error {
	if stop, is := errors.AsType[*StopError](err); is {
		told := map[string]string{
			"partition": stop.Partition,
			"bucket":    strconv.FormatInt(stop.Bucket, 10),
			"item":      stop.Item.Item,
		}
		if stop.counted { // it stops again until its counter is reset
			told["rule"] = strconv.Itoa(stop.Rule)
		}
		return behaviors.Cancel(behaviors.Code(events.CodeStopped, err, told))
	}
	if trip, is := errors.AsType[*ThresholdError](err); is {
		return behaviors.Cancel(behaviors.Code(events.CodeThreshold, err, map[string]string{
			"partition": trip.Partition,
			"counter":   trip.Counter,
			"limit":     strconv.FormatInt(trip.Limit, 10),
		}))
	}
	if _, is := errors.AsType[*tooLargeError](err); is {
		return behaviors.Cancel(behaviors.Code(events.CodeHolds, err, nil))
	}
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return behaviors.Release(0) // the work is suspended or cancelled, or the node stops
	}
	if items, is := errors.AsType[*ItemsError](err); is {
		coded := behaviors.Code(events.CodeItems, err, map[string]string{
			"partition": items.Partition,
			"bucket":    strconv.FormatInt(items.Bucket.Number, 10),
		})
		if errors.Is(err, errOldToken) || errors.Is(err, errFirstToken) {
			return behaviors.Cancel(coded) // another attempt would take that token for a new one
		}
		return coded
	}
	if held, is := errors.AsType[*heldError](err); is {
		return behaviors.Code(held.is.Code, err, nil)
	}
	if _, is := errors.AsType[*store.InvalidError](err); is {
		return behaviors.Cancel(behaviors.Code(events.CodeRejected, err, nil))
	}
	if _, is := errors.AsType[*task.LimitError](err); is {
		return behaviors.Cancel(behaviors.Code(events.CodeRejected, err, nil))
	}
	if _, is := errors.AsType[*task.StateError](err); is {
		return behaviors.Release(forbidden)
	}
	if busy, is := errors.AsType[*task.OverloadError](err); is {
		return behaviors.Release(busy.RetryAfter)
	}
	for _, silent := range [...]error{workledger.ErrOver, store.ErrUnavailable, task.ErrUnknown, task.ErrClosed} {
		if errors.Is(err, silent) {
			return behaviors.Release(unanswered)
		}
	}
	return err
}

// Submit asks for a run of the work and returns when the request is durable: behaviors.Behavior.SubmitWith says what it
// returns. A definition that cannot be carried out is refused, and so is an id of more than 96 bytes.
func (w *Work[P, I]) Submit(
	ctx context.Context, to behaviors.Client, params P, o task.SubmitOptions,
) (*behaviors.Future[Result], error) {
	return w.behavior.SubmitWith(ctx, submitter[P, I]{to, w}, params, o)
}

// Attach returns the future of a task that any process submitted, as behaviors.Behavior.Attach does.
func (w *Work[P, I]) Attach(to behaviors.Client, id events.TaskID) *behaviors.Future[Result] {
	return w.behavior.Attach(to, id)
}

// submitter is a client that submits the work in place of its behavior.
type submitter[P, I any] struct {
	behaviors.Client
	work *Work[P, I]
}

// Submit implements behaviors.Client.
func (s submitter[P, I]) Submit(
	ctx context.Context, _ task.Behavior, params []byte, o task.SubmitOptions,
) (*engine.Future, error) {
	return s.Client.Submit(ctx, s.work, params, o)
}
