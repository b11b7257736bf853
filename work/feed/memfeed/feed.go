// Package memfeed keeps a feed of messages in memory, for tests. It delivers them as a durable consumer of JetStream
// does: what is neither acknowledged nor in progress comes again, to whichever source is open.
package memfeed

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"taskledger/work/feed"
	"taskledger/work/feed/inorder"
)

// Config says how a feed delivers. The zero value works.
type Config struct {
	AckWait    time.Duration // after which a message comes again. Default 30 s
	MaxPending int           // messages that are delivered and not acknowledged at most. Default 1,010
	Removes    bool          // a message is not kept once it is acknowledged
}

// Feed holds messages and what became of them. It outlives its sources. Its methods may be called concurrently.
type Feed struct {
	cfg Config

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	messages []feed.Message
	acked    []bool
	next     int // of the messages that were never delivered
	count    uint64
	pending  map[uint64]time.Time // when a message comes again, by place
	due      []uint64             // what comes again at once, in this order
	lose     int
	away     bool
}

// New returns an empty feed.
func New(cfg Config) *Feed {
	cfg.AckWait = cmp.Or(cfg.AckWait, 30*time.Second)
	cfg.MaxPending = cmp.Or(cfg.MaxPending, 1_010)
	return &Feed{
		cfg:     cfg,
		changed: make(chan struct{}),
		pending: map[uint64]time.Time{},
	}
}

// Publish adds a message and returns its place.
func (f *Feed) Publish(subject string, data []byte) (place uint64) {
	return f.PublishWith(subject, nil, data)
}

// PublishWith adds a message with headers and returns its place.
func (f *Feed) PublishWith(subject string, header map[string][]string, data []byte) (place uint64) {
	f.mu.Lock()
	defer f.tell()
	place = uint64(len(f.messages)) + 1
	f.messages = append(f.messages, feed.Message{
		Place:   place,
		Subject: subject,
		Header:  header,
		Data:    data,
		Time:    time.Now(),
		Removed: f.cfg.Removes,
	})
	f.acked = append(f.acked, false)
	return place
}

// Redeliver has messages come again at once, in the order given, if they were delivered and are not acknowledged.
func (f *Feed) Redeliver(places ...uint64) {
	f.mu.Lock()
	defer f.tell()
	for _, place := range places {
		if _, ok := f.pending[place]; ok {
			f.due = append(f.due, place)
		}
	}
}

// Lose has the next n deliveries get lost on their way.
func (f *Feed) Lose(n int) {
	f.mu.Lock()
	defer f.tell()
	f.lose += n
}

// SetAway takes the feed away from its sources, or gives it back to them.
func (f *Feed) SetAway(away bool) {
	f.mu.Lock()
	defer f.tell()
	f.away = away
}

// Acknowledged returns the places of the messages that were acknowledged, in their order.
func (f *Feed) Acknowledged() (places []uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, is := range f.acked {
		if is {
			places = append(places, uint64(i)+1)
		}
	}
	return places
}

// Pending returns the places of the messages that were delivered and not acknowledged, in their order.
func (f *Feed) Pending() (places []uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for place := range f.pending {
		places = append(places, place)
	}
	slices.Sort(places)
	return places
}

// Open returns a source. A feed is read by one source at a time.
func (f *Feed) Open() *Source { return &Source{feed: f} }

// tell ends a change.
func (f *Feed) tell() {
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
}

// deliver returns what is to be delivered now. Otherwise it returns when something comes again; the zero time: nothing.
// full tells that nothing new is wanted.
func (f *Feed) deliver(now time.Time, full bool) (d inorder.Delivery[feed.Message], ok bool, again time.Time) {
	for !f.away {
		var place uint64
		place, again = f.choose(now, full)
		if place == 0 {
			return d, false, again
		}
		f.pending[place] = now.Add(f.cfg.AckWait)
		f.count++
		m := &f.messages[place-1]
		m.Delivered++
		if f.lose == 0 {
			return inorder.Delivery[feed.Message]{
				Place: place,
				Count: f.count,
				Value: *m,
			}, true, time.Time{}
		}
		f.lose--
	}
	return d, false, time.Time{}
}

// choose returns the place of the message that is delivered next; 0: none before again. full tells that nothing new is
// wanted.
func (f *Feed) choose(now time.Time, full bool) (place uint64, again time.Time) {
	for len(f.due) > 0 {
		place, f.due = f.due[0], f.due[1:]
		if _, ok := f.pending[place]; ok {
			return place, again
		}
	}
	var first uint64
	for place, at := range f.pending {
		if first == 0 || at.Before(again) || at.Equal(again) && place < first {
			first, again = place, at
		}
	}
	switch {
	case first != 0 && !again.After(now):
		return first, again
	case !full && f.next < len(f.messages) && len(f.pending) < f.cfg.MaxPending:
		f.next++
		return uint64(f.next), again
	}
	return 0, again
}

func (f *Feed) state() inorder.State {
	return inorder.State{
		Place:   uint64(f.next),
		Count:   f.count,
		Pending: len(f.pending),
	}
}
