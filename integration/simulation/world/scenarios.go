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
)

const (
	// scenarioCount counts the scenarios of a history: enough for 200 calls that change something.
	scenarioCount = 110
	// trafficLasts is the time within which they begin.
	trafficLasts = 11 * time.Second
	// rawShare is the share of submits by name, which some node plans.
	rawShare = 0.2
)

// scenario sends a few commands about one task, or two or three, with pauses between them.
type scenario struct {
	w  *world
	id events.TaskID
}

// scenarios lists the kinds of scenarios, each as often as it is likely.
var scenarios = []func(*scenario){
	(*scenario).simple, (*scenario).simple, (*scenario).twins, (*scenario).twins, (*scenario).delayed, (*scenario).delayed, (*scenario).unlucky,
	(*scenario).repeated, (*scenario).long, (*scenario).doomed, (*scenario).suspended, (*scenario).runAgain, (*scenario).merged, (*scenario).timed,
	(*scenario).reborn, (*scenario).keyed, (*scenario).keyed, (*scenario).paused, (*scenario).agreed, (*scenario).forbidden, (*scenario).listed, (*scenario).many,
	(*scenario).regular, (*scenario).scheduled, (*scenario).scheduled, (*scenario).errand, (*scenario).errand,
	(*scenario).stream, (*scenario).stream, (*scenario).overdue, (*scenario).overdue,
}

// leastStoreClients and mostStoreClients bound the number of clients of task stores.
const leastStoreClients, mostStoreClients = 3, 5

// spares counts the behaviors without tasks, which can be paused and hold nothing up.
const spares = 3

// traffic runs the scenarios to their ends, waits left out, beside the clients of task stores.
func (w *world) traffic() {
	var all sync.WaitGroup
	seed, count := uint64(w.dice.n(math.MaxInt)), leastStoreClients+w.dice.n(mostStoreClients-leastStoreClients+1)
	end := time.Now().Add(trafficLasts)
	w.storeClients.Over = func() bool { return !time.Now().Before(end) }
	all.Go(func() { w.storeClients.Keep(count, seed) })
	for i := range scenarioCount {
		at := w.dice.between(0, trafficLasts)
		play := pick(w.dice, scenarios...)
		all.Go(func() {
			time.Sleep(at)
			play(&scenario{w, events.TaskID(fmt.Sprintf("task-%d", i))})
		})
	}
	all.Wait()
}

// client is a client or, now and then, a node that runs.
func (s *scenario) client() *process { return s.w.someClient() }

// pause lets up to most pass.
func (s *scenario) pause(most time.Duration) { time.Sleep(s.w.dice.between(0, most)) }

// submit submits, and lets somebody wait for the outcome, now and then.
func (s *scenario) submit(o order) (task string) {
	p := s.client()
	o.raw = s.w.dice.chance(rawShare)
	f, op := s.w.caller().submit(p, o)
	if op.Answer == history.OK && s.w.dice.chance(0.4) {
		s.await(p, f, o.request)
	} else {
		f.Close()
	}
	return op.Task
}

// await waits for a future on the side.
func (s *scenario) await(p *process, f *engine.Future, request string) {
	s.w.waits.Go(func() { s.w.caller().wait(p, f, request) })
}

// attach lets somebody else wait for the task.
func (s *scenario) attach(task string) {
	p := s.client()
	s.w.waits.Go(func() { s.w.caller().waitAttached(p, events.TaskID(task)) })
}

func (s *scenario) operate(verb history.Verb, task string) {
	if task != "" {
		s.w.caller().operate(s.client(), verb, task)
	}
}

func (s *scenario) get(task string) {
	if task != "" {
		s.w.caller().get(s.client(), task)
	}
}

func (s *scenario) settings() {
	c := s.w.caller()
	c.settings(s.client(), c.timeout())
}

// work draws how many milliseconds an attempt takes.
func (s *scenario) work(most int) int { return s.w.dice.n(most + 1) }

func (s *scenario) simple() {
	task := s.submit(order{behavior: once, job: job{Work: s.work(100)}})
	s.pause(300 * time.Millisecond)
	s.get(task)
	s.submit(order{behavior: once, job: job{Work: s.work(300), Snooze: s.w.dice.n(2)}})
	s.pause(time.Second)
	s.get(task)
}

// twins submits one id several times at once.
func (s *scenario) twins() {
	var both sync.WaitGroup
	for range 2 + s.w.dice.n(2) {
		both.Go(func() { s.submit(order{id: s.id, behavior: once, job: job{Work: s.work(400)}}) })
	}
	both.Wait()
	s.pause(500 * time.Millisecond)
	s.attach(string(s.id))
	s.get(string(s.id))
}

func (s *scenario) delayed() {
	s.submit(order{id: s.id, behavior: once, job: job{Work: s.work(100)}, delay: s.w.dice.between(100*time.Millisecond, 3*time.Second)})
	s.pause(time.Second)
	s.operate(pick(s.w.dice, history.RunNow, history.RunNow, history.Cancel, history.Delete), string(s.id))
	s.get(string(s.id))
}

// overdue has a deadline, before or after the end of its first run, and begins another one.
func (s *scenario) overdue() {
	o := order{
		id:       s.id,
		behavior: pick(s.w.dice, once, again, merge),
		job:      job{Work: pick(s.w.dice, 50, 400, 1500), Fails: s.w.dice.n(3)},
		delay:    pick(s.w.dice, 0, 0, 300*time.Millisecond),
		within:   s.w.dice.between(400*time.Millisecond, 3*time.Second),
		tags:     pick(s.w.dice, nil, []string{"overdue"}),
	}
	task := s.submit(o)
	if s.w.dice.chance(0.3) {
		s.operate(history.Suspend, task)
	}
	s.pause(3 * time.Second)
	s.get(task)
	if task == "" {
		return
	}
	s.attach(task)
	o.within = pick(s.w.dice, 0, o.within)
	s.submit(o)
	s.operate(pick(s.w.dice, history.Retry, history.Resume, history.Resume), task)
	s.pause(2 * time.Second)
	s.operate(history.Resume, task)
}

func (s *scenario) unlucky() {
	task := s.submit(order{behavior: again, job: job{Work: s.work(50), Fails: 1 + s.w.dice.n(4), Panics: s.w.dice.chance(0.2)}})
	s.pause(time.Second)
	s.get(task)
	s.operate(pick(s.w.dice, history.Cancel, history.Suspend, history.RunNow), task)
	s.operate(history.Resume, task)
}

func (s *scenario) repeated() {
	s.submit(order{id: s.id, behavior: again, job: job{Work: s.work(100), Runs: 2 + s.w.dice.n(3)}})
	s.pause(time.Second)
	s.attach(string(s.id))
	s.pause(time.Second)
	s.operate(pick(s.w.dice, history.Cancel, history.RunNow, history.Delete), string(s.id))
	s.get(string(s.id))
}

// regular is a task that its policy repeats after any end of a run, until somebody cancels or deletes it.
func (s *scenario) regular() {
	ends := make([]byte, 1+s.w.dice.n(6))
	for i := range ends {
		ends[i] = allEndings[s.w.dice.n(len(allEndings))]
	}
	o := order{id: s.id, behavior: every, job: job{Work: s.work(300), Ends: string(ends)}, delay: pick(s.w.dice, 0, 0, 300*time.Millisecond)}
	for range 1 + s.w.dice.n(2) { // the second one joins it, or begins another life
		s.submit(o)
		s.pause(2 * time.Second)
		s.attach(string(s.id))
		s.operate(pick(s.w.dice, history.RunNow, history.Suspend, history.Retry, history.Cancel), string(s.id))
		s.get(string(s.id))
		s.pause(time.Second)
		s.operate(history.Resume, string(s.id))
		s.pause(time.Second)
		s.stop(string(s.id))
		s.get(string(s.id))
	}
}

// stop cancels or deletes a task, again until it is told that there is nothing to cancel.
func (s *scenario) stop(task string) {
	for range 6 {
		verb := pick(s.w.dice, history.Cancel, history.Cancel, history.Delete)
		if op := s.w.caller().operate(s.client(), verb, task); op.Answer == history.Absent || verb == history.Cancel && op.Answer == history.OK {
			return
		}
		s.pause(time.Second)
	}
}

func (s *scenario) long() {
	s.submit(order{id: s.id, behavior: once, job: job{Work: 2000 + s.work(2500)}})
	s.pause(time.Second)
	s.get(string(s.id))
	if s.w.dice.chance(0.4) {
		s.operate(history.Cancel, string(s.id))
	}
	s.submit(order{id: s.id, behavior: once, job: job{Work: 100}})
}

func (s *scenario) doomed() {
	s.submit(order{id: s.id, behavior: once, job: job{Work: s.work(50), Dooms: 1}})
	s.pause(2 * time.Second)
	s.operate(history.Retry, string(s.id))
	s.pause(500 * time.Millisecond)
	s.attach(string(s.id))
	s.get(string(s.id))
}

func (s *scenario) suspended() {
	s.submit(order{id: s.id, behavior: once, job: job{Work: s.work(100)}, delay: 300 * time.Millisecond})
	s.operate(history.Suspend, string(s.id))
	s.pause(time.Second)
	s.get(string(s.id))
	s.operate(history.Resume, string(s.id))
}

func (s *scenario) runAgain() {
	work := job{Work: s.work(200)}
	for i := range 2 + s.w.dice.n(2) {
		own := fmt.Sprint("own ", i) // tells which run its future is for
		s.submit(order{id: s.id, behavior: again, job: work, request: pick(s.w.dice, "", "shared", own, own)})
		s.pause(time.Second)
	}
	s.get(string(s.id))
}

func (s *scenario) merged() {
	var all sync.WaitGroup
	for range 2 + s.w.dice.n(2) {
		all.Go(func() {
			s.pause(300 * time.Millisecond)
			s.submit(order{id: s.id, behavior: merge, job: job{Work: s.work(300)}, delay: time.Duration(s.work(200)) * time.Millisecond})
		})
	}
	all.Wait()
	s.get(string(s.id))
}

func (s *scenario) timed() {
	task := s.submit(order{behavior: brief, job: job{Work: pick(s.w.dice, 100, 600, 900)}})
	s.pause(time.Second)
	s.get(task)
	s.operate(pick(s.w.dice, history.Retry, history.Cancel), task)
	if task != "" { // others may have made it forgotten by now
		s.pause(2 * time.Second)
		s.attach(task)
	}
}

// keyed is a request without an id: at once from several places, after its end, and with another one under its key.
func (s *scenario) keyed() {
	o := order{behavior: pick(s.w.dice, once, again, brief, merge), request: "key of " + string(s.id), job: job{Work: s.work(300)},
		delay: pick(s.w.dice, 0, 0, 200*time.Millisecond), by: pick(s.w.dice, "", "ada", "bob")}
	for range 2 {
		var all sync.WaitGroup
		for range 1 + s.w.dice.n(3) {
			all.Go(func() {
				s.pause(300 * time.Millisecond)
				s.submit(o)
			})
		}
		if s.w.dice.chance(0.3) { // somebody else has another task under the key
			all.Go(func() {
				other := o
				other.by, other.job.Work = "eve", s.work(300)
				s.submit(other)
			})
		}
		all.Wait()
		s.pause(2 * time.Second)
		if s.w.dice.chance(0.3) {
			other := o
			if s.w.dice.chance(0.5) {
				other.job.Work++
			} else {
				other.priority = 1
			}
			s.submit(other)
		}
	}
	task := s.submit(o)
	s.get(task)
	s.operate(pick(s.w.dice, history.Delete, history.Retry, history.Cancel), task)
	s.submit(o)
}

// agreed is a task that others join with requests and terms of their own: those of the last one hold.
func (s *scenario) agreed() {
	o := order{id: s.id, behavior: pick(s.w.dice, once, again, brief, merge), job: job{Work: pick(s.w.dice, 100, 1500)}, delay: pick(s.w.dice, 0, 700*time.Millisecond)}
	s.submit(o)
	var all sync.WaitGroup
	for i := range 2 + s.w.dice.n(3) {
		all.Go(func() {
			s.pause(time.Second)
			other := o
			other.priority, other.losses = int64(s.w.dice.n(3)), s.w.dice.n(3)
			other.request = pick(s.w.dice, "", fmt.Sprint("join ", i))
			s.submit(other)
			s.get(string(s.id))
		})
	}
	all.Wait()
	s.get(string(s.id))
}

// paused has somebody pause a behavior that no task has, for a reason, and read what is paused; the pause may stay.
func (s *scenario) paused() {
	behavior, reason := fmt.Sprint("spare-", s.w.dice.n(spares)), "for "+string(s.id)
	s.w.caller().pause(s.client(), true, behavior, reason)
	s.pause(time.Second)
	s.settings()
	if s.w.dice.chance(0.6) {
		s.w.caller().pause(s.client(), false, behavior, "")
		s.settings()
	}
}

// listed reads a list in pages, beside all that goes on.
func (s *scenario) listed() {
	s.submit(order{id: s.id, behavior: once, job: job{Work: s.work(100)}})
	s.w.caller().list(s.client(), pick(s.w.dice, "", "", once, again), 1+s.w.dice.n(40))
}

// many is a request of several tasks, under one key or none, which is repeated.
func (s *scenario) many() {
	orders := make([]order, 1+s.w.dice.n(12))
	for i := range orders {
		orders[i] = order{behavior: pick(s.w.dice, once, again), job: job{Work: s.work(100)}, delay: pick(s.w.dice, 0, 0, 300*time.Millisecond)}
		if s.w.dice.chance(0.3) {
			orders[i].id = s.id + events.TaskID(fmt.Sprint("/", i))
		}
	}
	key, by := "", pick(s.w.dice, "", "ada")
	if s.w.dice.chance(0.6) {
		key = "key of " + string(s.id)
	}
	for range 1 + s.w.dice.n(3) {
		s.w.caller().submitMany(s.client(), orders, key, by)
		s.pause(time.Second)
	}
}

// forbidden asks for what must be refused.
func (s *scenario) forbidden() {
	o := order{id: s.id, behavior: once}
	switch s.w.dice.n(5) {
	case 0:
		o.id, o.forbidden = "store:"+s.id+"/1", "reserved affinity"
	case 1:
		o.priority, o.forbidden = events.MaxPriority+1, "priority"
	case 2:
		o.id, o.request, o.forbidden = "", strings.Repeat("k", events.MaxKeyBytes+1), "request key"
	case 3:
		o.id, o.forbidden = events.Settings, "reserved id"
	default:
		s.w.caller().pause(s.client(), true, "spare-0", strings.Repeat("x", events.MaxNameBytes+1))
		return
	}
	s.submit(o)
}

// reborn is a task of several lives.
func (s *scenario) reborn() {
	for life := range 2 {
		s.submit(order{id: s.id, behavior: once, job: job{Work: s.work(100)}, request: fmt.Sprint("life ", life)})
		s.pause(time.Second)
		s.operate(history.Delete, string(s.id))
	}
	s.submit(order{id: s.id, behavior: once, request: "life 2"})
}
