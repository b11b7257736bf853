package natsbus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"taskledger/natsbus"
	"taskledger/work/feed"
)

// settled asks for a message as a stream does that ends when none waits: with more time after each answer that tells
// that some may. It returns 0 if the source knows that none waits.
func (u *updates) settled(s *natsbus.Updates) (place uint64) {
	u.t.Helper()
	for wait := time.Millisecond; ; wait *= 2 {
		ctx, cancel := context.WithTimeout(u.t.Context(), wait)
		m, err := s.Next(ctx)
		cancel()
		switch {
		case err == nil:
			return m.Place
		case !errors.Is(err, context.DeadlineExceeded) || wait > timeout:
			u.t.Fatal(err)
		case !errors.Is(err, feed.ErrUnsettled):
			return 0
		}
	}
}

func (u *updates) wantSettled(s *natsbus.Updates, want ...uint64) {
	u.t.Helper()
	for _, place := range want {
		if got := u.settled(s); got != place {
			u.t.Fatalf("message %d came, want %d", got, place)
		}
	}
}

func TestUpdates_TellThatNothingWaitsOnlyIfTheyKnowThat(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.Batch = 2
	u.publish(7)
	s, _ := u.open()
	u.wantSettled(s, 1, 2, 3, 4, 5, 6, 7, 0)
	u.publish(1)
	u.wantNext(s, 8)
	u.wantSettled(s, 0)
}

func TestUpdates_ThatKeepMessagesBackTellThatSomeWait(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.AckWait = 2 * time.Second
	u.publish(1)
	dead, conn := u.open()
	u.wantNext(dead, 1)
	conn.Close()
	u.publish(4)
	s, _ := u.open()
	u.wantSettled(s, 1, 2, 3, 4, 5, 0)
}

// The last message that was delivered tells of others, which leave the stream.
func TestUpdates_TellThatNothingWaitsOnceTheRestHasLeftTheStream(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.Batch = 1
	u.publish(3)
	s, _ := u.open()
	u.wantNext(s, 1)
	st, err := u.js.Stream(t.Context(), "FILES")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Purge(t.Context(), jetstream.WithPurgeSequence(4)); err != nil {
		t.Fatal(err)
	}
	u.ack(s, 1)
	u.wantSettled(s, 0)
}
