package events

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"

	"taskledger/internal/wire"
)

// Policy holds the facts about a behavior that an owner needs to decide without its code. It is recorded in Created.
// The zero value of each field selects the default. Times count in whole milliseconds, rounded up.
//
// Times are 0 to 10 years (3,650 days), counts 0 to 1,000,000. A Timeout of 0 has no end; no other value means "for
// ever".
type Policy struct {
	Timeout     time.Duration // longest time of one attempt; 0 = without an end
	MaxAttempts int           // failed attempts of one run before the failure is final; default 25
	MaxLost     int           // losses of one run before it fails as "lost"; default 10
	LostDelay   time.Duration // longest wait after the second loss of a run; default 4s: see LostWait
	Backoff     Backoff       // from a failure to the next attempt
	Existing    Existing      // what a submit does when the task of its id has ended for good
	Priority    int64         // 0 to 9,223,371, higher first among the ready tasks of the shards of a node; default 0
	Retain      time.Duration // how long memory keeps a task after SUCCESS; default 24h. It keeps failures for 14 days
	RetainCount int           // most tasks of the behavior that a shard keeps in memory after SUCCESS; default 10,000
	// Every is the wait from the end of a run to the next run, whatever that end was: a success, a failure that is
	// final, a run that was lost too often. A time that the behavior itself asks for takes its place once. Only a
	// cancel or a delete ends such a repetition; it waits while the store is almost full. 0 = the task is not
	// repeated unless its behavior asks for it.
	Every time.Duration
}

// Backoff is exponential with full jitter: before retry k the wait is random between 0 and min(Max, Base*2^(k-1)).
// Defaults 1s and 1h.
type Backoff struct{ Base, Max time.Duration }

// Existing says what a submit does when the task of its id has ended for good.
type Existing uint8

const (
	ReturnRecorded Existing = iota // the recorded outcome, while it is retained
	// RunAgain is a new run with a fresh budget and the parameters that the task has: those of the submit that made
	// it, unless they were merged. Where journals are dropped nothing keeps them once the task has ended, and the
	// new run has those of its submit.
	RunAgain
)

// MaxPolicyCount bounds the attempts, losses and finished tasks that a policy can allow.
const MaxPolicyCount = 1_000_000

// maxDuration keeps every point in time that a policy can lead to far from overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

// IsComplete reports whether the policy is what Complete returns of some policy: in range, in whole milliseconds, and
// with no default left to fill in.
func (p *Policy) IsComplete() bool {
	for _, d := range [...]time.Duration{p.Timeout, p.LostDelay, p.Backoff.Base, p.Backoff.Max, p.Retain, p.Every} {
		if d < 0 || d > maxDuration || d%time.Millisecond != 0 {
			return false
		}
	}
	return p.LostDelay > 0 && p.Backoff.Base > 0 && p.Backoff.Max > 0 && p.Retain > 0 && p.MaxAttempts > 0 && p.MaxAttempts <= MaxPolicyCount &&
		p.MaxLost > 0 && p.MaxLost <= MaxPolicyCount && p.RetainCount > 0 && p.RetainCount <= MaxPolicyCount &&
		p.Priority >= 0 &&
		p.Priority <= MaxPriority &&
		p.Existing <= RunAgain
}

// Complete returns the policy with every default filled in, or an error that names the field out of range.
func (p Policy) Complete() (Policy, error) {
	if p.IsComplete() {
		return p, nil
	}
	full := Policy{
		Timeout:     orDefault(p.Timeout, 0),
		MaxAttempts: cmp.Or(p.MaxAttempts, 25),
		MaxLost:     cmp.Or(p.MaxLost, 10),
		LostDelay:   orDefault(p.LostDelay, 4*time.Second),
		Backoff:     Backoff{orDefault(p.Backoff.Base, time.Second), orDefault(p.Backoff.Max, time.Hour)},
		Existing:    p.Existing,
		Priority:    p.Priority,
		Retain:      orDefault(p.Retain, 24*time.Hour),
		RetainCount: cmp.Or(p.RetainCount, 10_000),
		Every:       orDefault(p.Every, 0),
	}
	if full.IsComplete() {
		return full, nil
	}
	return p, p.outOfRange()
}

// orDefault rounds up to whole milliseconds: a short time is not none.
func orDefault(d, def time.Duration) time.Duration {
	switch {
	case d == 0:
		return def
	case d < 0:
		return d
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

func (p *Policy) outOfRange() error {
	for _, d := range []struct {
		name string
		is   time.Duration
	}{{"timeout", p.Timeout}, {"lost delay", p.LostDelay}, {"backoff base", p.Backoff.Base}, {"backoff max", p.Backoff.Max},
		{"retain", p.Retain}, {"every", p.Every}} {
		if d.is < 0 || d.is > maxDuration {
			return fmt.Errorf("policy: %s %s, want 0 to %s", d.name, d.is, maxDuration)
		}
	}
	for _, n := range []struct {
		name string
		is   int
	}{{"max attempts", p.MaxAttempts}, {"max lost", p.MaxLost}, {"retain count", p.RetainCount}} {
		if n.is < 0 || n.is > MaxPolicyCount {
			return fmt.Errorf("policy: %s %d, want 0 to %d", n.name, n.is, MaxPolicyCount)
		}
	}
	if p.Existing > RunAgain {
		return fmt.Errorf("policy: existing %d, want 0 to %d", p.Existing, RunAgain)
	}
	return fmt.Errorf("policy: priority %d, want 0 to %d", p.Priority, MaxPriority)
}

// Delay returns the wait before the next attempt after the given number of failures of a run, at least 1; random is
// drawn by the caller from [0, 1).
func (b Backoff) Delay(failures int, random float64) time.Duration {
	limit := b.Base
	for i := 1; i < failures && limit < b.Max; i++ {
		limit *= 2
	}
	return time.Duration(random * float64(min(limit, b.Max)))
}

const (
	// lostGrowth is the factor by which the step grows from one loss of a run to the next: after a few losses the
	// tasks that shared a node when one of them killed it share it no longer.
	lostGrowth = 4
	// maxLostStep bounds the steps of a policy whose first one is not longer.
	maxLostStep = time.Hour
)

// LostWait is the wait from a loss of an attempt to the next attempt of its task. losses counts those of the run,
// with this one; started names the attempt. The first loss waits for nothing. After the second one the wait is
// between half of LostDelay and all of it, and each further step is four times as long, up to an hour or LostDelay.
// The place within the step follows from the task and the attempt alone.
func (p *Policy) LostWait(losses int, task TaskID, started Ref) time.Duration {
	if losses < 2 {
		return 0
	}
	step, most := p.LostDelay, max(p.LostDelay, maxLostStep)
	for i := 2; i < losses && step < most; i++ {
		step = min(lostGrowth*step, most)
	}
	sum := xxhash.Sum64(binary.BigEndian.AppendUint64([]byte(task), uint64(started)))
	return step/2 + time.Duration(float64(sum>>11)/(1<<53)*float64(step/2))
}

// Encode writes the policy as an array of integers, times in milliseconds.
func (p *Policy) Encode(w *wire.Writer) {
	w.Array(11)
	for _, v := range [...]int64{p.Timeout.Milliseconds(), int64(p.MaxAttempts), int64(p.MaxLost), p.LostDelay.Milliseconds(),
		p.Backoff.Base.Milliseconds(), p.Backoff.Max.Milliseconds(), int64(p.Existing), p.Priority, p.Retain.Milliseconds(), int64(p.RetainCount), p.Every.Milliseconds()} {
		w.Int(v)
	}
}

// Decode reads what Encode wrote; whether it is in range is for Complete to say.
func (p *Policy) Decode(r *wire.Reader) {
	r.ArrayOf(11)
	millis := func() time.Duration {
		return Milliseconds(r.Int())
	}
	p.Timeout, p.MaxAttempts, p.MaxLost, p.LostDelay = millis(), int(r.Int()), int(r.Int()), millis()
	p.Backoff.Base, p.Backoff.Max = millis(), millis()
	p.Existing, p.Priority, p.Retain, p.RetainCount = Existing(min(r.Uint(), math.MaxUint8)), r.Int(), millis(), int(r.Int())
	p.Every = millis()
}
