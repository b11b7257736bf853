// Package futures resolves the futures of a process by whatever reports first: the owner in this process, a done
// message over the bus, the journal itself while there is no bus, or an answer to a question. All but the answer
// are notifications of when to resolve; the outcome is always that of a committed entry.
package futures

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

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/outcome"
	"taskledger/engine/internal/signal"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

const (
	// sweepEvery is the time between two sweeps of the futures, for those that should ask again.
	sweepEvery = time.Second
	// askAfter is the number of sweeps that a future waits for a notification before it asks again. It doubles each
	// time, up to askMost.
	askAfter = 5
	askMost  = 60
	// maxRecent bounds the outcomes of a shard owned here that are remembered for futures which come a moment too
	// late.
	maxRecent = 1024
)

// Sender asks the owners of shards.
type Sender interface {
	// Inquire sends a question. Its answer may take days, while no node is alive.
	Inquire(shard int, question command.Command, answered func(command.Answer, error))
	// BusAway reports whether notifications of a shard cannot be expected over the bus.
	BusAway(shard int) bool
	// Closed reports whether nothing is answered any more.
	Closed() bool
}

// Config configures a registry.
type Config struct {
	Sender  Sender
	Shards  int
	Bus     store.Bus     // nil without
	Journal store.Journal // nil: none is followed while the bus is away
	Log     *slog.Logger
	// Recall finds a task that its owner has forgotten; nil: none is found.
	Recall func(context.Context, events.TaskID) (projection.Task, error)
}

// Registry resolves the futures of a process. Its methods may be called concurrently.
type Registry struct {
	cfg       Config
	ctx       context.Context // ends with Run
	stop      context.CancelFunc
	shards    []shardState
	resync    signal.Signal // a notification may have been missed: every future asks
	sweeps    atomic.Int64  // so far
	idle      sync.Pool     // waiters, not of the process: a bubble of time must not share them
	callbacks sync.WaitGroup
	followers sync.WaitGroup
	closedFor atomic.Pointer[error] // set before the first shard is closed
}

type shardState struct {
	mu         sync.Mutex
	waiting    map[events.TaskID]*Future // a list for each task
	open       int                       // futures in these lists
	subscribed bool
	closed     bool
	follow     context.CancelFunc // ends the follower of the journal; nil when none runs

	here   bool // the owner is in this process, and has reported everything after from
	from   events.Ref
	recent []outcome.Outcome  // a ring of the latest ones
	oldest int                // place in recent of the next one to be overwritten
	index  map[events.Ref]int // by life: place in recent of its latest
}

// askState holds when a future asks next, in sweeps.
type askState struct{ next, wait int64 }

// New returns a registry without futures.
func New(cfg Config) *Registry {
	r := &Registry{
		cfg:    cfg,
		shards: make([]shardState, cfg.Shards),
		resync: signal.New(),
		idle:   sync.Pool{New: newWaiter},
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	for i := range r.shards {
		r.shards[i].waiting = map[events.TaskID]*Future{}
	}
	return r
}

// Open returns how many futures are watched and not resolved.
func (r *Registry) Open() (n int) {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		n += s.open
		s.mu.Unlock()
	}
	return n
}

// add registers a future, or returns the outcome if it is known here. Registering comes before asking, so that an
// outcome between the two is not missed. After close it fails with task.ErrClosed: nothing would resolve the future.
func (r *Registry) add(f *Future) (known *outcome.Outcome, err error) {
	s := &r.shards[f.run.Shard]
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, *r.closedFor.Load()
	}
	covered := s.here && f.run.Number != 0 && f.run.Life >= s.from
	if covered {
		if o := s.recentLocked(f.run.Life); o != nil {
			if o.Ends(f.run.Number) && o.Ref >= f.run.Since && !o.Elided {
				found := *o
				s.mu.Unlock()
				return &found, nil
			}
			covered = o.Ref < f.run.Since || o.Run < f.run.Number && !o.Rest && !o.Elided
		}
	}
	s.waiting[f.run.Task], f.next = f, s.waiting[f.run.Task]
	s.open++
	f.asks = askState{r.sweeps.Load() + askAfter, askAfter}
	subscribe := !s.here && !s.subscribed && r.cfg.Bus != nil
	s.subscribed = s.subscribed || subscribe
	s.mu.Unlock()
	if subscribe {
		r.subscribe(f.run.Shard)
	}
	if !covered {
		r.ask(f)
	}
	return nil, nil
}

func (r *Registry) subscribe(shard int) {
	err := r.cfg.Bus.Subscribe(r.ctx, Subject(shard), "", func(m store.Message) {
		outcomes, err := outcome.Decode(m.Data)
		if err != nil {
			r.cfg.Log.Warn("done message cannot be read", "shard", shard, "err", err)
			return
		}
		r.deliver(shard, outcomes)
	})
	if err != nil {
		r.cfg.Log.Warn("no subscription to outcomes, futures will ask", "shard", shard, "err", err)
	}
}

// Subject returns the subject of done messages of a shard.
func Subject(shard int) string { return "done." + strconv.Itoa(shard) }

func (r *Registry) remove(f *Future) {
	s := &r.shards[f.run.Shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked(f)
}

func (s *shardState) dropLocked(f *Future) {
	first := s.waiting[f.run.Task]
	if first == f {
		s.open--
		if f.next == nil {
			delete(s.waiting, f.run.Task)
		} else {
			s.waiting[f.run.Task] = f.next
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

// concern is a future and the outcome that resolves it; nil: it has missed its own, and has to ask.
type concern struct {
	future  *Future
	outcome *outcome.Outcome
}

// deliver resolves the futures that the outcomes concern.
func (r *Registry) deliver(shard int, outcomes []outcome.Outcome) {
	s := &r.shards[shard]
	s.mu.Lock()
	all := s.concernedLocked(outcomes)
	s.mu.Unlock()
	r.settle(all)
}

// Report is deliver by the owner in this process. The outcomes are also remembered for futures that come a moment
// later.
func (r *Registry) Report(shard int, outcomes []outcome.Outcome) {
	s := &r.shards[shard]
	s.mu.Lock()
	if s.here {
		for i := range outcomes {
			s.rememberLocked(&outcomes[i])
		}
	}
	all := s.concernedLocked(outcomes)
	s.mu.Unlock()
	r.settle(all)
}

// concernedLocked takes out the futures that the outcomes resolve, and finds those that have to ask: after an
// outcome of a later run or life a future has missed its own. So it has after the end of a life, unless that has
// ended its run.
func (s *shardState) concernedLocked(outcomes []outcome.Outcome) (all []concern) {
	if len(s.waiting) == 0 {
		return nil
	}
	for i := range outcomes {
		o := &outcomes[i]
		for f := s.waiting[o.Task]; f != nil; {
			next := f.next
			switch {
			case f.run.Number != 0 &&
				(o.Life < f.run.Life ||
					o.Life == f.run.Life && (o.Ref < f.run.Since || o.Run < f.run.Number && !o.Rest)):
			case f.run.Number != 0 && o.Life == f.run.Life && !o.Elided && o.Ends(f.run.Number):
				s.dropLocked(f)
				all = append(all, concern{f, o})
			default:
				all = append(all, concern{f, nil})
			}
			f = next
		}
	}
	return all
}

func (r *Registry) settle(all []concern) {
	for _, t := range all {
		if t.outcome == nil {
			r.ask(t.future)
		} else {
			t.future.resolve(t.outcome.Value())
		}
	}
}

func (s *shardState) rememberLocked(o *outcome.Outcome) {
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

func (s *shardState) recentLocked(life events.Ref) *outcome.Outcome {
	if at, ok := s.index[life]; ok {
		return &s.recent[at]
	}
	return nil
}

// ServeHere notes that from now on the owner in this process reports every outcome of the shard; ServeAway that it
// has stopped.
func (r *Registry) ServeHere(shard int, after store.Head) {
	s := &r.shards[shard]
	s.mu.Lock()
	s.here, s.from = true, events.RefOf(after.Number+1, 0)
	s.recent, s.oldest, s.index = nil, 0, map[events.Ref]int{}
	s.mu.Unlock()
	r.AskAll(shard)
}

func (r *Registry) ServeAway(shard int) {
	s := &r.shards[shard]
	s.mu.Lock()
	subscribe := !s.subscribed && len(s.waiting) > 0 && r.cfg.Bus != nil
	s.here, s.recent, s.oldest, s.index = false, nil, 0, nil
	s.subscribed = s.subscribed || subscribe
	s.mu.Unlock()
	if subscribe {
		r.subscribe(shard)
	}
	r.AskAll(shard)
}

// Missed makes every future ask soon: a notification may have been missed. It never blocks.
func (r *Registry) Missed() {
	r.resync.Notify()
}

// AskAll makes every future of a shard ask now: a notification may have been missed.
func (r *Registry) AskAll(shard int) {
	for _, f := range r.due(shard, math.MaxInt64) {
		r.ask(f)
	}
}

// due returns the futures of a shard that should ask by the given sweep and puts off their next question.
func (r *Registry) due(shard int, sweep int64) (all []*Future) {
	s := &r.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.waiting {
		for ; f != nil; f = f.next {
			if f.asks.next <= sweep {
				f.asks.wait = min(2*f.asks.wait, askMost)
				f.asks.next = r.sweeps.Load() + f.asks.wait
				all = append(all, f)
			}
		}
	}
	return all
}

// ask asks the owner for the outcome, one question at a time. Questions that come together travel together.
func (r *Registry) ask(f *Future) {
	s := &r.shards[f.run.Shard]
	s.mu.Lock()
	if f.asking {
		f.askAgain = true
		s.mu.Unlock()
		return
	}
	f.asking = true
	question := &command.Await{Task: f.run.Task, Life: f.run.Life, Run: uint64(f.run.Number)}
	s.mu.Unlock()
	r.cfg.Sender.Inquire(f.run.Shard, question, func(a command.Answer, err error) {
		s.mu.Lock()
		again := f.askAgain
		f.asking, f.askAgain = false, false
		s.mu.Unlock()
		if err != nil {
			if r.cfg.Sender.Closed() && !errors.Is(err, store.ErrBroken) { // else CloseFor tells why
				r.remove(f)
				f.resolve(nil, task.ErrClosed)
			}
			return // the sweep asks again
		}
		r.answered(f, a)
		if again && !f.value.resolved() {
			r.ask(f)
		}
	})
}

// answered takes the answer to a question: the outcome, or which run to wait for.
func (r *Registry) answered(f *Future, a command.Answer) {
	switch {
	case a.Code == command.AnswerNotFound && f.run.Life == 0 && r.cfg.Recall != nil:
		r.recall(f)
	case a.Code == command.AnswerNotFound:
		r.remove(f)
		f.resolve(nil, fmt.Errorf("task %s: %w", f.run.Task, task.ErrNotFound))
	case a.Code == command.AnswerStoreFull: // a full store heals
		s := &r.shards[f.run.Shard]
		s.mu.Lock()
		f.asks = askState{r.sweeps.Load() + 1, 1}
		s.mu.Unlock()
	case a.Code == command.AnswerUnserved && r.promised(f): // once the shard is served again it ends as ever
	case a.Code != command.AnswerOK:
		r.remove(f)
		f.resolve(nil, a.Err(f.run.Task))
	case a.Data != nil:
		outcomes, err := outcome.Decode(a.Data)
		if err != nil || len(outcomes) != 1 {
			r.cfg.Log.Warn("outcome cannot be read", "task", f.run.Task, "err", err)
			return
		}
		r.remove(f)
		f.resolve(outcomes[0].Value())
	default:
		s := &r.shards[f.run.Shard]
		s.mu.Lock()
		next := uint64(a.Number) + 1
		f.run.Life, f.run.Number, f.run.Since = a.Life, a.Run, events.RefOf(next, 0)
		s.mu.Unlock()
		r.followJournal(f.run.Shard, next)
	}
}

// recall searches for the last life of a task that its owner does not know, or has forgotten.
func (r *Registry) recall(f *Future) {
	s := &r.shards[f.run.Shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || f.recalling {
		return
	}
	f.recalling = true
	r.callbacks.Go(func() {
		t, err := r.cfg.Recall(r.ctx, f.run.Task)
		s.mu.Lock()
		f.recalling = false
		s.mu.Unlock()
		switch {
		case err == nil && !t.Forgotten: // it has been submitted meanwhile
			r.ask(f)
			return
		case err == nil:
			o := outcome.OfLast(&t)
			r.remove(f)
			f.resolve(o.Value())
			return
		case errors.Is(err, store.ErrTrimmed):
			err = fmt.Errorf("%w: %w", task.ErrNotKept, err)
		case r.ctx.Err() != nil: // and so do the futures
			return
		case !errors.Is(err, task.ErrNotFound) && !errors.Is(err, events.ErrDamaged):
			r.cfg.Log.WarnContext(r.ctx, "a future waits for the journal or the archive",
				"task", f.run.Task, "err", err)
			return // the sweep asks again
		}
		r.remove(f)
		f.resolve(nil, err)
	})
}

// promised reports whether the future's run is known to exist.
func (r *Registry) promised(f *Future) bool {
	s := &r.shards[f.run.Shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.run.Number != 0
}

// Run makes futures ask that have waited for long, until ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			r.stop()
			r.followers.Wait()
			return nil
		case <-r.resync:
			for shard := range r.shards {
				r.AskAll(shard)
			}
		case <-ticker.C:
			sweep := r.sweeps.Add(1)
			for shard := range r.shards {
				for _, f := range r.due(shard, sweep) {
					r.ask(f)
				}
				r.endFollow(shard)
			}
		}
	}
}

// Close resolves every future with task.ErrClosed and waits for the callbacks.
func (r *Registry) Close() { r.CloseFor(task.ErrClosed) }

// CloseFor is Close with an error that wraps task.ErrClosed.
func (r *Registry) CloseFor(why error) {
	r.closedFor.Store(&why)
	for i := range r.shards {
		s := &r.shards[i]
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
			f.resolve(nil, why)
		}
	}
	r.stop()
	r.callbacks.Wait()
}
