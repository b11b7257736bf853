package engine

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/slots"
	"taskledger/events"
)

const (
	// overdue is how long a function may go on after its context ended before its attempt is recorded as over.
	overdue = 10 * time.Second
	// idleWorker is how long a goroutine waits for a further attempt before it ends.
	idleWorker = 5 * time.Second
	// progressEvery is the shortest time between two recorded Progressed of an attempt.
	progressEvery = time.Second
)

// executor makes attempts on a node, as many at once as it has slots. A slot is taken before the Started that fills it is
// decided and is free again when the function has returned, whatever becomes of the outcome. Slots outlive sessions: a
// function that ignores its context keeps its slot in the node's next session.
type executor struct {
	behaviors map[string]Behavior
	now       func() time.Time
	log       *slog.Logger
	work      chan struct{} // wakes an idle worker
	quit      chan struct{} // closed when the node has stopped: idle workers end
	workers   sync.WaitGroup
	plans     map[string]chan struct{} // by behavior: taken by the plans under way
	failers   map[string]chan struct{} // by behavior: taken by the questions what follows a failed attempt

	*slots.Slots                         // its lock guards the fields that follow
	attempts     map[attemptKey]*attempt // running, or with an outcome not yet answered
	queue        []*attempt              // launched, and not taken by a worker yet
	waking       bool                    // a worker is on its way to the queue
	stuck        map[string]int          // functions that were given up and hold a slot, by behavior
	held         []int                   // shards with outcomes that leave when the queue is empty
	flush        func(shard int)         // lets the outcomes of a shard leave
	idle         chan struct{}           // closed, and nil again, when no attempt is left
}

func newExecutor(behaviors map[string]Behavior, most int, limits map[string]int, now func() time.Time, log *slog.Logger) *executor {
	x := &executor{
		behaviors: behaviors,
		now:       now,
		log:       log,
		work:      make(chan struct{}),
		quit:      make(chan struct{}),
		plans:     map[string]chan struct{}{},
		failers:   map[string]chan struct{}{},
		Slots:     slots.New(most, sortedKeys(behaviors), limits),
		attempts:  map[attemptKey]*attempt{},
		stuck:     map[string]int{},
		flush:     func(int) {},
	}
	for id := range behaviors {
		x.plans[id] = make(chan struct{}, maxPlans)
		x.failers[id] = make(chan struct{}, maxFailers)
	}
	return x
}

// launch starts an attempt in a slot taken before. It never blocks.
func (x *executor) launch(m *member, shard int, as command.Assignment) {
	a := &attempt{Assignment: as, shard: shard, m: m, behavior: x.behaviors[as.Behavior]}
	a.ctx.m, a.ctx.attempt = m, a
	if as.Policy.Timeout > 0 {
		a.ctx.deadline = time.Now().Add(as.Policy.Timeout)
		a.timeout = time.AfterFunc(as.Policy.Timeout, a.timedOut)
	}
	x.Lock()
	x.Starting--
	x.attempts[attemptKey{shard, as.Started}] = a
	x.queue = append(x.queue, a)
	wake := !x.waking
	x.waking = true
	x.Unlock()
	if wake {
		x.wakeWorker()
	}
}

// wakeWorker wakes an idle worker, or makes one.
func (x *executor) wakeWorker() {
	select {
	case x.work <- struct{}{}:
	default:
		x.workers.Go(x.worker)
	}
}

// worker makes attempts until none has come for a while. While attempts wait, one worker is on its way to them: so each
// begins at once however long the others take, and many short ones need few workers. Outcomes are held while one is on its
// way, and leave together when nothing waits: those of a burst of short attempts share an entry, and none waits for a long one.
func (x *executor) worker() {
	timer := time.NewTimer(idleWorker)
	defer timer.Stop()
	for {
		for a := x.next(true); a != nil; a = x.next(false) {
			x.execute(a)
		}
		timer.Reset(idleWorker)
		select {
		case <-x.work:
		case <-timer.C:
			return
		case <-x.quit:
			return
		}
	}
}

// next takes the first attempt that waits, nil for none; woken tells that this is the worker that was on its way.
func (x *executor) next(woken bool) *attempt {
	x.Lock()
	if woken {
		x.waking = false
	}
	if len(x.queue) == 0 {
		var held []int
		if !x.waking {
			held, x.held = x.held, nil
		}
		x.Unlock()
		for _, shard := range held {
			x.flush(shard)
		}
		return nil
	}
	a := x.queue[0]
	x.queue[0] = nil
	x.queue = x.queue[1:]
	wake := (len(x.queue) > 0 || len(x.held) > 0) && !x.waking
	x.waking = x.waking || wake
	x.Unlock()
	if wake {
		x.wakeWorker()
	}
	return a
}

// hold reports whether the outcome that waits in a shard's lane is held: a worker on its way will let it leave.
func (x *executor) hold(shard int) bool {
	x.Lock()
	defer x.Unlock()
	if x.waking && !slices.Contains(x.held, shard) {
		x.held = append(x.held, shard)
	}
	return x.waking
}

// detach runs user code that may never return in a goroutine which nobody waits for but the node when it stops, as for those
// of attempts. Once it has stopped nothing is run, and detach returns false.
func (x *executor) detach(f func()) bool {
	x.Lock()
	defer x.Unlock()
	select {
	case <-x.quit:
		return false
	default:
	}
	x.workers.Go(f)
	return true
}

// left is how many attempts and plans have not returned yet.
func (x *executor) left() (attempts, plans int) {
	x.Lock()
	defer x.Unlock()
	for _, places := range x.plans {
		plans += len(places)
	}
	return x.Used + x.Lent - x.Starting, plans
}

// forget drops an attempt whose outcome is settled.
func (x *executor) forget(a *attempt) {
	x.Lock()
	defer x.Unlock()
	key := attemptKey{a.shard, a.Started}
	if x.attempts[key] == a {
		delete(x.attempts, key)
	}
	x.tellIdleLocked()
}

func (x *executor) tellIdleLocked() {
	if len(x.attempts) == 0 && x.Starting == 0 && x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
}

// untake gives back a slot for which there was no launch.
func (x *executor) untake(behavior string) {
	x.Lock()
	x.Starting--
	x.tellIdleLocked()
	x.Unlock()
	x.Release(behavior)
}

// cancelAttempt ends the context of an attempt, if it is known here.
func (x *executor) cancelAttempt(shard int, started events.Ref, cause error) {
	x.Lock()
	a := x.attempts[attemptKey{shard, started}]
	x.Unlock()
	if a != nil {
		a.end(cause)
	}
}

// cancelAll ends the context of every attempt of a session; when its outcomes can no longer count, they are forgotten.
func (x *executor) cancelAll(m *member, cause error) {
	x.Lock()
	var all []*attempt
	for key, a := range x.attempts {
		if a.m != m {
			continue
		}
		all = append(all, a)
		if errors.Is(cause, errFenced) {
			delete(x.attempts, key)
		}
	}
	x.Unlock()
	for _, a := range all {
		a.end(cause)
	}
}

// giveUp counts an attempt as one whose function does not return, unless it has returned.
func (x *executor) giveUp(a *attempt) bool {
	x.Lock()
	defer x.Unlock()
	if a.stuck.Swap(true) {
		return false
	}
	if a.done.Load() {
		a.stuck.Store(false)
		return false
	}
	x.stuck[a.Assignment.Behavior]++
	return true
}

// returned marks the attempt as one whose function has returned.
func (x *executor) returned(a *attempt) {
	a.done.Store(true)
	if !a.stuck.Load() { // whoever sets it from now on sees that the function has returned
		return
	}
	x.Lock()
	defer x.Unlock()
	if a.stuck.Swap(false) {
		x.stuck[a.Assignment.Behavior]--
	}
}

// stuckNow is how many slots are held by functions that were given up.
func (x *executor) stuckNow() (n int) {
	x.Lock()
	defer x.Unlock()
	for _, held := range x.stuck {
		n += held
	}
	return n
}

// releaseAll records the attempts of a session as Released that have no outcome after the time that they had: a
// drain's last act, so that nobody takes them for lost. Their functions may still be running beside the next attempt.
func (x *executor) releaseAll(m *member) {
	x.Lock()
	var all []*attempt
	for _, a := range x.attempts {
		if a.m == m && !a.reported.Load() {
			all = append(all, a)
		}
	}
	x.Unlock()
	for _, a := range all {
		m.log.Warn("the function did not return before its node stopped: its attempt is released, and the next one may overlap with it",
			"task", a.Task, "behavior", a.Assignment.Behavior, "attempt", a.Number)
		a.report(Outcome{Err: &events.Error{Code: events.CodeFailed, Message: errDraining.Error()}, Next: byPolicy}, true)
	}
}

// names lists the attempts of a session in a shard.
func (x *executor) names(m *member, shard int) (all []command.AttemptName) {
	x.Lock()
	defer x.Unlock()
	for key, a := range x.attempts {
		if a.m == m && key.shard == shard {
			all = append(all, a.AttemptName)
		}
	}
	return all
}

// busy reports whether a session has attempts in a shard.
func (x *executor) busy(m *member, shard int) bool { return len(x.names(m, shard)) > 0 }

// drain refuses new work and returns a channel that is closed when no attempt is left.
func (x *executor) drain() <-chan struct{} {
	x.Lock()
	defer x.Unlock()
	x.Draining = true
	if x.idle == nil {
		x.idle = make(chan struct{})
	}
	idle := x.idle
	x.tellIdleLocked()
	return idle
}
