package work

import (
	"strconv"
	"time"

	"taskledger/work/workledger"
)

// Reaction says what happens to an item that ended with an error.
type Reaction uint8

// The reactions.
const (
	// GoOn counts the item as failed and goes on, as without a rule.
	GoOn Reaction = iota
	// Ignore counts the item as skipped and keeps no error.
	Ignore
	// Retry processes the item again, after a back-off, up to Times times. Meanwhile the item keeps its key, so those
	// behind it wait, and no thread. Repetitions by other rules count, too. When it fails once more, the rules behind
	// this one decide.
	Retry
	// Stop ends the work at the Times-th item that meets the rule in the run of the partition. The items before it count
	// as failed. As for Permit, items of one bucket that have the same key are one item here.
	Stop
	// RetryLater, of streams, has a task of its own process the change again, by the policy of the work. The change counts
	// as failed, and the stream goes on; later changes of its key follow it into that task, and count as skipped.
	RetryLater
	// Park, of streams, sets the change aside in a suspended task, until somebody resumes or deletes that. The change
	// counts as failed, and the stream goes on; later changes of its key follow it unless Pass is set.
	Park
)

var reactions = [...]string{"go on", "ignore", "retry", "stop", "retry later", "park"}

// String returns "go on", "ignore", "retry", "stop", "retry later" or "park".
func (r Reaction) String() string {
	if int(r) < len(reactions) {
		return reactions[r]
	}
	return "reaction " + strconv.Itoa(int(r))
}

// The limits of rules.
const (
	// MaxRetries bounds Times of Retry.
	MaxRetries = 100
	// MaxBackoff bounds the time before a repetition.
	MaxBackoff = time.Hour
	// DefaultBackoff is the back-off of a rule that has none.
	DefaultBackoff = time.Second
)

// Rule says what happens to an item whose error has a code. Of the rules of a partition the first that fits the code
// decides.
type Rule struct {
	// Code is the code that behaviors.Code gave to the error: at most 128 bytes. Errors without one have the code
	// "failed", and panics have the code "panic". "": the rule is for every error.
	Code string
	// React says what happens. The zero value is GoOn.
	React Reaction
	// Times is the number of repetitions of Retry, 1 to MaxRetries, 0 standing for 1; and the number of the failure at
	// which Stop ends the work, counted over all workers, 0 standing for 1. Other reactions have none.
	Times int64
	// Backoff is the time before the first repetition of Retry, up to MaxBackoff; it doubles each time, up to MaxBackoff.
	// 0: DefaultBackoff. Other reactions have none.
	Backoff time.Duration
	// Pass lets later changes of the key be processed while a change is parked. It counts for Park alone.
	Pass bool
}

// backoff returns the time before a repetition, 1 for the first.
func (r Rule) backoff(repetition int64) time.Duration {
	wait := r.Backoff
	for range min(repetition, MaxRetries) - 1 {
		if wait >= MaxBackoff/2 {
			return MaxBackoff
		}
		wait *= 2
	}
	return wait
}

// complete returns the rule with its defaults.
func (r Rule) complete() Rule {
	if r.Times == 0 && (r.React == Retry || r.React == Stop) {
		r.Times = 1
	}
	if r.React == Retry && r.Backoff == 0 {
		r.Backoff = DefaultBackoff
	}
	return r
}

// recordedRules returns rules as a plan has them.
func recordedRules(rules []Rule) []workledger.Rule {
	all := make([]workledger.Rule, len(rules))
	for i, r := range rules {
		all[i] = workledger.Rule{
			Code:    r.Code,
			React:   uint8(r.React),
			Times:   r.Times,
			Backoff: r.Backoff,
		}
	}
	return all
}

// holds reports whether the rule sets a change aside in a task of its own.
func (r Rule) holds() bool { return r.React == RetryLater || r.React == Park }

// counter returns the counter of a rule that stops the work.
func (r Rule) counter(place int) (Threshold, bool) {
	return Threshold{
		Counter: workledger.FailuresPrefix + strconv.Itoa(place),
		Limit:   r.Times - 1,
	}, r.React == Stop
}

// decision holds what the rules say of an error.
type decision struct {
	Rule
	place      int   // of the rule; -1 = none was for the error
	repetition int64 // of Retry, 1 for its first one
}

// decide asks the rules about an error with a code, of an item that was processed try times.
func decide(rules []Rule, code string, try int64) decision {
	for i, r := range rules {
		switch {
		case r.Code != "" && r.Code != code:
		case r.React != Retry || try <= r.Times:
			return decision{r, i, try}
		default:
			try -= r.Times
		}
	}
	return decision{place: -1}
}
