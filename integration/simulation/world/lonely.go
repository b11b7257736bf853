package world

import (
	"fmt"
	"time"

	"taskledger/integration/robustness/history"
)

const (
	// foundWithin bounds the time after its clock has gone an hour wrong in which a node may raise no alarm, and own
	// shards.
	foundWithin = 10 * time.Second
	// lonelyTasks of lonelyWork milliseconds are more than few slots have done in a second.
	lonelyTasks = 16
	lonelyWork  = 2000
)

// minutesAloneWithoutBus has one node that has no bus while the others have it, with more to do now and then than the
// others have slots for, if those are few. It loses the bus, or begins without it. Sometimes its clock goes wrong then.
func (w *world) minutesAloneWithoutBus() {
	name := someNode(w)
	p := w.process(name)
	if p == nil {
		return
	}
	from := w.record.Now()
	w.beBusless(name)
	if w.dice.chance(0.5) {
		p.port.disconnect(true)
	} else if p = w.beginsAnew(name); p == nil {
		return // which is damage
	}
	hits := since(muffled, p.port.hits)
	time.Sleep(calm)
	w.burst(lonelyTasks, lonelyWork)
	w.trickle(w.dice.between(65*time.Second, 100*time.Second))
	w.burst(lonelyTasks, lonelyWork)
	w.trickle(2 * calm)
	if w.dice.chance(0.4) {
		w.anHourOff(p)
	}
	w.trickle(calm)
	w.beBusless("")
	p.port.disconnect(false)
	w.record.Fault(history.Fault{Kind: history.BusAwayFromOneKind, Target: name, From: from, Until: w.record.Now(), Proof: hits()})
}

// beginsAnew stops a node in order and begins it again, and returns it when it serves; nil if it does not begin.
func (w *world) beginsAnew(name string) *process {
	w.happens(comeKind, name, func() string {
		p := w.takeDown(name)
		p.leave()
		w.abandon(p)
		w.bringUp(name)
		return w.awaitReady(name)
	})
	return w.process(name)
}

// anHourOff lets the clock of a node be an hour off while next to nothing happens. The node must find out, and own no
// shards then.
func (w *world) anHourOff(p *process) {
	step := pick(w.dice, -time.Hour, time.Hour)
	looks, alarms := since(misread, p.hits), since(alarmed, p.hits)
	w.happens(jumpKind, p.name, func() string {
		w.misset(p, step)
		time.Sleep(foundWithin)
		if alarms() == "" {
			w.record.Damage(served, "%s has no bus, and has not found its clock wrong %s after that went %s off", p.name, foundWithin, step)
		}
		if n := len(w.shardsOf(p.node.SessionID())); n > 0 {
			w.record.Damage(served, "%s owns %d shards %s after its clock went %s off", p.name, n, foundWithin, step)
		}
		w.misset(p, 0)
		if proof := looks(); proof != "" {
			return fmt.Sprintf("%s, %s off", proof, step)
		}
		return ""
	})
}
