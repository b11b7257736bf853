package work

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"taskledger/work/workledger"
)

const (
	// absentFor puts off the first attempt that this node gives back because its definition lacks the partition under way.
	// Further ones wait twice as long as those before, up to absentMost.
	absentFor  = time.Second
	absentMost = time.Minute
	// maxForeign bounds the definitions of others that a work remembers.
	maxForeign = 64
)

// absentError tells that the definition of this node lacks a partition of the run, or counters of one, which another
// node may have.
type absentError struct {
	definition string // by which the run goes on
	problem    string
}

// Error implements error.
func (e *absentError) Error() string { return e.problem }

// countsAlike reports whether a node with the counters here can go on with a partition whose counters are recorded: the
// names are the same. The recorded limit of a threshold counts; that of a rule must be the same, too, as only its place
// names a rule, and another limit may be that of another rule.
func countsAlike(recorded, here []Threshold) bool {
	return len(recorded) == len(here) && !slices.ContainsFunc(recorded, func(r Threshold) bool {
		return !slices.ContainsFunc(here, func(h Threshold) bool {
			return h.Counter == r.Counter &&
				(h.Limit == r.Limit || !strings.HasPrefix(r.Counter, workledger.FailuresPrefix))
		})
	})
}

// foreign remembers the definitions of other nodes by which runs go on here.
type foreign struct {
	mu  sync.Mutex
	all map[string]*stranger
}

// stranger is a definition of other nodes.
type stranger struct {
	differs bool // it was told that the definition is another one
	absent  bool // it was told that a part of it is absent here
	wait    time.Duration
	until   time.Time // attempts that are given back until then wait as long as the one before
}

// of returns what is known of a definition. The lock is held.
func (f *foreign) of(definition string) *stranger {
	is := f.all[definition]
	if is == nil {
		if f.all == nil || len(f.all) >= maxForeign {
			f.all = map[string]*stranger{}
		}
		is = new(stranger)
		f.all[definition] = is
	}
	return is
}

// differs reports whether it is the first time that a run goes on here by a definition.
func (f *foreign) differs(definition string) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := f.of(definition)
	first, is.differs = !is.differs, true
	return first
}

// absent returns how long an attempt is put off that is given back, and whether it is the first one of its definition.
func (f *foreign) absent(definition string, now time.Time) (wait time.Duration, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := f.of(definition)
	if !now.Before(is.until) {
		is.wait = min(max(2*is.wait, absentFor), absentMost)
		is.until = now.Add(is.wait)
	}
	first, is.absent = !is.absent, true
	return is.wait, first
}

// putOff returns how long an attempt is put off that is given back because this node cannot go on with the run, and
// says so in the log once for each definition.
func (w *Work[P, I]) putOff(ctx context.Context, log *slog.Logger, e *absentError) time.Duration {
	wait, first := w.foreign.absent(e.definition, time.Now())
	if first && log != nil {
		const say = "attempts are given back for other nodes: this one cannot go on with the run"
		log.WarnContext(ctx, say, "work", w.id, "recorded", e.definition, "here", w.hash(), "reason", e.problem)
	}
	return wait
}
