package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/logwriters"
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
	x        *Executor
	session  *Session
	behavior task.Behavior
	ctx      attemptContext
	timeout  *time.Timer                      // nil without one
	reported atomic.Bool                      // an outcome was chosen
	done     atomic.Bool                      // the function has returned
	progress atomic.Pointer[progressReporter] // nil before the first report
	outcome  command.Complete                 // once it is reported
	input    task.Attempt                     // passed to the function, once ran
	ran      atomic.Bool                      // the function was called
	rejected bool                             // the outcome was, and a failure is reported in its place
	waits    int                              // goroutines that have lent the slot; guarded by the executor
	lent     bool                             // its slot is; guarded by the executor
	stuck    atomic.Bool                      // the attempt was given up, and its function has not returned
	logs     attemptLog
	log      slog.Logger                    // on logs
	kept     atomic.Pointer[logwriters.Log] // nil before the first line
}

var (
	// ErrFenced ends attempts of a session that is over.
	ErrFenced = errors.New("this node must no longer run the attempt")
	// ErrDraining ends attempts of a node that stops.
	ErrDraining = errors.New("this node is stopping")
	errTimeout  = errors.New("the attempt exceeded its time-out")
)

// CancelledBy returns the cause of the end of a cancelled attempt's context. It wraps task.ErrCancelled and names the
// principal and the reason as far as they are known.
func CancelledBy(by, reason string) error {
	switch {
	case by == "" && reason == "":
		return task.ErrCancelled
	case reason == "":
		return fmt.Errorf("%w by %s", task.ErrCancelled, by)
	}
	return fmt.Errorf("%w by %s: %s", task.ErrCancelled, cmp.Or(by, "nobody known"), reason)
}

// execute calls the function and reports the outcome. The deferred part runs for a panic and for runtime.Goexit alike.
func (x *Executor) execute(a *attempt) {
	returned := false
	var out task.Outcome
	defer func() {
		ended := a.ctx.Err() != nil // before the wait for what programs have written
		a.awaitLog()
		a.report(out, ended)
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
	if !a.session.host.MayStart() { // if the session has not ended since the assignment, the task runs again
		a.ctx.end(ErrDraining)
		out, returned = task.Outcome{Err: &events.Error{Code: events.CodeFailed, Message: ErrDraining.Error()}}, true
		return
	}
	params, err := a.parameters()
	if errors.Is(err, errUnread) { // the task is not to blame
		a.session.log.Warn("attempt waits for its parameters", "task", a.Task, "err", err)
		out, returned = task.Outcome{Snooze: snoozeUnread}, true
		return
	}
	if err != nil {
		out, returned = task.Outcome{Err: &events.Error{Code: events.CodeRejected, Message: err.Error()}}, true
		return
	}
	deadline, _ := a.ctx.Deadline()
	a.logs = attemptLog{Handler: a.session.log.Handler(), a: a}
	a.log = *slog.New(&a.logs)
	a.input = task.Attempt{
		Task:     a.Task,
		Behavior: a.Assignment.Behavior,
		Number:   int(a.Number),
		Failures: int(a.Failures),
		Lost:     int(a.Lost),
		Policy:   a.Policy,
		Token:    events.Position{Shard: uint16(a.shard), Ref: a.Started},
		Params:   params,
		Deadline: deadline,
		Log:      &a.log,
		Output:   discarded,
		Progress: a.reportProgress,
		Lend:     a.lend,
	}
	if a.keepsLog() {
		a.input.Output = a.output
	}
	a.ran.Store(true)
	out = a.behavior.Run(&a.ctx, a.input)
	returned = true
}

// maxFailers bounds the concurrent calls that ask one behavior what follows a failed attempt.
const maxFailers = 16

// followed asks a behavior that decides what follows an attempt of which its function has returned no outcome.
// Where it panics, does not answer, or leaves maxFailers questions unanswered, the policy decides: the outcome must
// not wait for it.
func (a *attempt) followed(failed task.Outcome) task.Outcome {
	f, decides := a.behavior.(task.Failer)
	if !decides || !a.ran.Load() {
		return failed
	}
	places := a.x.failers[a.Assignment.Behavior]
	answer := make(chan task.Outcome, 1)
	ask := func() {
		defer func() { <-places }()
		a.askFailer(f, failed, answer)
	}
	select {
	case places <- struct{}{}:
		if !a.x.Detach(ask) { // the node has stopped
			<-places
			return failed
		}
	default:
		a.session.log.Error("what follows a failed attempt is left to its policy: the behavior did not answer before",
			"task", a.Task, "behavior", a.Assignment.Behavior, "unanswered", len(places))
		return failed
	}
	late := time.NewTimer(Overdue)
	defer late.Stop()
	select {
	case out := <-answer:
		return out
	case <-late.C:
		a.session.log.Error("what follows a failed attempt is left to its policy: the behavior does not answer",
			"task", a.Task, "behavior", a.Assignment.Behavior)
		return failed
	}
}

// askFailer answers with what the behavior decides, else with what has failed.
func (a *attempt) askFailer(f task.Failer, failed task.Outcome, answer chan<- task.Outcome) {
	out := failed
	defer func() { // also where the behavior ends the goroutine
		if problem := recover(); problem != nil {
			a.session.log.Error("what follows a failed attempt is left to its policy: "+
				"the behavior panicked when it was asked", "task", a.Task, "err", problem)
		}
		answer <- out
	}()
	if asked, decided := f.Failed(a.input, failed.Err); decided {
		out = task.Outcome{Err: failed.Err, Wait: asked.Wait, Next: asked.Next}
	}
}

// panicValueBytes leaves most of an error's text to the stack.
const panicValueBytes = 16 << 10

func crashed(problem any) task.Outcome {
	message := "the function ended its goroutine"
	if problem != nil {
		message = fmt.Sprintf("%s\n\n%s", events.Cut(fmt.Sprint(problem), panicValueBytes), debug.Stack())
	}
	return task.Outcome{Err: &events.Error{Code: events.CodePanic, Message: message, Retryable: true}, Next: byPolicy}
}

// snoozeUnread is the snooze of a task whose parameters could not be read.
const snoozeUnread = 5 * time.Second

// byPolicy marks a failure whose next attempt follows from the recorded policy.
var byPolicy = time.Unix(1, 0)

var errUnread = errors.New("parameters cannot be read at the moment")

// parameters returns the JSON text, from the journal when the owner does not hold it.
func (a *attempt) parameters() ([]byte, error) {
	if a.ParamsAt != 0 {
		p, err := a.session.host.Payload(&a.ctx, a.shard, a.ParamsAt)
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
	if !errors.Is(cause, ErrFenced) && !errors.Is(cause, ErrDraining) { // a drain sees to it itself
		a.expectReturn()
	}
}

// timedOut starts the wait for the function to return. A context that nobody has used yet is made now, so that it ends
// at its deadline.
func (a *attempt) timedOut() {
	a.ctx.materialize()
	a.expectReturn()
}

// expectReturn records the attempt as over when the function goes on for too long although its context has ended: as
// failed after its time-out, and as given back where it was told to stop. Its slot stays taken.
func (a *attempt) expectReturn() {
	time.AfterFunc(Overdue, func() {
		if a.x.giveUp(a) {
			a.session.log.Warn("a function does not return although its context has ended: "+
				"its slot stays taken until it does",
				"task", a.Task, "behavior", a.Assignment.Behavior, "attempt", a.Number, "slots_so_held", a.x.Stuck())
			const why = "the function did not return after its context ended"
			out := task.Outcome{Err: &events.Error{Code: events.CodeFailed, Message: why}, Next: byPolicy}
			switch cause := context.Cause(&a.ctx); {
			case errors.Is(cause, errTimeout):
				out.Err = timedOut(out.Err)
				out = a.followed(out)
			case errors.Is(cause, task.ErrCancelled): // also where its work is suspended
				out.Release = true
			}
			a.report(out, true)
		}
	})
}
