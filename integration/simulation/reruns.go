//go:build !faketime

package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// reruns collects the times that tasks of killed nodes took to run again.
type reruns struct {
	alone []time.Duration // after kills with no other fault around, and slots free
	other []time.Duration // after the others; what is later than promised counts as check.Slots.Waited says
	led   []time.Duration // of the others: where etcd elected a leader meanwhile, which gives every lease its full time again
	short []time.Duration // of the others: where slots are few, and may all be taken
	late  int             // of those alone: that took longer than promised
	slow  []string        // of those alone: which took longer by more than leases do
	among []string        // of the others: which took longer than 99 of 100 may
}

// leaseLate bounds the delay with which etcd ends a lease: it looks twice a second.
const leaseLate = 500 * time.Millisecond

// Among other faults, which may keep those who could run a task from it one after another, 99 of 100 run again within two TTLs, and all
// within three and a second.
const (
	amongMost = 6 * time.Second
	amongEach = 10 * time.Second
)

// add times what ran on nodes that were killed.
func (r *reruns) add(h *history.Run) {
	ttl := time.Duration(h.Info.TTLMs) * time.Millisecond
	slots := sync.OnceValue(func() *check.Slots { return check.SlotsOf(h) })
	for i := range h.Faults {
		kill := &h.Faults[i]
		if kill.Kind != history.KillKind && kill.Kind != "kill" {
			continue
		}
		for _, again := range h.Reruns(kill) {
			took := time.Duration(again.Next - kill.From)
			switch {
			case again.Next == 0:
			case crowded(h):
				r.short = append(r.short, took)
			case elected(h, kill.From, again.Next):
				r.led = append(r.led, took)
			case kill.Kind != history.KillKind || !h.Alone(kill, kill.From-int64(ttl)+1, again.Next):
				if took > ttl+check.RerunPromise {
					took = slots().Waited(again.Task, kill.From, again.Next)
				}
				r.other = append(r.other, took)
				if took > amongMost {
					r.among = append(r.among, fmt.Sprintf("seed %d: task %s, after %s", h.Info.Seed, again.Task, took))
				}
			default:
				r.alone = append(r.alone, took)
				if took > ttl+check.RerunPromise {
					r.late++
				}
				if took > ttl+check.RerunPromise+leaseLate {
					r.slow = append(r.slow, fmt.Sprintf("seed %d: task %s, after %s", h.Info.Seed, again.Task, took))
				}
			}
		}
	}
}

// elected reports whether etcd elected a leader between two times.
func elected(h *history.Run, from, until int64) bool {
	return slices.ContainsFunc(h.Faults, func(f history.Fault) bool {
		return f.Kind == "leader change" && f.From < until && f.Until > from
	})
}

// crowded reports whether every node had two slots at most, or behaviors a limit.
func crowded(h *history.Run) bool {
	most := 0
	for i := range h.Keys {
		most = max(most, h.Keys[i].Slots)
	}
	return most > 0 && most <= 2 || len(h.Info.Limits) > 0
}

func (r *reruns) String() string {
	text := fmt.Sprintf("run again after a kill: %s, %d later than promised\nrun again after a kill among other faults: %s\n  and across an election: %s\n  and with two slots a node at most, or limits: %s",
		check.Spread(r.alone), r.late, check.Spread(r.other), check.Spread(r.led), check.Spread(r.short))
	for _, slow := range r.slow {
		text += "\n  much later than promised: " + slow
	}
	for _, slow := range r.among {
		text += "\n  late among other faults: " + slow
	}
	return text
}

// tooLate reports whether tasks ran again too late among other faults: more than one of 100, or one of them much.
func (r *reruns) tooLate() bool {
	return len(r.among)*100 > len(r.other) || len(r.other) > 0 && slices.Max(r.other) > amongEach
}
