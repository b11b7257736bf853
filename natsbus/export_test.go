package natsbus

import (
	"context"

	"github.com/nats-io/nats.go"

	"taskledger/events"
	"taskledger/store"
)

// Seal frames body for tests of the frame's format.
func Seal(key []byte, subject, reply string, body []byte) []byte {
	return append([]byte(nil), newFramer(key).seal(subject, reply, body).buf...)
}

// Opener returns the check of incoming frames under key.
func Opener(key []byte) func(subject, reply string, frame []byte) ([]byte, bool) {
	return newFramer(key).open
}

// Sealer returns the framing of outgoing bodies under key, without the copy that Seal makes.
func Sealer(key []byte) func(subject, reply string, body []byte) int {
	f := newFramer(key)
	return func(subject, reply string, body []byte) int {
		s := f.seal(subject, reply, body)
		defer f.release(s)
		return len(s.buf)
	}
}

// PendingMessages is the bound of a subscription's queue.
const PendingMessages = pendingMessages

// NewFilter returns the stored form of the filter of tasks.
func NewFilter(tasks map[events.TaskID]struct{}) string { return newFilter(tasks).String() }

// ParseFilter returns what a stored filter tells.
func ParseFilter(text string) func(events.TaskID) bool { return parseFilter(text).mayHold }

// DecodeSegment reads a message that was stored as a segment.
func DecodeSegment(shard int, header nats.Header, data []byte) ([]store.Record, error) {
	return decodeSegment(shard, &stored{sequence: 1, header: header, data: data})
}

// Pack is the body of a segment of the entries, whatever they are.
func Pack(shard int, entries []store.Record) []byte { return pack(shard, entries) }

// Meaning translates a client's error into the one that callers get.
func Meaning(err error) error { return meaning(err) }

// Later has the archive last have found a minute ago that its stream could not be named.
func (a *Archive) Later() { a.naming.failed.Store(new(a.naming.failed.Load().Add(-nameAgain))) }

// Request makes a request by hand.
func (a *Archive) Request(ctx context.Context, do func(context.Context) error) error {
	return a.request(ctx, do)
}

// Listen tells h the state of a connection that is not up, and others when something is reported.
func Listen() (listen func(ctx context.Context, h func(connected bool)), report func(up bool)) {
	l := newLink()
	return l.listen, l.report
}
