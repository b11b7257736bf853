package worker

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/slots"
	"taskledger/events"
	"taskledger/task"
)

const (
	// Overdue bounds how long a function may run after its context ended; then its attempt is recorded as over.
	Overdue = 10 * time.Second
	// idleWorker is the time after which a goroutine without a further attempt ends.
	idleWorker = 5 * time.Second
	// MaxPlans bounds the raw submits of a behavior that a node plans at once.
	MaxPlans = 16
	// progressEvery is the shortest time between two recorded Progressed of an attempt.
	progressEvery = time.Second
)

// Executor makes attempts on a node, as many at once as it has slots. A slot is taken before the Started that fills
// it is decided and is free again when the function has returned, whatever becomes of the outcome. Slots outlive
// sessions: a function that ignores its context keeps its slot in the node's next session.
type Executor struct {
	cfg        Config
	overbooked func()        // more is offered than there are slots
	work       chan struct{} // wakes an idle worker
	quit       chan struct{} // closed when the node has stopped: idle workers end
	workers    sync.WaitGroup
	plans      map[string]chan struct{} // by behavior: taken by the plans under way
	failers    map[string]chan struct{} // by behavior: taken by the questions what follows a failed attempt

	*slots.Slots                         // its lock guards the fields that follow
	attempts     map[attemptKey]*attempt // running, or with an outcome not yet answered
	queue        []*attempt              // launched, and not taken by a worker yet
	waking       bool                    // a worker is on its way to the queue
	stuck        map[string]int          // by behavior: functions whose attempts were given up and that take a slot
	delayed      []int                   // shards with outcomes that leave when the queue is empty
	idle         chan struct{}           // closed, and nil again, when no attempt is left
}

// NewExecutor returns an executor without attempts.
func NewExecutor(cfg Config) *Executor {
	behaviors := slices.Sorted(maps.Keys(cfg.Behaviors))
	x := &Executor{
		cfg:      cfg,
		work:     make(chan struct{}),
		quit:     make(chan struct{}),
		plans:    map[string]chan struct{}{},
		failers:  map[string]chan struct{}{},
		Slots:    slots.New(cfg.Slots, behaviors, cfg.Limits),
		attempts: map[attemptKey]*attempt{},
		stuck:    map[string]int{},

		overbooked: func() {},
	}
	for _, id := range behaviors {
		x.plans[id] = make(chan struct{}, MaxPlans)
		x.failers[id] = make(chan struct{}, maxFailers)
	}
	return x
}

// Launch starts an attempt of a session in a slot taken before. It never blocks.
func (x *Executor) Launch(s *Session, shard int, as command.Assignment) {
	a := &attempt{
		Assignment: as,
		shard:      shard,
		x:          x,
		session:    s,
		behavior:   x.cfg.Behaviors[as.Behavior],
	}
	a.ctx.attempt = a
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
func (x *Executor) wakeWorker() {
	select {
	case x.work <- struct{}{}:
	default:
		x.workers.Go(x.worker)
	}
}

// worker makes attempts until none has come for a while. While attempts wait, one worker is on its way to them: so
// each begins at once however long the others take, and many short ones need few workers. Outcomes are delayed while
// one is on its way, and leave together when nothing waits: those of a burst of short attempts share an entry, and
// none waits for a long one.
func (x *Executor) worker() {
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

// next takes the first attempt that waits, nil for none. woken marks the call of the worker that was on its way.
func (x *Executor) next(woken bool) *attempt {
	x.Lock()
	if woken {
		x.waking = false
	}
	if len(x.queue) == 0 {
		var delayed []int
		if !x.waking {
			delayed, x.delayed = x.delayed, nil
		}
		x.Unlock()
		for _, shard := range delayed {
			x.cfg.Sender.Flush(shard, command.LaneWork)
		}
		return nil
	}
	a := x.queue[0]
	x.queue[0] = nil
	x.queue = x.queue[1:]
	wake := (len(x.queue) > 0 || len(x.delayed) > 0) && !x.waking
	x.waking = x.waking || wake
	x.Unlock()
	if wake {
		x.wakeWorker()
	}
	return a
}

// leaveToWorker leaves the outcome in a shard's lane to the worker that is on its way, if there is one.
func (x *Executor) leaveToWorker(shard int) bool {
	x.Lock()
	defer x.Unlock()
	if x.waking && !slices.Contains(x.delayed, shard) {
		x.delayed = append(x.delayed, shard)
	}
	return x.waking
}

// Detach runs user code that may never return in a goroutine which nobody waits for but the node when it stops, as
// for those of attempts. Once it has stopped nothing is run, and Detach returns false.
func (x *Executor) Detach(f func()) bool {
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

// left returns how many attempts and plans have not returned yet.
func (x *Executor) left() (attempts, plans int) {
	x.Lock()
	defer x.Unlock()
	for _, places := range x.plans {
		plans += len(places)
	}
	return x.Used + x.Lent - x.Starting, plans
}

// forget drops an attempt whose outcome was answered.
func (x *Executor) forget(a *attempt) {
	x.Lock()
	defer x.Unlock()
	key := attemptKey{a.shard, a.Started}
	if x.attempts[key] == a {
		delete(x.attempts, key)
	}
	x.notifyIdleLocked()
}

// notifyIdleLocked wakes Drain once nothing runs.
func (x *Executor) notifyIdleLocked() {
	if len(x.attempts) == 0 && x.Starting == 0 && x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
}

// Untake gives back a slot for which there was no launch.
func (x *Executor) Untake(behavior string) {
	x.Lock()
	x.Starting--
	x.notifyIdleLocked()
	x.Unlock()
	x.Release(behavior)
}

// Cancel ends the context of an attempt, if it is known here.
func (x *Executor) Cancel(shard int, started events.Ref, cause error) {
	x.Lock()
	a := x.attempts[attemptKey{shard, started}]
	x.Unlock()
	if a != nil {
		a.end(cause)
	}
}

// CancelAll ends the context of every attempt of a session; when its outcomes can no longer count, they are forgotten.
func (x *Executor) CancelAll(s *Session, cause error) {
	x.Lock()
	var all []*attempt
	for key, a := range x.attempts {
		if a.session != s {
			continue
		}
		all = append(all, a)
		if errors.Is(cause, ErrFenced) {
			delete(x.attempts, key)
		}
	}
	x.Unlock()
	for _, a := range all {
		a.end(cause)
	}
}

// giveUp counts an attempt as one whose function does not return, unless it has returned.
func (x *Executor) giveUp(a *attempt) bool {
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
func (x *Executor) returned(a *attempt) {
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

// Stuck returns how many slots are taken by functions whose attempts were given up.
func (x *Executor) Stuck() (n int) {
	x.Lock()
	defer x.Unlock()
	for _, held := range x.stuck {
		n += held
	}
	return n
}

// ReleaseAll records the attempts of a session as Released that have no outcome after the time that they had: a
// drain's last act, so that nobody takes them for lost. Their functions may still be running beside the next attempt.
func (x *Executor) ReleaseAll(s *Session) {
	x.Lock()
	var all []*attempt
	for _, a := range x.attempts {
		if a.session == s && !a.reported.Load() {
			all = append(all, a)
		}
	}
	x.Unlock()
	for _, a := range all {
		s.log.Warn("the function did not return before its node stopped: "+
			"its attempt is released, and the next one may overlap with it",
			"task", a.Task, "behavior", a.Assignment.Behavior, "attempt", a.Number)
		draining := &events.Error{Code: events.CodeFailed, Message: ErrDraining.Error()}
		a.report(task.Outcome{Err: draining, Next: byPolicy}, true)
	}
}

// names lists the attempts of a session in a shard.
func (x *Executor) names(s *Session, shard int) (all []command.AttemptName) {
	x.Lock()
	defer x.Unlock()
	for key, a := range x.attempts {
		if a.session == s && key.shard == shard {
			all = append(all, a.AttemptName)
		}
	}
	return all
}

// busy reports whether a session has attempts in a shard.
func (x *Executor) busy(s *Session, shard int) bool { return len(x.names(s, shard)) > 0 }

// Drain refuses new work and returns a channel that is closed when no attempt is left.
func (x *Executor) Drain() <-chan struct{} {
	x.Lock()
	defer x.Unlock()
	x.Draining = true
	if x.idle == nil {
		x.idle = make(chan struct{})
	}
	idle := x.idle
	x.notifyIdleLocked()
	return idle
}

// Behavior returns a behavior of the node; nil if it has none of that id.
func (x *Executor) Behavior(id string) task.Behavior { return x.cfg.Behaviors[id] }

// Busy returns how many slots are used.
func (x *Executor) Busy() int {
	x.Lock()
	defer x.Unlock()
	return x.Used
}

// Stop ends the workers. It waits until functions have returned, for a time at most, and reports those that are
// left behind.
func (x *Executor) Stop(most time.Duration) (attempts, plans int) {
	x.Close()
	x.Lock()
	close(x.quit)
	x.Unlock()
	idle := make(chan struct{})
	go func() {
		x.workers.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return 0, 0
	case <-time.After(most):
		return x.left()
	}
}

// PlanPlaces returns the semaphore for plans of a behavior: a planner sends to it before the plan, and receives after.
func (x *Executor) PlanPlaces(behavior string) chan struct{} { return x.plans[behavior] }
