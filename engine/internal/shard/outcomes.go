package shard

import (
	"context"
	"errors"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// searchBack follows a task's events back to the end of a run.
func (r *Loader) searchBack(ctx context.Context, shard int, t *projection.Task, run uint32) command.Answer {
	attempt, ended := t.Attempt, t.Runs // after the event that is looked at
	dropped := false                    // the retry that was promised before
	for ref := t.Last; ref != 0; {
		ev, err := r.Reader.Event(ctx, shard, ref)
		if err != nil {
			return r.unread(ctx, err)
		}
		out, ends := endOfRun(ev, t.Created)
		switch b := ev.Body.(type) {
		case *events.Rescheduled:
			dropped = dropped || b.At == 0
		case *events.Failed:
			if !ends && dropped {
				out.Run, ends = ended, true
			}
		case *events.Started:
			attempt, dropped = b.Attempt-1, false
		}
		if ends && out.Run == run {
			out.Attempt = attempt
			return outcomeAnswer(out)
		}
		if ends {
			ended, dropped = out.Run-1, false
		}
		ref = ev.Prev
	}
	return command.Answer{Code: command.AnswerNotFound}
}

// searchForward reads the journal from the beginning of a life that is no longer in memory to the end of the run,
// or of the life. A run that the life has ended without is told of as memory did.
func (r *Loader) searchForward(
	ctx context.Context,
	shard int,
	c *command.Await,
	proof func(context.Context) error,
) command.Answer {
	var attempt uint32
	var promised *outcome.Outcome // a failure whose retry is to come
	var last outcome.Outcome      // of a run that has ended
	due := false                  // a run is due or under way
	over := false                 // another life follows
read:
	for rec, err := range r.Reader.Read(ctx, shard, c.Life.Entry()) {
		if err != nil {
			return r.unread(ctx, err)
		}
		e, err := events.Decode(rec.Data)
		if err != nil {
			return command.Refused(command.AnswerInvalid, "%v", err)
		}
		for i := range e.Events {
			ev := &e.Events[i]
			if ev.Task != c.Task || ev.Position.Ref < c.Life {
				continue
			}
			out, ends := endOfRun(ev, c.Life)
			switch b := ev.Body.(type) {
			case *events.Created:
				if over = ev.Position.Ref != c.Life; over {
					break read
				}
				due = true
			case *events.Started:
				attempt, promised, due = b.Attempt, nil, true
			case *events.Succeeded:
				due = b.Next != 0
			case *events.Failed:
				promised, due = &out, b.Next != 0
			case *events.Rescheduled:
				if due = b.At != 0; b.At == 0 && promised != nil && promised.Run == 0 {
					out, ends = *promised, true
					out.Run = last.Run + 1
				}
			}
			out.Attempt = attempt
			if ends && out.Status == 0 && !due && last.Run != 0 { // it has ended no run
				out = last
				out.End()
				return outcomeAnswer(out)
			}
			if ends && (uint64(out.Run) >= c.Run || out.Status == 0) {
				return outcomeAnswer(out)
			}
			if ends {
				last = out
			}
		}
	}
	if !over && proof(ctx) != nil { // there may be more of it
		return command.Answer{Code: command.AnswerTryAgain}
	}
	if last.Run == 0 {
		return command.Answer{Code: command.AnswerNotFound}
	}
	last.End()
	return outcomeAnswer(last)
}

// unread answers for an outcome that could not be read.
func (r *Loader) unread(ctx context.Context, err error) command.Answer {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, store.ErrTrimmed):
		return command.Answer{Code: command.AnswerNotKept}
	case errors.Is(err, events.ErrDamaged):
		return command.Refused(command.AnswerInvalid, "%v", err)
	}
	if ctx.Err() == nil {
		r.Log.WarnContext(ctx, "a question waits for the journal or the archive", "err", err)
	}
	return command.Answer{Code: command.AnswerTryAgain}
}

// endOfRun reads the outcome from an event alone. It does not see that a retry which was promised is taken away, by a
// Rescheduled to never: then the failure before it was the end of the run.
func endOfRun(ev *events.Event, life events.Ref) (outcome.Outcome, bool) {
	o := outcome.Outcome{
		Task: ev.Task,
		Life: life,
		Ref:  ev.Position.Ref,
		At:   ev.At,
	}
	switch b := ev.Body.(type) {
	case *events.Succeeded:
		o.Status, o.Result, o.Run = task.Success, b.Result, b.Run
		return o, true
	case *events.Failed:
		o.Status, o.Err, o.Run = task.Failure, &b.Error, b.Run
		return o, b.Run != 0
	case *events.Deleted:
		return o, true
	}
	return o, false
}

// outcomeAnswer returns the answer that carries an outcome.
func outcomeAnswer(o outcome.Outcome) command.Answer {
	var w wire.Writer
	w.Array(1)
	o.Encode(&w, events.MaxPayloadBytes+1)
	return command.Answer{Life: o.Life, Run: o.Run, Data: w.B}
}
