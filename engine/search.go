package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/engine/internal/signal"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

const (
	// maxSearches is how many looks into the journal an owner takes at once, or keeps the answers of.
	maxSearches = 8
	// keepFound is how long an answer is kept for who was told to ask again, and has not yet.
	keepFound = 10 * time.Second
	// askedAgain is within what time whoever was told to ask again does: a search that nobody asks for any longer
	// gives its place to another.
	askedAgain = 2 * readAgain
)

// searches are the looks of an owner into its journal and archive. They may take longer than those who ask can wait: what is
// found then is told when they ask again.
type searches struct {
	mu    sync.Mutex
	under map[any]*search // what is looked for -> the look
	slots chan struct{}   // taken by what is in under
}

type search struct {
	found  chan struct{} // closed when there is an answer
	told   signal.Signal // signalled when nobody is left who was told to ask again
	ended  bool
	answer command.Answer
	owed   int       // were told to ask again, and have not yet
	here   int       // wait for the answer now
	left   time.Time // when the last of them went
	cancel context.CancelFunc
}

func newSearches() *searches {
	return &searches{under: map[any]*search{}, slots: make(chan struct{}, maxSearches)}
}

// find looks for something, alone for all who do. When ctx ends before there is an answer it has to be asked again.
func (o *owner) find(ctx context.Context, key any, look func(context.Context) command.Answer) command.Answer {
	s := o.searches.join(key)
	if s == nil {
		if len(o.searches.slots) == maxSearches {
			o.searches.displace()
		}
		select {
		case o.searches.slots <- struct{}{}:
		case <-ctx.Done():
			return command.Answer{Code: command.AnswerTryAgain}
		}
		s = o.begin(key, look)
	}
	select {
	case <-s.found:
	case <-ctx.Done():
	}
	a := o.searches.leave(s)
	if a.Code == command.AnswerTryAgain {
		return tryLater(ctx)
	}
	return a
}

// join finds a search that has begun.
func (all *searches) join(key any) *search {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.joinLocked(key)
}

func (all *searches) joinLocked(key any) *search {
	s := all.under[key]
	if s == nil {
		return nil
	}
	s.here++
	if s.owed > 0 {
		s.owed--
		s.tellLocked()
	}
	return s
}

// displace ends the search whose askers have been gone for longest, and for so long that they will not come back.
func (all *searches) displace() {
	all.mu.Lock()
	defer all.mu.Unlock()
	var gone any
	for key, s := range all.under {
		if s.here == 0 && time.Since(s.left) >= askedAgain && (gone == nil || s.left.Before(all.under[gone].left)) {
			gone = key
		}
	}
	if gone != nil {
		all.under[gone].cancel()
		delete(all.under, gone)
	}
}

// leave takes what was found until now.
func (all *searches) leave(s *search) command.Answer {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.here--
	s.left = time.Now()
	if !s.ended {
		s.owed++
		return command.Answer{Code: command.AnswerTryAgain}
	}
	return s.answer
}

func (all *searches) end(s *search, a command.Answer) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.ended, s.answer = true, a
	if a.Code == command.AnswerTryAgain {
		s.owed = 0
	}
	close(s.found)
	s.tellLocked()
}

func (s *search) tellLocked() {
	if s.ended && s.owed == 0 {
		s.told.Notify()
	}
}

// begin begins a search in a slot that was taken for it, unless somebody has meanwhile. It ends with the owner.
func (o *owner) begin(key any, look func(context.Context) command.Answer) *search {
	all := o.searches
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.joinLocked(key); s != nil {
		<-all.slots
		return s
	}
	s := &search{found: make(chan struct{}), told: signal.New(), here: 1}
	var displaced context.Context
	displaced, s.cancel = context.WithCancel(o.m.ctx)
	all.under[key] = s
	o.m.spawn(func(context.Context) {
		defer s.cancel()
		ctx, cancel := o.untilStopped(displaced)
		defer cancel()
		all.end(s, look(ctx))
		kept := time.NewTimer(keepFound)
		defer kept.Stop()
		select {
		case <-s.told:
		case <-kept.C:
		case <-ctx.Done():
		}
		all.mu.Lock()
		if all.under[key] == s {
			delete(all.under, key)
		}
		all.mu.Unlock()
		<-all.slots
	})
	return s
}

// untilStopped returns a context that ends with the owner, too.
func (o *owner) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	o.m.spawn(func(context.Context) {
		defer cancel()
		select {
		case <-o.stopped:
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// searchBack follows a task's events back to the end of a run.
func (o *owner) searchBack(ctx context.Context, t *projection.Task, run uint32) command.Answer {
	attempt, ended := t.Attempt, t.Runs // after the event that is looked at
	dropped := false                    // the retry that was promised before
	for ref := t.Last; ref != 0; {
		ev, err := o.m.reader.Event(ctx, o.ownership.Shard, ref)
		if err != nil {
			return o.unread(ctx, err)
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

// searchForward reads the journal from the beginning of a life that is no longer in memory to the end of the run, or of the
// life. A run that the life has ended without is told of as memory did.
func (o *owner) searchForward(ctx context.Context, c *command.Await) command.Answer {
	var attempt uint32
	var promised *outcome.Outcome // a failure whose retry is to come
	var last outcome.Outcome      // of a run that has ended
	due := false                  // a run is due or under way
	over := false                 // another life follows
read:
	for rec, err := range o.m.reader.Read(ctx, o.ownership.Shard, c.Life.Entry()) {
		if err != nil {
			return o.unread(ctx, err)
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
	if !over && o.stillOwner(ctx) != nil { // there may be more of it
		return command.Answer{Code: command.AnswerTryAgain}
	}
	if last.Run == 0 {
		return command.Answer{Code: command.AnswerNotFound}
	}
	last.End()
	return outcomeAnswer(last)
}

// unread answers for an outcome that could not be read.
func (o *owner) unread(ctx context.Context, err error) command.Answer {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, store.ErrTrimmed):
		return command.Answer{Code: command.AnswerNotKept}
	case errors.Is(err, events.ErrDamaged):
		return command.Refused(command.AnswerInvalid, "%v", err)
	}
	if ctx.Err() == nil {
		o.log.WarnContext(ctx, "a question waits for the journal or the archive", "err", err)
	}
	return command.Answer{Code: command.AnswerTryAgain}
}

// endOfRun reads the outcome from an event alone. It does not see that a retry which was promised is taken away, by a
// Rescheduled to never: then the failure before it was the end of the run.
func endOfRun(ev *events.Event, life events.Ref) (outcome.Outcome, bool) {
	o := outcome.Outcome{Task: ev.Task, Life: life, Ref: ev.Position.Ref, At: ev.At}
	switch b := ev.Body.(type) {
	case *events.Succeeded:
		o.Status, o.Result, o.Run = projection.Success, b.Result, b.Run
		return o, true
	case *events.Failed:
		o.Status, o.Err, o.Run = projection.Failure, &b.Error, b.Run
		return o, b.Run != 0
	case *events.Deleted:
		return o, true
	}
	return o, false
}
