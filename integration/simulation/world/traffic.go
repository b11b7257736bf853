package world

import (
	"fmt"
	"sync"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/history"
)

const (
	// errands is how many stories of a task are told in a history: enough for 200 calls that change something.
	errands = 110
	// trafficLasts is the time within which they begin.
	trafficLasts = 11 * time.Second
	// rawShare is the share of submits by name, which some node plans.
	rawShare = 0.2
	// waitMost is how long a future is waited for, if its world does not give it up earlier.
	waitMost = 15 * time.Minute
)

// errand is what somebody wants of one task, or of two or three: a few commands with pauses.
type errand struct {
	w  *world
	id events.TaskID
}

// stories are the kinds of errands, each as often as it is likely.
var stories = []func(*errand){
	(*errand).simple, (*errand).simple, (*errand).twins, (*errand).twins, (*errand).delayed, (*errand).delayed, (*errand).unlucky,
	(*errand).repeated, (*errand).long, (*errand).doomed, (*errand).suspended, (*errand).runAgain, (*errand).merged, (*errand).timed,
	(*errand).reborn, (*errand).keyed, (*errand).keyed,
}

// traffic runs the errands to their ends, waits left out.
func (w *world) traffic() {
	var all sync.WaitGroup
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

// twins are submits of one id at the same time.
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
		delay: pick(e.w.dice, 0, 0, 200*time.Millisecond)}
	for range 2 {
		var all sync.WaitGroup
		for range 1 + e.w.dice.n(3) {
			all.Go(func() {
				e.pause(300 * time.Millisecond)
				e.submit(o)
			})
		}
		all.Wait()
		e.pause(2 * time.Second)
		if e.w.dice.chance(0.3) {
			other := o
			other.job.Work++
			e.submit(other)
		}
	}
	task := e.submit(o)
	e.get(task)
	e.operate(pick(e.w.dice, history.Delete, history.Retry, history.Cancel), task)
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
