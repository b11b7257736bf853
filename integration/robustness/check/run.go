package check

import (
	"time"

	"taskledger/events"
)

// run counts the failures and losses of a task's present run, and the runs before it.
type run struct {
	rerun    bool // a further run is promised
	runEnded bool // failures and lost belong to a run that is over
	failures uint32
	lost     uint32
	spent    bool          // the run was lost as often as it may be
	runs     uint32        // that have ended
	deadline events.Millis // of the run that is due or under way; 0 = none

	works     bool   // it works on the buckets of a work
	apart     bool   // it does, or on the changes of a hold: attempts count as follows
	sinceLost uint32 // attempts that were lost since it got on
	sinceFail uint32 // attempts that have failed since then
}

// count takes the attempts of a task that works on buckets, or on the changes of a hold, which were lost, and which
// failed, since it got on.
func (r *run) count(losses, failures int, p *events.Policy) {
	r.apart, r.sinceLost, r.sinceFail = true, uint32(losses), uint32(failures)
	r.spent = losses >= p.MaxLost
}

// losses returns how many attempts were lost, as the policy counts them.
func (r *run) losses() uint32 {
	if r.apart {
		return r.sinceLost
	}
	return r.lost
}

// tries returns how many attempts have failed, as the policy counts them.
func (r *run) tries() uint32 {
	if r.apart {
		return r.sinceFail
	}
	return r.failures
}

// begin counts anew when the run before has ended.
func (r *run) begin() {
	if r.runEnded {
		r.failures, r.lost, r.runEnded, r.spent = 0, 0, false, false
	}
}

// lose counts a loss of an attempt.
func (r *run) lose(p *events.Policy) {
	r.lost++
	r.spent = int(r.losses()) >= p.MaxLost
}

// lostWait returns the longest wait after another loss of the run: nothing after the first one, then a step that is
// four times as long after each further one, up to an hour or the first step. The least wait is half of it.
func (r *run) lostWait(p *events.Policy) time.Duration {
	lost := r.losses()
	if lost == 0 {
		return 0
	}
	step, most := p.LostDelay, max(p.LostDelay, time.Hour)
	for range min(lost-1, 32) {
		step = min(4*step, most)
	}
	return step
}

// endRun ends the run.
func (r *run) endRun() {
	r.runs++
	r.runEnded, r.rerun, r.deadline = true, false, 0
}
