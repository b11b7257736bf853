package memfeed

import (
	"context"
	"fmt"
	"time"

	"taskledger/work/feed"
	"taskledger/work/feed/inorder"
)

// What a source keeps back, until all has come again that was not acknowledged, at most, up to one message.
const (
	maxKept      = 10
	maxKeptBytes = 64 << 20
)

// Source reads a feed.
type Source struct {
	feed   *Feed
	queue  inorder.Queue[feed.Message] // guarded by the lock of the feed, as is closed
	closed bool
}

var (
	_ feed.Source   = (*Source)(nil)
	_ feed.Measured = (*Source)(nil)
)

// Next implements feed.Source. It waits while the feed is away.
func (s *Source) Next(ctx context.Context) (feed.Message, error) {
	for quiet := true; ; {
		m, changed, again, err := s.next()
		if err != nil || m.Place != 0 {
			return m, err
		}
		quiet = s.quiet() && quiet
		if err := wait(ctx, changed, again); err != nil {
			return feed.Message{}, s.over(err, quiet)
		}
	}
}

// quiet reports whether everything is here that was delivered and not acknowledged.
func (s *Source) quiet() bool {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.queue.Settled() && s.queue.Missing(s.feed.state()) <= 0
}

// over returns why Next ends with its context. quiet tells that no message was kept back meanwhile.
func (s *Source) over(err error, quiet bool) error {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	switch {
	case s.feed.away:
		return fmt.Errorf("%w: %w", feed.ErrAway, err)
	case !quiet:
		return fmt.Errorf("%w: %w", feed.ErrUnsettled, err)
	}
	return err
}

// next returns a message, or what to wait for.
func (s *Source) next() (m feed.Message, changed <-chan struct{}, again time.Time, err error) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.closed {
		return m, nil, again, feed.ErrClosed
	}
	now := time.Now()
	for {
		if d, ok := s.queue.Next(); ok {
			return d.Value, nil, again, nil
		}
		for _, d := range s.queue.Waiting() {
			f.pending[d.Place] = now.Add(f.cfg.AckWait)
		}
		if !s.queue.Settled() && !f.away && s.queue.Settle(f.state()) == 0 {
			continue
		}
		d, ok, at := f.deliver(now, s.full())
		if !ok {
			return m, f.changed, at, nil
		}
		switch s.queue.Add(d) {
		case inorder.Acknowledged:
			s.take(d.Place)
		case inorder.Late:
			return m, nil, again, fmt.Errorf("message %d: %w", d.Place, feed.ErrLate)
		}
	}
}

// full reports whether the source keeps so much back that it takes in only what comes again.
func (s *Source) full() bool {
	if s.queue.Settled() {
		return false
	}
	bytes := 0
	for _, d := range s.queue.Waiting() {
		bytes += d.Value.Size()
	}
	return len(s.queue.Waiting()) >= maxKept || bytes >= maxKeptBytes
}

// wait returns when something has changed, or at a time.
func wait(ctx context.Context, changed <-chan struct{}, at time.Time) error {
	var again <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		again = timer.C
	}
	select {
	case <-changed:
	case <-again:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// take acknowledges a message.
func (s *Source) take(place uint64) {
	delete(s.feed.pending, place)
	s.feed.acked[place-1] = true
	s.queue.Acknowledge(place)
}

// Ack implements feed.Source.
func (s *Source) Ack(ctx context.Context, m feed.Message) error {
	f := s.feed
	for {
		f.mu.Lock()
		changed, away := f.changed, f.away
		if !away {
			break
		}
		f.mu.Unlock()
		if err := wait(ctx, changed, time.Time{}); err != nil {
			return err
		}
	}
	defer f.tell()
	switch {
	case s.closed:
		return feed.ErrClosed
	case m.Place == 0 || m.Place > uint64(len(f.messages)):
		return feed.ErrNotFound
	}
	s.take(m.Place)
	return nil
}

// Progress implements feed.Source.
func (s *Source) Progress(_ context.Context, m feed.Message) error {
	f := s.feed
	f.mu.Lock()
	defer f.tell()
	switch _, open := f.pending[m.Place]; {
	case s.closed:
		return feed.ErrClosed
	case f.away:
		return feed.ErrAway
	case open:
		f.pending[m.Place] = time.Now().Add(f.cfg.AckWait)
	}
	return nil
}

// Again implements feed.Source.
func (s *Source) Again(_ context.Context, place uint64) (feed.Message, error) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.away:
		return feed.Message{}, feed.ErrAway
	case place == 0 || place > uint64(len(f.messages)) || f.cfg.Removes && f.acked[place-1]:
		return feed.Message{}, feed.ErrNotFound
	}
	return f.messages[place-1], nil
}

// Pending implements feed.Measured.
func (s *Source) Pending(context.Context) (known int64, oldest time.Time, err error) {
	f := s.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return 0, oldest, feed.ErrAway
	}
	for i, is := range f.acked {
		if is {
			continue
		}
		if known++; known == 1 {
			oldest = f.messages[i].Time
		}
	}
	return known, oldest, nil
}

// Close implements feed.Source. What it has open comes again at once.
func (s *Source) Close() error {
	f := s.feed
	f.mu.Lock()
	defer f.tell()
	if s.closed {
		return nil
	}
	s.closed = true
	for _, d := range s.queue.All() {
		f.due = append(f.due, d.Place)
	}
	return nil
}

// Leave ends the source as a process that dies does: what it has open comes again when its time is over.
func (s *Source) Leave() {
	f := s.feed
	f.mu.Lock()
	defer f.tell()
	s.closed = true
}
