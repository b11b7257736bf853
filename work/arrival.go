package work

import (
	"strconv"

	"taskledger/work/feed"
)

// arrival holds changes of one key that have come together: one of a live stream, those of a message of a pushed one.
type arrival[C any] struct {
	key   string
	parts []part[C]
	next  int    // the first part that has not ended
	tries int64  // of that part
	place uint64 // in the order of a live stream
	of    *message
	last  bool // of the arrivals of a message
}

// part is a change that has come.
type part[C any] struct {
	Change[C]
	unread error         // why it could not be read
	at     string        // its token, or its place, as people are told
	whole  *feed.Message // from which it came, or that could not be read
	index  int           // in the message
	named  string        // by vagueNames; "" = not yet
}

// name returns the name of a change among all of its stream: its token, or its place and when its message came to the
// source. Another message with the place, of a source that begins anew, has another name.
func (p *part[C]) name() string {
	if p.whole == nil || p.whole.Time.IsZero() {
		return p.at
	}
	return p.at + "@" + strconv.FormatInt(p.whole.Time.UnixNano(), 36)
}

// current returns the part to be processed.
func (a *arrival[C]) current() *part[C] { return &a.parts[a.next] }

// end ends the current part, and reports whether it was the last one.
func (a *arrival[C]) end() (last bool) {
	a.next++
	a.tries = 0
	return a.next == len(a.parts)
}
