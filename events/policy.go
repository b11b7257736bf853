package events

import (
	"fmt"
	"math"
	"time"

	"taskledger/internal/wire"
)

// Policy is what an owner must know of a behavior to decide without its code. It is recorded in Created. The zero value
// of each field selects the default. Times count in whole milliseconds, rounded up.
type Policy struct {
	Timeout     time.Duration // of one attempt; 0 = none
	MaxAttempts int           // failed attempts of one run before the failure is final; default 25
	MaxLost     int           // losses of one run before it fails as "lost"; default 5
	LostDelay   time.Duration // from a loss to the next attempt; default 0: at once
	Backoff     Backoff       // from a failure to the next attempt
	Existing    Existing      // what a submit does that meets a final record
	Priority    int64         // higher first; 0 to 9,223,371; default 0
	Retain      time.Duration // of a finished task in memory; default 24h
}

// Backoff is exponential with full jitter: before retry k the wait is random between 0 and min(Max, Base*2^(k-1)).
// Defaults 1s and 1h.
type Backoff struct{ Base, Max time.Duration }

// Existing says what a submit does that meets a final record of the same id.
type Existing uint8

const (
	ReturnRecorded Existing = iota // the recorded outcome, while it is retained
	RunAgain                       // a new run with a fresh budget
)

// maxCount bounds the attempts and losses that a policy can allow.
const maxCount = 1_000_000

// maxDuration keeps every point in time that a policy can lead to far from overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

// IsComplete reports whether the policy is what Complete returns of some policy: in range, in whole milliseconds, and
// with no default left to fill in.
func (p *Policy) IsComplete() bool {
	for _, d := range [...]time.Duration{p.Timeout, p.LostDelay, p.Backoff.Base, p.Backoff.Max, p.Retain} {
		if d < 0 || d > maxDuration || d%time.Millisecond != 0 {
			return false
		}
	}
	return p.Backoff.Base > 0 && p.Backoff.Max > 0 && p.Retain > 0 && p.MaxAttempts > 0 && p.MaxAttempts <= maxCount &&
		p.MaxLost > 0 && p.MaxLost <= maxCount && p.Priority >= 0 && p.Priority <= MaxPriority && p.Existing <= RunAgain
}

// Complete returns the policy with every default filled in, or an error that names the field out of range.
func (p Policy) Complete() (Policy, error) {
	if p.IsComplete() {
		return p, nil
	}
	for _, d := range []struct {
		name string
		at   *time.Duration
		def  time.Duration
	}{
		{"timeout", &p.Timeout, 0},
		{"lost delay", &p.LostDelay, 0},
		{"backoff base", &p.Backoff.Base, time.Second},
		{"backoff max", &p.Backoff.Max, time.Hour},
		{"retain", &p.Retain, 24 * time.Hour},
	} {
		if *d.at < 0 || *d.at > maxDuration {
			return p, fmt.Errorf("policy: %s %s, want 0 to %s", d.name, *d.at, maxDuration)
		}
		if *d.at == 0 {
			*d.at = d.def
		}
		*d.at = (*d.at + time.Millisecond - 1).Truncate(time.Millisecond) // a short time is not none
	}
	for _, n := range []struct {
		name string
		at   *int
		def  int
	}{
		{"max attempts", &p.MaxAttempts, 25},
		{"max lost", &p.MaxLost, 5},
	} {
		if *n.at < 0 || *n.at > maxCount {
			return p, fmt.Errorf("policy: %s %d, want 0 to %d", n.name, *n.at, maxCount)
		}
		if *n.at == 0 {
			*n.at = n.def
		}
	}
	if p.Priority < 0 || p.Priority > MaxPriority {
		return p, fmt.Errorf("policy: priority %d, want 0 to %d", p.Priority, MaxPriority)
	}
	if p.Existing > RunAgain {
		return p, fmt.Errorf("policy: existing %d is unknown", p.Existing)
	}
	return p, nil
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

// Encode writes the policy as an array of integers, times in milliseconds.
func (p *Policy) Encode(w *wire.Writer) {
	w.Array(9)
	for _, v := range [...]int64{p.Timeout.Milliseconds(), int64(p.MaxAttempts), int64(p.MaxLost), p.LostDelay.Milliseconds(),
		p.Backoff.Base.Milliseconds(), p.Backoff.Max.Milliseconds(), int64(p.Existing), p.Priority, p.Retain.Milliseconds()} {
		w.Int(v)
	}
}

// Decode reads what Encode wrote.
func (p *Policy) Decode(r *wire.Reader) {
	r.ArrayOf(9)
	millis := func() time.Duration {
		v := r.Int()
		if v < 0 || v > maxDuration.Milliseconds() {
			r.Fail("policy: %d ms out of range", v)
		}
		return time.Duration(v) * time.Millisecond
	}
	p.Timeout, p.MaxAttempts, p.MaxLost, p.LostDelay = millis(), int(r.Int()), int(r.Int()), millis()
	p.Backoff.Base, p.Backoff.Max = millis(), millis()
	p.Existing, p.Priority, p.Retain = Existing(upTo(r, math.MaxUint8)), r.Int(), millis()
}
