package world

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/simulation/work"
)

const (
	// errands counts the errands of a history: enough for 200 calls that change something.
	errands = 110
	// trafficLasts is the time within which they begin.
	trafficLasts = 11 * time.Second
	// rawShare is the share of submits by name, which some node plans.
	rawShare = 0.2
)

// errand sends a few commands about one task, or two or three, with pauses between them.
type errand struct {
	w  *world
	id events.TaskID
}

// stories lists the kinds of errands, each as often as it is likely.
var stories = []func(*errand){
	(*errand).simple, (*errand).simple, (*errand).twins, (*errand).twins, (*errand).delayed, (*errand).delayed, (*errand).unlucky,
	(*errand).repeated, (*errand).long, (*errand).doomed, (*errand).suspended, (*errand).runAgain, (*errand).merged, (*errand).timed,
	(*errand).reborn, (*errand).keyed, (*errand).keyed, (*errand).paused, (*errand).agreed, (*errand).forbidden, (*errand).listed, (*errand).many,
	(*errand).regular,
}

// keepersLeast and keepersMost bound the number of clients of task stores.
const keepersLeast, keepersMost = 3, 5

// spares counts the behaviors without tasks, which can be paused and hold nothing up.
const spares = 3

// traffic runs the errands to their ends, waits left out, beside the clients of task stores.
func (w *world) traffic() {
	var all sync.WaitGroup
	seed, count := uint64(w.dice.n(math.MaxInt)), keepersLeast+w.dice.n(keepersMost-keepersLeast+1)
	end := time.Now().Add(trafficLasts)
	w.keepers.Over = func() bool { return !time.Now().Before(end) }
	all.Go(func() { w.keepers.Keep(count, seed) })
	for i := range errands {
		at := w.dice.between(0, trafficLasts)
		story := pick(w.dice, stories...)
		all.Go(func() {
			time.Sleep(at)
			story(&errand{w, events.TaskID(fmt.Sprintf("task-%d", i))})
		})
	}
	all.Wait()
}

// client is a client or, now and then, a node that runs.
func (e *errand) client() *process { return e.w.someClient() }

// pause lets up to most pass.
func (e *errand) pause(most time.Duration) { time.Sleep(e.w.dice.between(0, most)) }

// submit submits, and lets somebody wait for the outcome, now and then.
func (e *errand) submit(o order) (task string) {
	p := e.client()
	o.raw = e.w.dice.chance(rawShare)
	f, op := e.w.caller().submit(p, o)
	if op.Answer == history.OK && e.w.dice.chance(0.4) {
		e.await(p, f, o.request)
	} else {
		f.Close()
	}
	return op.Task
}

// await waits for a future on the side.
func (e *errand) await(p *process, f *engine.Future, request string) {
	e.w.waits.Go(func() { e.w.caller().wait(p, f, request) })
}

// attach lets somebody else wait for the task.
func (e *errand) attach(task string) {
	p := e.client()
	e.w.waits.Go(func() { e.w.caller().waitAttached(p, events.TaskID(task)) })
}

func (e *errand) operate(verb history.Verb, task string) {
	if task != "" {
		e.w.caller().operate(e.client(), verb, task)
	}
}

func (e *errand) get(task string) {
	if task != "" {
		e.w.caller().get(e.client(), task)
	}
}

func (e *errand) settings() {
	c := e.w.caller()
	c.settings(e.client(), c.patience())
}

// work draws how many milliseconds an attempt takes.
func (e *errand) work(most int) int { return e.w.dice.n(most + 1) }

func (e *errand) simple() {
	task := e.submit(order{behavior: once, job: job{Work: e.work(100)}})
	e.pause(300 * time.Millisecond)
	e.get(task)
	e.submit(order{behavior: once, job: job{Work: e.work(300), Snooze: e.w.dice.n(2)}})
	e.pause(time.Second)
	e.get(task)
}

// twins submits one id several times at once.
func (e *errand) twins() {
	var both sync.WaitGroup
	for range 2 + e.w.dice.n(2) {
		both.Go(func() { e.submit(order{id: e.id, behavior: once, job: job{Work: e.work(400)}}) })
	}
	both.Wait()
	e.pause(500 * time.Millisecond)
	e.attach(string(e.id))
	e.get(string(e.id))
}

func (e *errand) delayed() {
	e.submit(order{id: e.id, behavior: once, job: job{Work: e.work(100)}, delay: e.w.dice.between(100*time.Millisecond, 3*time.Second)})
	e.pause(time.Second)
	e.operate(pick(e.w.dice, history.RunNow, history.RunNow, history.Cancel, history.Delete), string(e.id))
	e.get(string(e.id))
}

func (e *errand) unlucky() {
	task := e.submit(order{behavior: again, job: job{Work: e.work(50), Fails: 1 + e.w.dice.n(4), Panics: e.w.dice.chance(0.2)}})
	e.pause(time.Second)
	e.get(task)
	e.operate(pick(e.w.dice, history.Cancel, history.Suspend, history.RunNow), task)
	e.operate(history.Resume, task)
}

func (e *errand) repeated() {
	e.submit(order{id: e.id, behavior: again, job: job{Work: e.work(100), Runs: 2 + e.w.dice.n(3)}})
	e.pause(time.Second)
	e.attach(string(e.id))
	e.pause(time.Second)
	e.operate(pick(e.w.dice, history.Cancel, history.RunNow, history.Delete), string(e.id))
	e.get(string(e.id))
}

// regular is a task that its policy repeats after any end of a run, until somebody cancels or deletes it.
func (e *errand) regular() {
	ends := make([]byte, 1+e.w.dice.n(6))
	for i := range ends {
		ends[i] = work.Endings[e.w.dice.n(len(work.Endings))]
	}
	o := order{id: e.id, behavior: every, job: job{Work: e.work(300), Ends: string(ends)}, delay: pick(e.w.dice, 0, 0, 300*time.Millisecond)}
	for range 1 + e.w.dice.n(2) { // the second one joins it, or begins another life
		e.submit(o)
		e.pause(2 * time.Second)
		e.attach(string(e.id))
		e.operate(pick(e.w.dice, history.RunNow, history.Suspend, history.Retry, history.Cancel), string(e.id))
		e.get(string(e.id))
		e.pause(time.Second)
		e.operate(history.Resume, string(e.id))
		e.pause(time.Second)
		e.stop(string(e.id))
		e.get(string(e.id))
	}
}

// stop cancels or deletes a task, again until it is told that there is nothing to cancel.
func (e *errand) stop(task string) {
	for range 6 {
		verb := pick(e.w.dice, history.Cancel, history.Cancel, history.Delete)
		if op := e.w.caller().operate(e.client(), verb, task); op.Answer == history.Absent || verb == history.Cancel && op.Answer == history.OK {
			return
		}
		e.pause(time.Second)
	}
}

func (e *errand) long() {
	e.submit(order{id: e.id, behavior: once, job: job{Work: 2000 + e.work(2500)}})
	e.pause(time.Second)
	e.get(string(e.id))
	if e.w.dice.chance(0.4) {
		e.operate(history.Cancel, string(e.id))
	}
	e.submit(order{id: e.id, behavior: once, job: job{Work: 100}})
}

func (e *errand) doomed() {
	e.submit(order{id: e.id, behavior: once, job: job{Work: e.work(50), Dooms: 1}})
	e.pause(2 * time.Second)
	e.operate(history.Retry, string(e.id))
	e.pause(500 * time.Millisecond)
	e.attach(string(e.id))
	e.get(string(e.id))
}

func (e *errand) suspended() {
	e.submit(order{id: e.id, behavior: once, job: job{Work: e.work(100)}, delay: 300 * time.Millisecond})
	e.operate(history.Suspend, string(e.id))
	e.pause(time.Second)
	e.get(string(e.id))
	e.operate(history.Resume, string(e.id))
}

func (e *errand) runAgain() {
	work := job{Work: e.work(200)}
	for i := range 2 + e.w.dice.n(2) {
		own := fmt.Sprint("own ", i) // tells which run its future is for
		e.submit(order{id: e.id, behavior: again, job: work, request: pick(e.w.dice, "", "shared", own, own)})
		e.pause(time.Second)
	}
	e.get(string(e.id))
}

func (e *errand) merged() {
	var all sync.WaitGroup
	for range 2 + e.w.dice.n(2) {
		all.Go(func() {
			e.pause(300 * time.Millisecond)
			e.submit(order{id: e.id, behavior: merge, job: job{Work: e.work(300)}, delay: time.Duration(e.work(200)) * time.Millisecond})
		})
	}
	all.Wait()
	e.get(string(e.id))
}

func (e *errand) timed() {
	task := e.submit(order{behavior: brief, job: job{Work: pick(e.w.dice, 100, 600, 900)}})
	e.pause(time.Second)
	e.get(task)
	e.operate(pick(e.w.dice, history.Retry, history.Cancel), task)
	if task != "" { // others may have made it forgotten by now
		e.pause(2 * time.Second)
		e.attach(task)
	}
}

// keyed is a request without an id: at once from several places, after its end, and with another one under its key.
func (e *errand) keyed() {
	o := order{behavior: pick(e.w.dice, once, again, brief, merge), request: "key of " + string(e.id), job: job{Work: e.work(300)},
		delay: pick(e.w.dice, 0, 0, 200*time.Millisecond), by: pick(e.w.dice, "", "ada", "bob")}
	for range 2 {
		var all sync.WaitGroup
		for range 1 + e.w.dice.n(3) {
			all.Go(func() {
				e.pause(300 * time.Millisecond)
				e.submit(o)
			})
		}
		if e.w.dice.chance(0.3) { // somebody else has another task under the key
			all.Go(func() {
				other := o
				other.by, other.job.Work = "eve", e.work(300)
				e.submit(other)
			})
		}
		all.Wait()
		e.pause(2 * time.Second)
		if e.w.dice.chance(0.3) {
			other := o
			if e.w.dice.chance(0.5) {
				other.job.Work++
			} else {
				other.priority = 1
			}
			e.submit(other)
		}
	}
	task := e.submit(o)
	e.get(task)
	e.operate(pick(e.w.dice, history.Delete, history.Retry, history.Cancel), task)
	e.submit(o)
}

// agreed is a task that others join with requests and terms of their own: those of the last one hold.
func (e *errand) agreed() {
	o := order{id: e.id, behavior: pick(e.w.dice, once, again, brief, merge), job: job{Work: pick(e.w.dice, 100, 1500)}, delay: pick(e.w.dice, 0, 700*time.Millisecond)}
	e.submit(o)
	var all sync.WaitGroup
	for i := range 2 + e.w.dice.n(3) {
		all.Go(func() {
			e.pause(time.Second)
			other := o
			other.priority, other.losses = int64(e.w.dice.n(3)), e.w.dice.n(3)
			other.request = pick(e.w.dice, "", fmt.Sprint("join ", i))
			e.submit(other)
			e.get(string(e.id))
		})
	}
	all.Wait()
	e.get(string(e.id))
}

// paused has somebody pause a behavior that no task has, for a reason, and read what is paused; the pause may stay.
func (e *errand) paused() {
	behavior, reason := fmt.Sprint("spare-", e.w.dice.n(spares)), "for "+string(e.id)
	e.w.caller().pause(e.client(), true, behavior, reason)
	e.pause(time.Second)
	e.settings()
	if e.w.dice.chance(0.6) {
		e.w.caller().pause(e.client(), false, behavior, "")
		e.settings()
	}
}

// listed reads a list in pages, beside all that goes on.
func (e *errand) listed() {
	e.submit(order{id: e.id, behavior: once, job: job{Work: e.work(100)}})
	e.w.caller().list(e.client(), pick(e.w.dice, "", "", once, again), 1+e.w.dice.n(40))
}

// many is a request of several tasks, under one key or none, which is repeated.
func (e *errand) many() {
	orders := make([]order, 1+e.w.dice.n(12))
	for i := range orders {
		orders[i] = order{behavior: pick(e.w.dice, once, again), job: job{Work: e.work(100)}, delay: pick(e.w.dice, 0, 0, 300*time.Millisecond)}
		if e.w.dice.chance(0.3) {
			orders[i].id = e.id + events.TaskID(fmt.Sprint("/", i))
		}
	}
	key, by := "", pick(e.w.dice, "", "ada")
	if e.w.dice.chance(0.6) {
		key = "key of " + string(e.id)
	}
	for range 1 + e.w.dice.n(3) {
		e.w.caller().submitMany(e.client(), orders, key, by)
		e.pause(time.Second)
	}
}

// forbidden asks for what must be refused.
func (e *errand) forbidden() {
	o := order{id: e.id, behavior: once}
	switch e.w.dice.n(5) {
	case 0:
		o.id, o.forbidden = "store:"+e.id+"/1", "reserved affinity"
	case 1:
		o.priority, o.forbidden = events.MaxPriority+1, "priority"
	case 2:
		o.id, o.request, o.forbidden = "", strings.Repeat("k", events.MaxKeyBytes+1), "request key"
	case 3:
		o.id, o.forbidden = events.Settings, "reserved id"
	default:
		e.w.caller().pause(e.client(), true, "spare-0", strings.Repeat("x", events.MaxNameBytes+1))
		return
	}
	e.submit(o)
}

// reborn is a task of several lives.
func (e *errand) reborn() {
	for life := range 2 {
		e.submit(order{id: e.id, behavior: once, job: job{Work: e.work(100)}, request: fmt.Sprint("life ", life)})
		e.pause(time.Second)
		e.operate(history.Delete, string(e.id))
	}
	e.submit(order{id: e.id, behavior: once, request: "life 2"})
}
