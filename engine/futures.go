package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/awaited"
	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

const (
	// sweepEvery is the time between two looks at who should ask again.
	sweepEvery = time.Second
	// askAfter is how many sweeps a future waits for news before it asks again; doubled at each turn, up to askMost.
	askAfter = 5
	askMost  = 60
	// maxRecent is how many outcomes of a shard owned here are remembered for futures that come a moment too late.
	maxRecent = 1024
)

// futures resolves the futures of a client from whatever tells first: the owner in this process, a done message, the journal itself while
// there is no bus, or asking again. News are hints of when to resolve; what they say comes from a committed entry.
type futures struct {
	router    *router
	bus       store.Bus
	journal   store.Journal                                                 // nil without
	get       func(context.Context, events.TaskID) (projection.Task, error) // finds what is forgotten, too; nil without a store
	log       *slog.Logger
	ctx       context.Context // ends with the client's Run
	stop      context.CancelFunc
	shards    []futureShard
	resync    signal       // news may have been missed: everybody asks
	sweeps    atomic.Int64 // so far
	idle      sync.Pool    // waiters, to be used again; not of the process: a bubble of time must not share them
	callbacks sync.WaitGroup
	followers sync.WaitGroup
}

type futureShard struct {
	mu         sync.Mutex
	waiting    map[events.TaskID]*Future // a list for each task
	open       int                       // futures in these lists
	subscribed bool
	closed     bool
	follow     context.CancelFunc // of the journal's follower; nil when none runs

	here   bool // the owner is in this process, and has told everything after from
	from   events.Ref
	recent []outcome.Outcome  // a ring of the latest ones
	oldest int                // place in recent of the next one to be overwritten
	index  map[events.Ref]int // by life: place in recent of its latest
}

// askState is when a future asks next, in sweeps.
type askState struct{ next, wait int64 }

func newFutures(r *router, bus store.Bus, journal store.Journal, log *slog.Logger) *futures {
	f := &futures{router: r, bus: bus, journal: journal, log: log, shards: make([]futureShard, len(r.lanes)), resync: newSignal(), idle: sync.Pool{New: awaited.NewWaiter}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	for i := range f.shards {
		f.shards[i].waiting = map[events.TaskID]*Future{}
	}
	return f
}

// add registers a future, or returns the outcome if it is known here. Registering comes before asking, so that an
// outcome between the two is not missed. After close it fails with ErrClosed: nobody would ever tell the future.
func (fs *futures) add(f *Future) (known *outcome.Outcome, err error) {
	s := &fs.shards[f.shard]
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	covered := s.here && f.run != 0 && f.life >= s.from
	if covered {
		if o := s.recentLocked(f.life); o != nil {
			if o.Ends(f.run) && o.Ref >= f.since && !o.Elided {
				found := *o
				s.mu.Unlock()
				return &found, nil
			}
			covered = o.Ref < f.since || o.Run < f.run && !o.Rest && !o.Elided
		}
	}
	s.waiting[f.id], f.next = f, s.waiting[f.id]
	s.open++
	f.asks = askState{fs.sweeps.Load() + askAfter, askAfter}
	subscribe := !s.here && !s.subscribed && fs.bus != nil
	s.subscribed = s.subscribed || subscribe
	s.mu.Unlock()
	if subscribe {
		fs.subscribe(f.shard)
	}
	if !covered {
		fs.ask(f)
	}
	return nil, nil
}

func (fs *futures) subscribe(shard int) {
	err := fs.bus.Subscribe(fs.ctx, doneSubject(shard), "", func(m store.Message) {
		outcomes, err := outcome.Decode(m.Data)
		if err != nil {
			fs.log.Warn("done message cannot be read", "shard", shard, "err", err)
			return
		}
		fs.tell(shard, outcomes)
	})
	if err != nil {
		fs.log.Warn("no subscription to outcomes, futures will ask", "shard", shard, "err", err)
	}
}

func doneSubject(shard int) string { return "done." + strconv.Itoa(shard) }

func (fs *futures) remove(f *Future) {
	s := &fs.shards[f.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(f)
}

func (s *futureShard) dropLocked(f *Future) {
	first := s.waiting[f.id]
	if first == f {
		s.open--
		if f.next == nil {
			delete(s.waiting, f.id)
		} else {
			s.waiting[f.id] = f.next
		}
		f.next = nil
		return
	}
	for g := first; g != nil; g = g.next {
		if g.next == f {
			g.next, f.next = f.next, nil
			s.open--
			return
		}
	}
}

// told is a future and the outcome that resolves it; nil: it missed its own, and has to ask.
type told struct {
	future  *Future
	outcome *outcome.Outcome
}

// tell resolves the futures that the outcomes concern.
func (fs *futures) tell(shard int, outcomes []outcome.Outcome) {
	s := &fs.shards[shard]
	s.mu.Lock()
	all := s.hearLocked(outcomes)
	s.mu.Unlock()
	fs.pass(all)
}

// tellHere is tell by the owner in this process, which also remembers the outcomes for futures that come a moment later.
func (fs *futures) tellHere(shard int, outcomes []outcome.Outcome) {
	s := &fs.shards[shard]
	s.mu.Lock()
	if s.here {
		for i := range outcomes {
			s.rememberLocked(&outcomes[i])
		}
	}
	all := s.hearLocked(outcomes)
	s.mu.Unlock()
	fs.pass(all)
}

// hearLocked takes out the futures that the outcomes resolve, and finds those that have to ask: an outcome of a later run
// or life tells a future that it missed its own. So does the end of a life, but to those whose run it has ended.
func (s *futureShard) hearLocked(outcomes []outcome.Outcome) (all []told) {
	if len(s.waiting) == 0 {
		return nil
	}
	for i := range outcomes {
		o := &outcomes[i]
		for f := s.waiting[o.Task]; f != nil; {
			next := f.next
			switch {
			case f.run != 0 && (o.Life < f.life || o.Life == f.life && (o.Ref < f.since || o.Run < f.run && !o.Rest)):
			case f.run != 0 && o.Life == f.life && !o.Elided && o.Ends(f.run):
				s.dropLocked(f)
				all = append(all, told{f, o})
			default:
				all = append(all, told{f, nil})
			}
			f = next
		}
	}
	return all
}

func (fs *futures) pass(all []told) {
	for _, t := range all {
		if t.outcome == nil {
			fs.ask(t.future)
		} else {
			t.future.resolve(t.outcome.Value())
		}
	}
}

func (s *futureShard) rememberLocked(o *outcome.Outcome) {
	if at, again := s.index[o.Life]; again {
		s.from = max(s.from, s.recent[at].Ref+1) // an earlier outcome of the life is forgotten: it has to be asked for
		s.recent[at] = o.Inline()
		return
	}
	if len(s.recent) < maxRecent {
		s.index[o.Life] = len(s.recent)
		s.recent = append(s.recent, o.Inline())
		return
	}
	old := &s.recent[s.oldest]
	s.from = max(s.from, old.Ref+1)
	delete(s.index, old.Life)
	s.index[o.Life], *old = s.oldest, o.Inline()
	s.oldest = (s.oldest + 1) % maxRecent
}

func (s *futureShard) recentLocked(life events.Ref) *outcome.Outcome {
	if at, ok := s.index[life]; ok {
		return &s.recent[at]
	}
	return nil
}

// serveHere says that from now on the owner in this process tells every outcome of the shard; serveAway that it stopped.
func (fs *futures) serveHere(shard int, after store.Head) {
	s := &fs.shards[shard]
	s.mu.Lock()
	s.here, s.from = true, events.RefOf(after.Number+1, 0)
	s.recent, s.oldest, s.index = nil, 0, map[events.Ref]int{}
	s.mu.Unlock()
	fs.askAll(shard)
}

func (fs *futures) serveAway(shard int) {
	s := &fs.shards[shard]
	s.mu.Lock()
	subscribe := !s.subscribed && len(s.waiting) > 0 && fs.bus != nil
	s.here, s.recent, s.oldest, s.index = false, nil, 0, nil
	s.subscribed = s.subscribed || subscribe
	s.mu.Unlock()
	if subscribe {
		fs.subscribe(shard)
	}
	fs.askAll(shard)
}

// missed makes every future ask soon. It never blocks.
func (fs *futures) missed() {
	fs.resync.notify()
}

// askAll lets every future of a shard ask now: news may have been missed.
func (fs *futures) askAll(shard int) {
	for _, f := range fs.due(shard, math.MaxInt64) {
		fs.ask(f)
	}
}

// due returns the futures of a shard that should ask by the given sweep and puts off their next question.
func (fs *futures) due(shard int, sweep int64) (all []*Future) {
	s := &fs.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.waiting {
		for ; f != nil; f = f.next {
			if f.asks.next <= sweep {
				f.asks.wait = min(2*f.asks.wait, askMost)
				f.asks.next = fs.sweeps.Load() + f.asks.wait
				all = append(all, f)
			}
		}
	}
	return all
}

// ask asks the owner for the outcome, one question at a time. Questions that come together travel together.
func (fs *futures) ask(f *Future) {
	s := &fs.shards[f.shard]
	s.mu.Lock()
	if f.asking {
		f.again = true
		s.mu.Unlock()
		return
	}
	f.asking = true
	question := &command.Await{Task: f.id, Life: f.life, Run: uint64(f.run)}
	s.mu.Unlock()
	told := callback(func(a command.Answer, err error) {
		s.mu.Lock()
		again := f.again
		f.asking, f.again = false, false
		s.mu.Unlock()
		if err != nil {
			if fs.router.closed.Load() {
				fs.remove(f)
				f.resolve(nil, ErrClosed)
			}
			return // the sweep asks again
		}
		fs.hear(f, a)
		if again && !f.settled() {
			fs.ask(f)
		}
	})
	fs.router.sendCall(f.shard, command.LaneQuery, call{command: question, caller: told, awaits: true})
}

// hear takes the answer to a question: the outcome, or which run to wait for.
func (fs *futures) hear(f *Future, a command.Answer) {
	switch {
	case a.Code == command.AnswerNotFound && f.life == 0 && fs.get != nil:
		fs.recall(f)
	case a.Code == command.AnswerNotFound:
		fs.remove(f)
		f.resolve(nil, fmt.Errorf("task %s: %w", f.id, ErrNotFound))
	case a.Code == command.AnswerStoreFull: // a full store heals
		s := &fs.shards[f.shard]
		s.mu.Lock()
		f.asks = askState{fs.sweeps.Load() + 1, 1}
		s.mu.Unlock()
	case a.Code == command.AnswerUnserved && fs.promised(f): // once the shard is served again it ends as ever
	case a.Code != command.AnswerOK:
		fs.remove(f)
		f.resolve(nil, a.Err(f.id))
	case a.Data != nil:
		outcomes, err := outcome.Decode(a.Data)
		if err != nil || len(outcomes) != 1 {
			fs.log.Warn("outcome cannot be read", "task", f.id, "err", err)
			return
		}
		fs.remove(f)
		f.resolve(outcomes[0].Value())
	default:
		s := &fs.shards[f.shard]
		s.mu.Lock()
		next := uint64(a.Number) + 1
		f.life, f.run, f.since = a.Life, a.Run, events.RefOf(next, 0)
		s.mu.Unlock()
		fs.followJournal(f.shard, next)
	}
}

// recall looks for the last life of a task that its owner does not know, or no longer, as GetForgotten does.
func (fs *futures) recall(f *Future) {
	s := &fs.shards[f.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || f.recalling {
		return
	}
	f.recalling = true
	fs.callbacks.Go(func() {
		t, err := fs.get(fs.ctx, f.id)
		s.mu.Lock()
		f.recalling = false
		s.mu.Unlock()
		switch {
		case err == nil && !t.Forgotten: // it has been submitted meanwhile
			fs.ask(f)
			return
		case err == nil:
			o := outcome.OfLast(&t)
			fs.remove(f)
			f.resolve(o.Value())
			return
		case errors.Is(err, store.ErrTrimmed):
			err = fmt.Errorf("%w: %w", task.ErrNotKept, err)
		case fs.ctx.Err() != nil: // and so do those who wait
			return
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, events.ErrDamaged):
			fs.log.WarnContext(fs.ctx, "a future waits for the journal or the archive", "task", f.id, "err", err)
			return // the sweep asks again
		}
		fs.remove(f)
		f.resolve(nil, err)
	})
}

// promised reports whether the future's run is known to exist.
func (fs *futures) promised(f *Future) bool {
	s := &fs.shards[f.shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.run != 0
}

// sweep lets futures ask whose patience is over, until ctx ends.
func (fs *futures) sweep(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			fs.stop()
			fs.followers.Wait()
			return nil
		case <-fs.resync:
			for shard := range fs.shards {
				fs.askAll(shard)
			}
		case <-ticker.C:
			sweep := fs.sweeps.Add(1)
			for shard := range fs.shards {
				for _, f := range fs.due(shard, sweep) {
					fs.ask(f)
				}
				fs.endFollow(shard)
			}
		}
	}
}

// close resolves every future with ErrClosed and waits for the callbacks.
func (fs *futures) close() {
	for i := range fs.shards {
		s := &fs.shards[i]
		s.mu.Lock()
		var all []*Future
		for _, f := range s.waiting {
			for ; f != nil; f = f.next {
				all = append(all, f)
			}
		}
		s.waiting, s.open, s.closed = map[events.TaskID]*Future{}, 0, true
		s.mu.Unlock()
		for _, f := range all {
			f.resolve(nil, ErrClosed)
		}
	}
	fs.stop()
	fs.callbacks.Wait()
}
