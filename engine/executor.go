package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

	mu       sync.Mutex
	slots    int
	used     int // running or about to
	starting int // of these, those about to: their Started is being committed
	offered  int // reserved by standing offers
	draining bool
	limits   map[string]*slotLimit
	attempts map[attemptKey]*attempt // running, or with an outcome not yet answered
	queue    []*attempt              // launched, and not taken by a worker yet
	waking   bool                    // a worker is on its way to the queue
	waiting  map[*inbox]struct{}     // owners with a ready task and no slot
	freeings uint64                  // how often slots became free
	freed    func()                  // told when a slot is freed
	idle     chan struct{}           // closed, and nil again, when no attempt is left
}

type slotLimit struct{ max, used, offered int }

type attemptKey struct {
	shard   int
	started events.Ref
}

// attempt is one call of a behavior's function, and the way of its outcome to the owner.
type attempt struct {
	assignment
	shard    int
	m        *member
	behavior Behavior
	ctx      context.Context
	cancel   context.CancelCauseFunc
	stop     context.CancelFunc // of the time-out; nil without one
	reported atomic.Bool        // an outcome was chosen
	done     atomic.Bool        // the function has returned
	progress progressReporter
}

var (
	errFenced   = errors.New("this node must no longer run the attempt")
	errDraining = errors.New("this node is stopping")
	errTimeout  = errors.New("the attempt exceeded its time-out")
)

func newExecutor(behaviors map[string]Behavior, slots int, limits map[string]int, now func() time.Time, log *slog.Logger) *executor {
	x := &executor{behaviors: behaviors, now: now, log: log, work: make(chan struct{}), quit: make(chan struct{}), slots: max(slots, 0),
		limits: map[string]*slotLimit{}, attempts: map[attemptKey]*attempt{}, waiting: map[*inbox]struct{}{}, freed: func() {}}
	for id := range behaviors {
		most := x.slots
		if n, ok := limits[id]; ok {
			most = n
		}
		x.limits[id] = &slotLimit{max: most}
	}
	return x
}

// runs reports whether this node could ever run the behavior.
func (x *executor) runs(behavior string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.limits[behavior]
	return l != nil && l.max > 0 && x.slots > 0 && !x.draining
}

// free reports whether there is a slot for the behavior right now.
func (x *executor) free(behavior string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.freeLocked(behavior)
}

func (x *executor) freeLocked(behavior string) bool {
	l := x.limits[behavior]
	return l != nil && !x.draining && x.used+x.offered < x.slots && l.used+l.offered < l.max
}

// take takes a slot, which launch uses and release gives back, or untake.
func (x *executor) take(behavior string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.freeLocked(behavior) {
		return false
	}
	x.used++
	x.starting++
	x.limits[behavior].used++
	return true
}

// untake gives back a slot for which there was no launch.
func (x *executor) untake(behavior string) {
	x.mu.Lock()
	x.starting--
	x.tellIdleLocked()
	x.mu.Unlock()
	x.release(behavior)
}

// release gives a slot back and wakes every owner that waits for one: the shards' heads compete for it again.
func (x *executor) release(behavior string) {
	x.mu.Lock()
	x.used--
	x.limits[behavior].used--
	woken := x.wakeLocked()
	freed := x.freed
	x.mu.Unlock()
	for i := range woken {
		i.ring()
	}
	freed()
}

// slotsFreed counts how often slots became free.
func (x *executor) slotsFreed() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.freeings
}

// awaitSlot rings the inbox when slots become free, or now if some did since the owner began to look, at that count.
func (x *executor) awaitSlot(i *inbox, since uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.freeings != since {
		i.ring()
		return
	}
	x.waiting[i] = struct{}{}
}

// launch starts an attempt in a slot taken before. It never blocks.
func (x *executor) launch(m *member, shard int, as assignment) {
	a := &attempt{assignment: as, shard: shard, m: m, behavior: x.behaviors[as.behavior]}
	a.ctx, a.cancel = context.WithCancelCause(m.attemptParent())
	if as.policy.Timeout > 0 {
		a.ctx, a.stop = context.WithTimeoutCause(a.ctx, as.policy.Timeout, errTimeout)
		a.expectReturn(as.policy.Timeout + overdue)
	}
	x.mu.Lock()
	x.starting--
	x.attempts[attemptKey{shard, as.Started}] = a
	x.queue = append(x.queue, a)
	wake := !x.waking
	x.waking = true
	x.mu.Unlock()
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
// begins at once however long the others take, and many short ones need few workers.
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
	x.mu.Lock()
	if woken {
		x.waking = false
	}
	if len(x.queue) == 0 {
		x.mu.Unlock()
		return nil
	}
	a := x.queue[0]
	x.queue[0] = nil
	x.queue = x.queue[1:]
	wake := len(x.queue) > 0 && !x.waking
	x.waking = x.waking || wake
	x.mu.Unlock()
	if wake {
		x.wakeWorker()
	}
	return a
}

// execute calls the function and reports the outcome. The deferred part runs for a panic and for runtime.Goexit alike.
func (x *executor) execute(a *attempt) {
	returned := false
	var out Outcome
	defer func() {
		problem := recover()
		a.done.Store(true)
		if !returned {
			out = crashed(problem)
		}
		a.report(out, a.ctx.Err() != nil)
		a.cancel(nil)
		if a.stop != nil {
			a.stop()
		}
		x.release(a.assignment.behavior)
	}()
	if !a.m.mayStart() { // the session may have ended since the assignment; if it goes on after all, the task runs again
		a.cancel(errDraining)
		out, returned = Outcome{Err: &events.Error{Code: events.CodeFailed, Message: errDraining.Error()}}, true
		return
	}
	params, err := a.parameters()
	if err != nil {
		out, returned = Outcome{Err: &events.Error{Code: events.CodeRejected, Message: err.Error()}}, true
		return
	}
	deadline, _ := a.ctx.Deadline()
	out = a.behavior.Run(a.ctx, Attempt{Task: a.Task, Behavior: a.assignment.behavior, Number: int(a.number),
		Failures: int(a.failures), Lost: int(a.lost), Policy: a.policy,
		Token: events.Position{Shard: uint16(a.shard), Ref: a.Started}, Params: params, Deadline: deadline,
		Log: slog.New(&attemptLog{a.m.log.Handler(), a}), Progress: a.reportProgress})
	returned = true
}

func crashed(problem any) Outcome {
	message := "the function ended its goroutine"
	if problem != nil {
		message = fmt.Sprintf("%v\n\n%s", problem, debug.Stack())
	}
	return Outcome{Err: &events.Error{Code: events.CodePanic, Message: message, Retryable: true}, Next: byPolicy}
}

// byPolicy marks a failure whose next attempt follows from the recorded policy.
var byPolicy = time.Unix(1, 0)

// parameters returns the JSON text, from the journal when the owner does not hold it.
func (a *attempt) parameters() ([]byte, error) {
	if a.paramsAt != 0 {
		p, err := a.m.payloadAt(a.ctx, a.shard, a.paramsAt)
		if err != nil {
			return nil, err
		}
		a.params = p
	}
	return a.params.JSON()
}

// end ends the attempt's context and expects the function to return.
func (a *attempt) end(cause error) {
	a.cancel(cause)
	if !errors.Is(cause, errFenced) {
		a.expectReturn(overdue)
	}
}

// expectReturn records the attempt as over when the function has not returned after the given time although its context
// has ended. Its slot stays taken.
func (a *attempt) expectReturn(within time.Duration) {
	time.AfterFunc(within, func() {
		if !a.done.Load() {
			a.report(Outcome{Err: &events.Error{Code: events.CodeFailed, Message: "the function did not return after its context ended"},
				Next: byPolicy}, true)
		}
	})
}

// report sends the outcome to the owner, once. ended tells that the context was over when it was reached.
func (a *attempt) report(out Outcome, ended bool) {
	if !a.reported.CompareAndSwap(false, true) {
		return
	}
	cause := context.Cause(a.ctx)
	if errors.Is(cause, errFenced) || a.m.ctx.Err() != nil { // the session is over: its attempts are lost, whatever they say
		a.m.exec.forget(a)
		return
	}
	a.progress.stop()
	c := &completeCommand{Task: a.Task, Started: a.Started, Node: a.m.session.ID, Random: rand.Uint32()}
	switch {
	case ended && out.Err != nil && errors.Is(cause, errDraining):
		if !a.done.Load() {
			a.reported.Store(false) // only a function that has returned is released; the session's end does the rest
			return
		}
		c.How = released
	case out.Snooze > 0:
		c.How, c.Wait = snoozed, out.Snooze
	case out.Err != nil:
		c.fail(out, ended && errors.Is(cause, errTimeout))
	default:
		c.succeed(out)
	}
	a.m.complete(a, c)
}

func (c *completeCommand) succeed(out Outcome) {
	if len(out.Result) > events.MaxPayloadBytes {
		c.How, c.Error = failed, &events.Error{Code: events.CodeRejected,
			Message: (&LimitError{Field: "result", Limit: events.MaxPayloadBytes, Got: int64(len(out.Result))}).Error()}
		return
	}
	c.How, c.Result, c.Next = succeeded, events.JSON(out.Result), events.MillisOf(out.Next)
}

func (c *completeCommand) fail(out Outcome, timedOut bool) {
	e := out.Err.Fit()
	if timedOut {
		e = events.Error{Code: events.CodeTimeout, Message: errTimeout.Error() + ": " + e.Message, Retryable: true}.Fit()
	}
	c.How, c.Error = failed, &e
	if c.ByPolicy = out.Next.Equal(byPolicy); !c.ByPolicy {
		c.Next = events.MillisOf(out.Next)
	}
}

// forget drops an attempt whose outcome is settled.
func (x *executor) forget(a *attempt) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := attemptKey{a.shard, a.Started}
	if x.attempts[key] == a {
		delete(x.attempts, key)
	}
	x.tellIdleLocked()
}

func (x *executor) tellIdleLocked() {
	if len(x.attempts) == 0 && x.starting == 0 && x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
}

// cancelAttempt ends the context of an attempt, if it is known here.
func (x *executor) cancelAttempt(shard int, started events.Ref, cause error) {
	x.mu.Lock()
	a := x.attempts[attemptKey{shard, started}]
	x.mu.Unlock()
	if a != nil {
		a.end(cause)
	}
}

// cancelAll ends the context of every attempt of a session; when its outcomes can no longer count, they are forgotten.
func (x *executor) cancelAll(m *member, cause error) {
	x.mu.Lock()
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
	x.mu.Unlock()
	for _, a := range all {
		a.end(cause)
	}
}

// names lists the attempts of a session in a shard.
func (x *executor) names(m *member, shard int) (all []attemptName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, a := range x.attempts {
		if a.m == m && key.shard == shard {
			all = append(all, a.attemptName)
		}
	}
	return all
}

// busy reports whether a session has attempts in a shard.
func (x *executor) busy(m *member, shard int) bool { return len(x.names(m, shard)) > 0 }

// drain refuses new work and returns a channel that is closed when no attempt is left.
func (x *executor) drain() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.draining = true
	if x.idle == nil {
		x.idle = make(chan struct{})
	}
	idle := x.idle
	x.tellIdleLocked()
	return idle
}

// unused is the number of slots in which nothing runs, offered ones included.
func (x *executor) unused() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.draining {
		return 0
	}
	return x.slots - x.used
}

// reserve sets slots aside for an offer, at most n, and says how many of each behavior it may bring.
func (x *executor) reserve(n int) (int, []offeredBehavior) {
	return x.reserveOf(n, func(*slotLimit) bool { return true })
}

// reserveIdle is reserve for a shard that needs nothing now: it leaves out the behaviors with a limit, whose few slots
// must not stand idle.
func (x *executor) reserveIdle(n int) (int, []offeredBehavior) {
	return x.reserveOf(n, func(l *slotLimit) bool { return l.max >= x.slots })
}

func (x *executor) reserveOf(n int, may func(*slotLimit) bool) (int, []offeredBehavior) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n = min(n, x.slots-x.used-x.offered)
	if n <= 0 || x.draining {
		return 0, nil
	}
	detail := make([]offeredBehavior, 0, len(x.limits))
	for behavior, l := range x.limits {
		if most := min(n, l.max-l.used-l.offered); most > 0 && may(l) {
			if l.max < x.slots {
				l.offered += most
			}
			detail = append(detail, offeredBehavior{behavior, most})
		}
	}
	if len(detail) == 0 {
		return 0, nil
	}
	x.offered += n
	return n, detail
}

// startable returns the behaviors whose limit is not reached. The result must not be changed.
func (x *executor) startable() map[string]Behavior {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := x.behaviors
	for behavior, l := range x.limits {
		if l.max >= x.slots || l.used < l.max {
			continue
		}
		if len(all) == len(x.behaviors) {
			all = maps.Clone(all)
		}
		delete(all, behavior)
	}
	return all
}

// couldAdd reports whether there is a slot for a behavior that an offer leaves out.
func (x *executor) couldAdd(detail []offeredBehavior) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for behavior, l := range x.limits {
		offered := slices.ContainsFunc(detail, func(b offeredBehavior) bool { return b.Behavior == behavior })
		if !offered && l.used+l.offered < l.max {
			return true
		}
	}
	return false
}

// limited reports whether an offer holds slots of a behavior with a limit.
func (x *executor) limited(detail []offeredBehavior) bool {
	return slices.ContainsFunc(detail, func(b offeredBehavior) bool { return x.limits[b.Behavior].max < x.slots })
}

// unreserve ends what reserve began: the slots of the assignments that it brought are taken, and the owners here that
// wait for one are woken for the rest.
func (x *executor) unreserve(n int, detail []offeredBehavior, given []assignment) {
	x.mu.Lock()
	x.offered -= n
	for _, b := range detail {
		if l := x.limits[b.Behavior]; l.max < x.slots {
			l.offered -= b.Slots
		}
	}
	for i := range given {
		x.used++
		x.starting++
		x.limits[given[i].behavior].used++
	}
	woken := x.wakeLocked()
	x.mu.Unlock()
	for i := range woken {
		i.ring()
	}
}

// wakeLocked counts that slots became free and returns the inboxes to ring.
func (x *executor) wakeLocked() map[*inbox]struct{} {
	x.freeings++
	if len(x.waiting) == 0 {
		return nil
	}
	woken := x.waiting
	x.waiting = map[*inbox]struct{}{}
	return woken
}

// wanted reports whether an owner here waits for a slot.
func (x *executor) wanted() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.waiting) > 0
}

// attemptLog adds to each record which attempt it is of; only then, since most attempts log nothing.
type attemptLog struct {
	slog.Handler
	a *attempt
}

// Handle implements slog.Handler.
func (h *attemptLog) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(slog.String("task", string(h.a.Task)), slog.Uint64("attempt", uint64(h.a.number)))
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
