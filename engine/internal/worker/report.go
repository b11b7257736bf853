package worker

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// report sends the outcome to the owner, once. ended reports that the context had ended before the function returned.
func (a *attempt) report(out task.Outcome, ended bool) {
	if !a.reported.CompareAndSwap(false, true) {
		return
	}
	a.endLog()
	cause := context.Cause(&a.ctx)
	if errors.Is(cause, ErrFenced) || a.session.ctx.Err() != nil { // the session has ended, and its attempts are lost
		a.x.forget(a)
		return
	}
	a.stopProgress()
	c := &a.outcome
	*c = command.Complete{
		Task:    a.Task,
		Started: a.Started,
		Node:    a.session.ID,
		Random:  rand.Uint32(),
	}
	switch {
	case ended && out.Err != nil && errors.Is(cause, ErrDraining):
		c.How = command.Released
	case out.Release:
		c.How = command.Released
		if out.Err != nil { // of a function that did not return
			e := out.Err.Fit()
			c.Error = &e
		}
		reportNext(c, task.Outcome{Wait: max(out.Wait, time.Nanosecond)})
	case out.Snooze > 0:
		c.How, c.Wait = command.Snoozed, out.Snooze
	case out.Err != nil:
		if out.Unread && a.session.host.TypesDiffer(a.Assignment.Behavior) {
			out.Next = byPolicy
		}
		reportFailure(c, out, ended && errors.Is(cause, errTimeout))
	default:
		reportSuccess(c, out)
	}
	a.x.cfg.Sender.Later(a.shard, c, a)
	if !a.x.leaveToWorker(a.shard) {
		a.x.cfg.Sender.Flush(a.shard, command.LaneWork)
	}
}

// Answered implements sender.Waiter: it learns what became of the outcome. One that can never be recorded is
// replaced by a failure that says so: the attempt would only be made again, and come to the same.
func (a *attempt) Answered(ans command.Answer, err error) {
	if err == nil {
		err = ans.Err(a.Task)
	}
	_, invalid := errors.AsType[*store.InvalidError](err)
	_, large := errors.AsType[*task.LimitError](err)
	never := invalid || large || ans.Code == command.AnswerBug
	switch {
	case err == nil:
	case ans.Code == command.AnswerStale:
		a.session.log.Info("late outcome refused", "task", a.Task, "attempt", a.Started)
	case never && !a.rejected:
		a.session.log.Error("outcome refused: the attempt fails", "task", a.Task, "attempt", a.Started, "err", err)
		a.rejected = true
		failed := events.Error{Code: events.CodeRejected, Message: err.Error()}.Fit()
		a.x.cfg.Sender.Later(a.shard, &command.Complete{
			Task:    a.Task,
			Started: a.Started,
			Node:    a.session.ID,
			How:     command.Failed,
			Error:   &failed,
		}, a)
		a.x.cfg.Sender.Flush(a.shard, command.LaneWork)
		return
	case ans.Code != command.AnswerOK:
		a.session.log.Error("outcome refused", "task", a.Task, "attempt", a.Started, "err", err)
	default:
		a.session.log.Warn("outcome may not be recorded", "task", a.Task, "attempt", a.Started, "err", err)
	}
	a.x.forget(a)
}

func reportSuccess(c *command.Complete, out task.Outcome) {
	if len(out.Result) > events.MaxPayloadBytes {
		why := &task.LimitError{Field: "result", Limit: events.MaxPayloadBytes, Got: int64(len(out.Result))}
		c.How, c.Error = command.Failed, &events.Error{Code: events.CodeRejected, Message: why.Error()}
		return
	}
	c.How, c.Result = command.Succeeded, events.JSON(out.Result)
	reportNext(c, out)
}

func reportFailure(c *command.Complete, out task.Outcome, late bool) {
	e := out.Err.Fit()
	if late {
		e = *timedOut(&e)
	}
	c.How, c.Error = command.Failed, &e
	if c.ByPolicy = out.Next.Equal(byPolicy); !c.ByPolicy {
		reportNext(c, out)
	}
}

// timedOut returns the failure of an attempt that ended after its time-out.
func timedOut(e *events.Error) *events.Error {
	if e.Code == events.CodeTimeout && strings.HasPrefix(e.Message, errTimeout.Error()) { // it is so already
		return e
	}
	// Most functions return the cause.
	message := strings.TrimSuffix(errTimeout.Error()+": "+e.Message, ": "+errTimeout.Error())
	fit := events.Error{Code: events.CodeTimeout, Message: message, Retryable: true}.Fit()
	return &fit
}

// reportNext fills in the run that follows, if any. The owner's time may be ahead of every wall clock: a time of day
// alone would then be past, again and again.
func reportNext(c *command.Complete, out task.Outcome) {
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
