package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

type attemptKey struct {
	shard   int
	started events.Ref
}

// attempt is one call of a behavior's function, and the way of its outcome to the owner.
type attempt struct {
	command.Assignment
	shard    int
	m        *member
	behavior Behavior
	ctx      attemptContext
	timeout  *time.Timer                      // nil without one
	reported atomic.Bool                      // an outcome was chosen
	done     atomic.Bool                      // the function has returned
	progress atomic.Pointer[progressReporter] // nil before the first report
	outcome  command.Complete                 // once it is reported
	told     Attempt                          // what the function was called with, once ran
	ran      atomic.Bool                      // the function was called
	rejected bool                             // the outcome was, and a failure is reported in its place
	waits    int                              // goroutines that have lent the slot; guarded by the executor
	lent     bool                             // its slot is; guarded by the executor
	stuck    atomic.Bool                      // the function was given up and has not returned
	logs     attemptLog
	log      slog.Logger // on logs
}

var (
	errFenced   = errors.New("this node must no longer run the attempt")
	errDraining = errors.New("this node is stopping")
	errTimeout  = errors.New("the attempt exceeded its time-out")
)

// cancelledBy is the cause of the end of an attempt's context: ErrCancelled, with who has cancelled the task, and
// why, as far as it is known.
func cancelledBy(by, reason string) error {
	switch {
	case by == "" && reason == "":
		return ErrCancelled
	case reason == "":
		return fmt.Errorf("%w by %s", ErrCancelled, by)
	}
	return fmt.Errorf("%w by %s: %s", ErrCancelled, cmp.Or(by, "nobody known"), reason)
}

// execute calls the function and reports the outcome. The deferred part runs for a panic and for runtime.Goexit alike.
func (x *executor) execute(a *attempt) {
	returned := false
	var out Outcome
	defer func() {
		a.report(out, a.ctx.Err() != nil)
		a.ctx.end(nil)
		if a.timeout != nil {
			a.timeout.Stop() // which would hold the attempt
		}
		x.endLoan(a)
		x.Release(a.Assignment.Behavior)
	}()
	defer func() {
		problem := recover()
		x.returned(a)
		if !returned {
			out = a.followed(crashed(problem))
		}
	}()
	if !a.m.mayStart() { // the session may have ended since the assignment; if it goes on after all, the task runs again
		a.ctx.end(errDraining)
		out, returned = Outcome{Err: &events.Error{Code: events.CodeFailed, Message: errDraining.Error()}}, true
		return
	}
	params, err := a.parameters()
	if errors.Is(err, errUnread) { // the task is not to blame
		a.m.log.Warn("attempt waits for its parameters", "task", a.Task, "err", err)
		out, returned = Outcome{Snooze: snoozeUnread}, true
		return
	}
	if err != nil {
		out, returned = Outcome{Err: &events.Error{Code: events.CodeRejected, Message: err.Error()}}, true
		return
	}
	deadline, _ := a.ctx.Deadline()
	a.logs = attemptLog{a.m.log.Handler(), a}
	a.log = *slog.New(&a.logs)
	a.told = Attempt{Task: a.Task, Behavior: a.Assignment.Behavior, Number: int(a.Number),
		Failures: int(a.Failures), Lost: int(a.Lost), Policy: a.Policy,
		Token: events.Position{Shard: uint16(a.shard), Ref: a.Started}, Params: params, Deadline: deadline,
		Log: &a.log, Progress: a.reportProgress, Lend: a.lend}
	a.ran.Store(true)
	out = a.behavior.Run(&a.ctx, a.told)
	returned = true
}

// maxFailers is how many questions what follows a failed attempt may be with a behavior at once.
const maxFailers = 16

// followed asks a behavior that decides what follows an attempt of which its function has returned no outcome. Where it
// panics, does not answer, or leaves maxFailers questions unanswered, the policy decides: the outcome must not wait for it.
func (a *attempt) followed(failed Outcome) Outcome {
	f, decides := a.behavior.(task.Failer)
	if !decides || !a.ran.Load() {
		return failed
	}
	places := a.m.exec.failers[a.Assignment.Behavior]
	answer := make(chan Outcome, 1)
	ask := func() {
		defer func() { <-places }()
		a.askFailer(f, failed, answer)
	}
	select {
	case places <- struct{}{}:
		if !a.m.exec.detach(ask) { // the node has stopped
			<-places
			return failed
		}
	default:
		a.m.log.Error("what follows a failed attempt is left to its policy: the behavior did not answer before",
			"task", a.Task, "behavior", a.Assignment.Behavior, "unanswered", len(places))
		return failed
	}
	late := time.NewTimer(overdue)
	defer late.Stop()
	select {
	case out := <-answer:
		return out
	case <-late.C:
		a.m.log.Error("what follows a failed attempt is left to its policy: the behavior does not answer",
			"task", a.Task, "behavior", a.Assignment.Behavior)
		return failed
	}
}

// askFailer answers with what the behavior decides, else with what has failed.
func (a *attempt) askFailer(f task.Failer, failed Outcome, answer chan<- Outcome) {
	out := failed
	defer func() { // also where the behavior ends the goroutine
		if problem := recover(); problem != nil {
			a.m.log.Error("what follows a failed attempt is left to its policy: the behavior panicked when it was asked",
				"task", a.Task, "err", problem)
		}
		answer <- out
	}()
	if asked, decided := f.Failed(a.told, failed.Err); decided {
		out = Outcome{Err: failed.Err, Wait: asked.Wait, Next: asked.Next}
	}
}

// panicValueBytes leaves most of an error's text to the stack.
const panicValueBytes = 16 << 10

func crashed(problem any) Outcome {
	message := "the function ended its goroutine"
	if problem != nil {
		message = fmt.Sprintf("%s\n\n%s", events.Cut(fmt.Sprint(problem), panicValueBytes), debug.Stack())
	}
	return Outcome{Err: &events.Error{Code: events.CodePanic, Message: message, Retryable: true}, Next: byPolicy}
}

// snoozeUnread is how long a task waits whose parameters could not be read.
const snoozeUnread = 5 * time.Second

// byPolicy marks a failure whose next attempt follows from the recorded policy.
var byPolicy = time.Unix(1, 0)

var errUnread = errors.New("parameters cannot be read at the moment")

// parameters returns the JSON text, from the journal when the owner does not hold it.
func (a *attempt) parameters() ([]byte, error) {
	if a.ParamsAt != 0 {
		p, err := a.m.loader.PayloadAt(&a.ctx, a.shard, a.ParamsAt)
		switch {
		case errors.Is(err, store.ErrTrimmed):
			return nil, fmt.Errorf("parameters are no longer kept: %w", err)
		case errors.Is(err, events.ErrDamaged):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: %w", errUnread, err)
		}
		a.Params = p
	}
	return a.Params.JSON()
}

// end ends the attempt's context and expects the function to return.
func (a *attempt) end(cause error) {
	a.ctx.end(cause)
	if !errors.Is(cause, errFenced) && !errors.Is(cause, errDraining) { // a drain sees to it itself
		a.expectReturn()
	}
}

// timedOut expects the function to return. The context ends at its deadline by itself, if only somebody has looked at it.
func (a *attempt) timedOut() {
	a.ctx.look()
	a.expectReturn()
}

// expectReturn records the attempt as over when the function goes on for too long although its context has ended. Its slot stays taken.
func (a *attempt) expectReturn() {
	time.AfterFunc(overdue, func() {
		if a.m.exec.giveUp(a) {
			a.m.log.Warn("a function does not return although its context has ended: its slot stays taken until it does",
				"task", a.Task, "behavior", a.Assignment.Behavior, "attempt", a.Number, "slots_so_held", a.m.exec.stuckNow())
			out := Outcome{Err: &events.Error{Code: events.CodeFailed, Message: "the function did not return after its context ended"}, Next: byPolicy}
			if errors.Is(context.Cause(&a.ctx), errTimeout) {
				out.Err = timedOut(out.Err)
				out = a.followed(out)
			}
			a.report(out, true)
		}
	})
}

// report sends the outcome to the owner, once. ended tells that the context was over when it was reached.
func (a *attempt) report(out Outcome, ended bool) {
	if !a.reported.CompareAndSwap(false, true) {
		return
	}
	cause := context.Cause(&a.ctx)
	if errors.Is(cause, errFenced) || a.m.ctx.Err() != nil { // the session is over: its attempts are lost, whatever they say
		a.m.exec.forget(a)
		return
	}
	a.stopProgress()
	c := &a.outcome
	*c = command.Complete{Task: a.Task, Started: a.Started, Node: a.m.session.ID, Random: rand.Uint32()}
	switch {
	case ended && out.Err != nil && errors.Is(cause, errDraining):
		c.How = command.Released
	case out.Release:
		c.How = command.Released
		reportNext(c, Outcome{Wait: max(out.Wait, time.Nanosecond)})
	case out.Snooze > 0:
		c.How, c.Wait = command.Snoozed, out.Snooze
	case out.Err != nil:
		if out.Unread && a.m.typesDiffer(a.Assignment.Behavior) {
			out.Next = byPolicy
		}
		reportFailure(c, out, ended && errors.Is(cause, errTimeout))
	default:
		reportSuccess(c, out)
	}
	a.m.sender.Later(a.shard, c, a)
	if !a.m.exec.hold(a.shard) {
		a.m.sender.Flush(a.shard, command.LaneWork)
	}
}

// Answered implements sender.Caller: it learns what became of the outcome. One that can never be recorded is replaced by a failure that says so: the attempt would
// only be made again, and come to the same.
func (a *attempt) Answered(ans command.Answer, err error) {
	if err == nil {
		err = ans.Err(a.Task)
	}
	_, invalid := errors.AsType[*InvalidError](err)
	_, large := errors.AsType[*LimitError](err)
	never := invalid || large || ans.Code == command.AnswerBug
	switch {
	case err == nil:
	case ans.Code == command.AnswerStale:
		a.m.log.Info("late outcome refused", "task", a.Task, "attempt", a.Started)
	case never && !a.rejected:
		a.m.log.Error("outcome refused: the attempt fails", "task", a.Task, "attempt", a.Started, "err", err)
		a.rejected = true
		failed := events.Error{Code: events.CodeRejected, Message: err.Error()}.Fit()
		a.m.sender.Later(a.shard, &command.Complete{Task: a.Task, Started: a.Started, Node: a.m.session.ID, How: command.Failed, Error: &failed}, a)
		a.m.sender.Flush(a.shard, command.LaneWork)
		return
	case ans.Code != command.AnswerOK:
		a.m.log.Error("outcome refused", "task", a.Task, "attempt", a.Started, "err", err)
	default:
		a.m.log.Warn("outcome may not be recorded", "task", a.Task, "attempt", a.Started, "err", err)
	}
	a.m.exec.forget(a)
}

func reportSuccess(c *command.Complete, out Outcome) {
	if len(out.Result) > events.MaxPayloadBytes {
		c.How, c.Error = command.Failed, &events.Error{Code: events.CodeRejected,
			Message: (&LimitError{Field: "result", Limit: events.MaxPayloadBytes, Got: int64(len(out.Result))}).Error()}
		return
	}
	c.How, c.Result = command.Succeeded, events.JSON(out.Result)
	reportNext(c, out)
}

func reportFailure(c *command.Complete, out Outcome, late bool) {
	e := out.Err.Fit()
	if late {
		e = *timedOut(&e)
	}
	c.How, c.Error = command.Failed, &e
	if c.ByPolicy = out.Next.Equal(byPolicy); !c.ByPolicy {
		reportNext(c, out)
	}
}

// timedOut is the failure of an attempt that ended after its time-out.
func timedOut(e *events.Error) *events.Error {
	if e.Code == events.CodeTimeout && strings.HasPrefix(e.Message, errTimeout.Error()) { // it is so already
		return e
	}
	message := strings.TrimSuffix(errTimeout.Error()+": "+e.Message, ": "+errTimeout.Error()) // most functions return the cause
	fit := events.Error{Code: events.CodeTimeout, Message: message, Retryable: true}.Fit()
	return &fit
}

// reportNext tells the run that is to follow, if one is. The owner's time may be ahead of every wall clock: a time of day alone would
// then be past, again and again.
func reportNext(c *command.Complete, out Outcome) {
	wait := out.Wait
	switch {
	case !out.Next.IsZero():
		wait = max(wait, time.Until(out.Next))
		c.Next = min(max(events.MillisOf(out.Next), command.AnyTime), command.MaxTime)
	case wait > 0:
		c.Next = command.AnyTime
	}
	wait = min(max(wait, 0), math.MaxInt64-time.Millisecond)
	c.Wait = (wait + time.Millisecond - 1).Truncate(time.Millisecond)
}

// attemptLog adds to each record which attempt it is of; only then, since most attempts log nothing.
type attemptLog struct {
	slog.Handler
	a *attempt
}

// Handle implements slog.Handler.
func (h *attemptLog) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(slog.String("task", string(h.a.Task)), slog.String("behavior", h.a.Assignment.Behavior), slog.Uint64("attempt", uint64(h.a.Number)))
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *attemptLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &attemptLog{h.Handler.WithAttrs(attrs), h.a}
}

// WithGroup implements slog.Handler.
func (h *attemptLog) WithGroup(name string) slog.Handler {
	return &attemptLog{h.Handler.WithGroup(name), h.a}
}
