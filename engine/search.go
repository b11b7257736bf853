package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

const (
	// maxSearches is how many looks into the journal an owner takes at once, or keeps the answers of.
	maxSearches = 8
	// keepFound is how long an answer is kept for who was told to ask again, and has not yet.
	keepFound = 10 * time.Second
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
	told   signal        // signalled when nobody is left who was told to ask again
	ended  bool
	answer answer
	owed   int // were told to ask again, and have not yet
}

func newSearches() *searches {
	return &searches{under: map[any]*search{}, slots: make(chan struct{}, maxSearches)}
}

// find looks for something, alone for all who do. When ctx ends before there is an answer it has to be asked again.
func (o *owner) find(ctx context.Context, key any, look func(context.Context) answer) answer {
	s := o.searches.join(key)
	if s == nil {
		select {
		case o.searches.slots <- struct{}{}:
		case <-ctx.Done():
			return answer{code: answerTryAgain}
		}
		s = o.begin(key, look)
	}
	select {
	case <-s.found:
	case <-ctx.Done():
	}
	a := o.searches.leave(s)
	if a.code == answerTryAgain {
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
	if s != nil && s.owed > 0 {
		s.owed--
		s.tellLocked()
	}
	return s
}

// leave takes what was found until now.
func (all *searches) leave(s *search) answer {
	all.mu.Lock()
	defer all.mu.Unlock()
	if !s.ended {
		s.owed++
		return answer{code: answerTryAgain}
	}
	return s.answer
}

func (all *searches) end(s *search, a answer) {
	all.mu.Lock()
	defer all.mu.Unlock()
	s.ended, s.answer = true, a
	if a.code == answerTryAgain {
		s.owed = 0
	}
	close(s.found)
	s.tellLocked()
}

func (s *search) tellLocked() {
	if s.ended && s.owed == 0 {
		s.told.notify()
	}
}

// begin begins a search in a slot that was taken for it, unless somebody has meanwhile. It ends with the owner.
func (o *owner) begin(key any, look func(context.Context) answer) *search {
	all := o.searches
	all.mu.Lock()
	defer all.mu.Unlock()
	if s := all.joinLocked(key); s != nil {
		<-all.slots
		return s
	}
	s := &search{found: make(chan struct{}), told: newSignal()}
	all.under[key] = s
	o.m.spawn(func(ctx context.Context) {
		ctx, cancel := o.untilStopped(ctx)
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
		delete(all.under, key)
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
func (o *owner) searchBack(ctx context.Context, t *projection.Task, run uint32) answer {
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
				out.run, ends = ended, true
			}
		case *events.Started:
			attempt, dropped = b.Attempt-1, false
		}
		if ends && out.run == run {
			out.attempt = attempt
			return outcomeAnswer(out)
		}
		if ends {
			ended, dropped = out.run-1, false
		}
		ref = ev.Prev
	}
	return answer{code: answerNotFound}
}

// searchForward reads the journal from the beginning of a life that is no longer in memory to the end of the run, or of the
// life. A run that the life has ended without is told of as memory did.
func (o *owner) searchForward(ctx context.Context, c *awaitCommand) answer {
	var attempt uint32
	var promised *outcome // a failure whose retry is to come
	var last outcome      // of a run that has ended
	due := false          // a run is due or under way
	over := false         // another life follows
read:
	for rec, err := range o.m.reader.Read(ctx, o.ownership.Shard, c.Life.Entry()) {
		if err != nil {
			return o.unread(ctx, err)
		}
		e, err := events.Decode(rec.Data)
		if err != nil {
			return refused(answerInvalid, "%v", err)
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
				if due = b.At != 0; b.At == 0 && promised != nil && promised.run == 0 {
					out, ends = *promised, true
					out.run = last.run + 1
				}
			}
			out.attempt = attempt
			if ends && out.status == 0 && !due && last.run != 0 { // it has ended no run
				out = last
				out.end()
				return outcomeAnswer(out)
			}
			if ends && (uint64(out.run) >= c.Run || out.status == 0) {
				return outcomeAnswer(out)
			}
			if ends {
				last = out
			}
		}
	}
	if !over && o.stillOwner(ctx) != nil { // there may be more of it
		return answer{code: answerTryAgain}
	}
	if last.run == 0 {
		return answer{code: answerNotFound}
	}
	last.end()
	return outcomeAnswer(last)
}

// unread answers for an outcome that could not be read.
func (o *owner) unread(ctx context.Context, err error) answer {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, store.ErrTrimmed):
		return answer{code: answerNotKept}
	case errors.Is(err, events.ErrDamaged):
		return refused(answerInvalid, "%v", err)
	}
	if ctx.Err() == nil {
		o.log.WarnContext(ctx, "a question waits for the journal or the archive", "err", err)
	}
	return answer{code: answerTryAgain}
}

// endOfRun reads the outcome from an event alone. It does not see that a retry which was promised is taken away, by a
// Rescheduled to never: then the failure before it was the end of the run.
func endOfRun(ev *events.Event, life events.Ref) (outcome, bool) {
	o := outcome{task: ev.Task, life: life, ref: ev.Position.Ref, at: ev.At}
	switch b := ev.Body.(type) {
	case *events.Succeeded:
		o.status, o.result, o.run = projection.Success, b.Result, b.Run
		return o, true
	case *events.Failed:
		o.status, o.err, o.run = projection.Failure, &b.Error, b.Run
		return o, b.Run != 0
	case *events.Deleted:
		return o, true
	}
	return o, false
}
