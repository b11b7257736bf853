// Package feed is the port by which a work reaches a source that pushes changes as messages: Source.
//
// # Order
//
// Each message has a place, and places give the order of the changes. A source returns messages in ascending order of
// their places, each one once, whatever is delivered again and in whichever order. A source that begins therefore keeps
// newer messages back until everything has come again that was delivered to an attempt before it and not acknowledged,
// and does so again whenever it finds that a delivery has not reached it.
//
// Whoever reads a source processes a message only when every earlier message with a change of the same key is
// acknowledged. Then nothing is processed after a later change of its key, whatever dies in between.
//
// # Acknowledgement
//
// A message stays with whoever read it until it is acknowledged. It is delivered again if it is neither acknowledged
// nor reported in progress for too long, and to the next source if this one is closed. A message whose acknowledgement
// could not be confirmed may come again to the next source, so processing is at least once.
package feed

import (
	"context"
	"errors"
	"time"
)

// Message holds what a source has pushed.
type Message struct {
	// Place gives the order of messages: 1 or more, and less than that of every later message of the source.
	Place   uint64
	Subject string
	Header  map[string][]string
	Data    []byte
	Time    time.Time // when the source took it
	// Delivered tells how often the message was delivered, this time included: 2 or more for one that came again.
	Delivered int
	// Removed tells that the source does not keep the message once it is acknowledged, so that Again does not find it.
	Removed bool
}

// Redelivered reports whether the message was delivered before.
func (m Message) Redelivered() bool { return m.Delivered > 1 }

// Size returns the bytes of the data and the headers.
func (m *Message) Size() int {
	size := len(m.Data)
	for name, values := range m.Header {
		for _, v := range values {
			size += len(name) + len(v)
		}
	}
	return size
}

// Source is a feed of messages, open for one attempt. Next is called by one goroutine at a time. The other methods may
// be called concurrently, and while Next waits.
type Source interface {
	// Next waits for a message until ctx ends, without losing any when it does. It returns the cause of ctx if the source
	// has had no message for all of that time. If ctx ends before the source knows that, or while it keeps messages back,
	// the error wraps ErrUnsettled. While the source is away Next waits, too, and returns ErrAway if that lasts, or if ctx
	// ends meanwhile. An error together with a message tells why this message is not to be read, as ErrTooLarge; it is
	// acknowledged as any other, and the one after it may be asked for. After another error the source may be asked again,
	// unless that wraps ErrClosed.
	Next(ctx context.Context) (Message, error)
	// Ack tells that a message is processed. With nil the source has taken it for certain. It waits while the source is
	// away, until ctx ends.
	Ack(ctx context.Context, m Message) error
	// Progress tells that a message is still in progress, so that it is not delivered again. An error is nothing to
	// stop for: the next call may succeed.
	Progress(ctx context.Context, m Message) error
	// Again returns the message at a place, whether or not it was acknowledged, unless that has removed it. ErrNotFound:
	// the source has it no more.
	Again(ctx context.Context, place uint64) (Message, error)
	// Close gives back what is not acknowledged, as far as that is possible at once.
	Close() error
}

// Measured is a source that knows how far its reader is behind.
type Measured interface {
	// Pending returns how many messages are not acknowledged, and when the source took the oldest of them; the zero time
	// where there is none, or where that is unknown.
	Pending(ctx context.Context) (known int64, oldest time.Time, err error)
}

// Limited is a source with a limit of its own.
type Limited interface {
	// MaxBytes returns the limit of the data and the headers of a message.
	MaxBytes() int
}

// Marked is a source that tells how far it is acknowledged, for the case that it forgets that itself: a consumer is
// deleted, say. The stream records the mark.
type Marked interface {
	// Mark names the place before which everything is acknowledged, in at most 4 KiB; "" = it is not known. It does
	// not wait.
	Mark() string
	// Resume tells, before the first Next, the mark that was recorded last; "" = none was. It is for a source that
	// does not know itself where it goes on.
	Resume(mark string)
}

// The errors of a Source, which methods may wrap.
var (
	// ErrAway reports that the source does not answer.
	ErrAway = errors.New("the source is away")
	// ErrClosed reports a use after Close: the source answers nothing any more.
	ErrClosed = errors.New("the source is closed")
	// ErrNotFound reports that the source does not hold the message any more: see Source.Again.
	ErrNotFound = errors.New("the source has no such message")
	// ErrTooLarge comes with a message above the limit, whose data and headers may be left out.
	ErrTooLarge = errors.New("the message is above the limit")
	// ErrUnsettled tells that Next ended with its context while messages may wait.
	ErrUnsettled = errors.New("the source does not know yet whether messages wait")
	// ErrLate tells that a message came after later ones had been handed out. It comes again, to the next source.
	ErrLate = errors.New("a message came too late for its order")
	// ErrShared tells that somebody else reads what this source has to read alone.
	ErrShared = errors.New("another program reads this source")
)

// MaxMessageBytes limits the data and the headers of a message, unless its source is Limited. Whoever reads the source
// takes a message above the limit as one that came with ErrTooLarge.
const MaxMessageBytes = 1 << 20
