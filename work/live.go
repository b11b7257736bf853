package work

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"taskledger/work/internal/threads"
)

// live is a run of a stream that fetches its changes.
type live[P, C any] struct {
	*streamRun[P, C]
	came    int64  // changes
	last    string // the token that came last
	met     bool   // the change came at which the run ends, as its simulation did
	visited visited
}

// until returns the token of the last change of the run, "" if none is the last one.
func (r *live[P, C]) until() string {
	if r.Imprecise {
		return ""
	}
	return r.position.Until
}

func (r *live[P, C]) run(ctx context.Context) error {
	r.mover.whole = r.Imprecise
	r.mover.simulates = r.plan.Mode != Full && !r.plan.MovesToken && !r.Imprecise
	r.last, r.visited = r.position.Token, newVisited()
	if r.until() != "" && r.until() == r.position.Token { // nothing was simulated
		return nil
	}
	err := r.process(ctx, source[C]{
		items:  r.arrivals,
		admit:  r.admit,
		behind: r.behind,
	})
	if err == nil && r.until() != "" && !r.met {
		const say = "the change at which the simulation ended did not come: changes may have been taken that were not simulated"
		r.log.WarnContext(ctx, say, "stream", r.plan.ID, "simulated_to", r.until(), "token", r.last)
	}
	return r.finish(ctx, err)
}

// behind names the change that came last.
func (r *live[P, C]) behind() string {
	return fmt.Sprintf("behind change %d, at the token %.64q", r.came, r.last)
}

// arrivals yields what Changes does.
func (r *live[P, C]) arrivals(ctx context.Context) iter.Seq2[*arrival[C], error] {
	return func(yield func(*arrival[C], error) bool) {
		var stands standing
		changes := r.Changes(&scope{Context: ctx, info: r.info}, r.params, r.position.Token)
		changes(func(c Change[C], err error) bool {
			if stands.again(ctx, c.Position && err == nil, c.Token) {
				r.log.WarnContext(ctx, "the source tells one position again and again: it is heard once a second",
					"stream", r.plan.ID, "position", c.Token)
			}
			if err != nil && (c.Token == "" || c.Key == "" || c.Position) {
				return yield(nil, err)
			}
			return yield(&arrival[C]{
				key: c.Key,
				parts: []part[C]{{
					Change: c,
					unread: err,
					at:     c.Token,
				}},
			}, nil)
		})
	}
}

// The ways in which a source breaks the rules of tokens and keys.
var (
	errNoKey      = errors.New("it has no key")
	errLongKey    = fmt.Errorf("its key exceeds the limit of %d bytes", MaxKeyBytes)
	errBadKey     = errors.New("its key is not UTF-8")
	errNoToken    = errors.New("it has no token")
	errLongToken  = fmt.Errorf("its token exceeds the limit of %d bytes", MaxTokenBytes)
	errBadToken   = errors.New("its token is not UTF-8")
	errSameToken  = errors.New("the change before it has its token, too")
	errOldToken   = errors.New("its token goes back to that of a change before the last one")
	errFirstToken = errors.New(
		"its token goes back to that at which the attempt began: Changes yields what comes behind that",
	)
)

// admit takes a change that has come, and refuses one that breaks the rules of tokens and keys.
func (r *live[P, C]) admit(a *arrival[C]) (to threads.Admission, err error) {
	c := &a.current().Change
	if err := r.checkArrival(c); err != nil {
		const say = "change %d with the key %.64q and the token %.64q: %w"
		return to, &placedError{fmt.Errorf(say, r.came+1, c.Key, c.Token, err)}
	}
	to.Last = c.Token == r.until()
	r.met = r.met || to.Last
	if c.Position {
		to.Skip = true
		if c.Token != r.last && !r.mover.simulates { // a simulation ends with a change: the full stream ends there
			r.mover.end(r.mover.add(c.Token), outcome{})
		}
		r.last = c.Token
		return to, nil
	}
	r.last = c.Token
	r.came++
	a.place = r.mover.add(c.Token)
	to.Last = to.Last || r.position.Counted+r.came == r.Batch
	return to, nil
}

// checkArrival returns the rule that a change breaks.
func (r *live[P, C]) checkArrival(c *Change[C]) error {
	switch {
	case c.Token == "":
		return errNoToken
	case len(c.Token) > MaxTokenBytes:
		return errLongToken
	case !utf8.ValidString(c.Token):
		return errBadToken
	case c.Position && c.Token == r.last:
		return nil
	case c.Position:
	default:
		if err := checkKey(c.Key); err != nil {
			return err
		}
	}
	switch {
	case r.Imprecise && c.Token == r.last: // of the change before it, or at which the attempt began
	case c.Token == r.position.Token:
		return errFirstToken
	case c.Token == r.last:
		return errSameToken
	case r.visited.again(c.Token):
		return errOldToken
	}
	return nil
}

// checkKey returns the rule that a key breaks.
func checkKey(key string) error {
	switch {
	case key == "":
		return errNoKey
	case len(key) > MaxKeyBytes:
		return errLongKey
	case !utf8.ValidString(key):
		return errBadKey
	}
	return nil
}
