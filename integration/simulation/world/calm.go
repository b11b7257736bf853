package world

import (
	"math"
	"sync"
	"time"
)

const (
	// calm is longer than faults may be felt after their end: a fault that comes then meets nothing of them.
	calm = 2*ttl + 6*time.Second
	// trickleEvery is the mean time between two submits while it is quiet.
	trickleEvery = 4 * time.Second
	// visitShare is the share of these beside which a client of a task store does something.
	visitShare = 0.4
)

// trickle submits something small now and then, for a while.
func (w *world) trickle(lasts time.Duration) {
	for end := time.Now().Add(lasts); ; {
		time.Sleep(min(w.dice.between(0, 2*trickleEvery), time.Until(end)))
		if !time.Now().Before(end) {
			return
		}
		w.oneMore()
		if w.dice.chance(visitShare) {
			w.storeClients.Visit(w.dice.n(math.MaxInt))
		}
		w.storeClients.Pass()
	}
}

// oneMore submits a small task, which is tried again now and then.
func (w *world) oneMore() {
	o := order{behavior: once, job: job{Work: w.dice.n(50)}}
	if w.dice.chance(0.3) {
		o = order{behavior: again, job: job{Work: w.dice.n(50), Fails: 1}}
	}
	(&scenario{w: w}).submit(o)
}

// burst submits tasks that work so many milliseconds at once.
func (w *world) burst(n, work int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() { w.caller().submit(w.clients[0], order{behavior: once, job: job{Work: work}}) })
	}
	all.Wait()
}
