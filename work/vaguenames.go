package work

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"

	"taskledger/events"
)

// vagueNames names the changes of a run that are to be held where others may have their token: by the token and what
// they are, and which of those that are equal it is. All attempts of a run fetch the same changes, so each finds the
// names of those before, in whatever order they come. The zero value has named nothing.
type vagueNames struct {
	mu    sync.Mutex
	named map[[sha256.Size]byte]int
}

// of names a change by its token, and by what tells it from others with that.
func (v *vagueNames) of(token string, is []byte) string {
	sum := sha256.Sum256(is)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.named == nil {
		v.named = map[[sha256.Size]byte]int{}
	}
	v.named[sum]++
	name := "#" + hex.EncodeToString(sum[:8])
	if n := v.named[sum]; n > 1 {
		name += "." + strconv.Itoa(n)
	}
	return events.Head(token, MaxTokenBytes-len(name)) + name
}

// vagueName returns the name of a change that is to be held, which it keeps. data holds it. Why it could not be read is
// no part of it: that may be another reason in the next attempt.
func (r *streamRun[P, C]) vagueName(p *part[C], data []byte) string {
	switch {
	case p.named != "":
	case p.unread != nil:
		p.named = r.names.of(p.Token, []byte("unread "+strconv.Itoa(len(p.Key))+" "+p.Key+p.Token))
	default:
		p.named = r.names.of(p.Token, data)
	}
	return p.named
}
