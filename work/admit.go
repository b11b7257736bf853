package work

import (
	"errors"
	"fmt"

	"taskledger/work/internal/threads"
)

// The ways in which a source breaks the rules of tokens and keys.
var (
	errNoKey      = errors.New("it has no key")
	errLongKey    = fmt.Errorf("its key exceeds the limit of %d bytes", MaxKeyBytes)
	errNoToken    = errors.New("it has no token")
	errLongToken  = fmt.Errorf("its token exceeds the limit of %d bytes", MaxTokenBytes)
	errSameToken  = errors.New("the change before it has its token, too")
	errOpenToken  = errors.New("its token goes back to that of a change before the last")
	errFirstToken = errors.New("its token goes back to that at which the run began")
)

// admit takes a change that has come, and refuses one that breaks the rules of tokens and keys.
func (r *streamRun[P, C]) admit(a *arrival[C]) (to threads.Admission, err error) {
	if err := r.check(a); err != nil {
		return to, fmt.Errorf("change %d with the key %.64q and the token %.64q: %w", r.admitted+1, a.Key, a.Token, err)
	}
	to.Last = a.Token == r.until()
	if a.Position {
		to.Skip = true
		if a.Token != r.last {
			r.last = a.Token
			r.mover.end(r.mover.add(a.Token), outcome{})
		}
		return to, nil
	}
	r.last = a.Token
	r.admitted++
	a.place = r.mover.add(a.Token)
	to.Last = to.Last || r.admitted == r.Batch
	return to, nil
}

// check returns the rule that a change breaks.
func (r *streamRun[P, C]) check(a *arrival[C]) error {
	switch {
	case a.Token == "":
		return errNoToken
	case len(a.Token) > MaxTokenBytes:
		return errLongToken
	case a.Position && a.Token == r.last:
		return nil
	case a.Position:
	case a.Key == "":
		return errNoKey
	case len(a.Key) > MaxKeyBytes:
		return errLongKey
	}
	switch {
	case r.Imprecise:
	case a.Token == r.position.Token:
		return errFirstToken
	case a.Token == r.last:
		return errSameToken
	case r.mover.has(a.Token):
		return errOpenToken
	}
	return nil
}
