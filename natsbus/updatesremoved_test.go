package natsbus_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"taskledger/internal/testcluster"
	"taskledger/work/feed"
)

// removing makes a stream that removes what is acknowledged.
func removing(t *testing.T, by jetstream.RetentionPolicy) *updates {
	t.Helper()
	u := newUpdates(t)
	if err := u.js.DeleteStream(t.Context(), "FILES"); err != nil {
		t.Fatal(err)
	}
	_, err := u.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name:      "FILES",
		Subjects:  []string{"files.>"},
		Retention: by,
	})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestUpdates_OfAStreamThatRemovesWhatIsAcknowledgedGoOnWhereTheirConsumerIsDeleted(t *testing.T) {
	t.Parallel()
	u := removing(t, jetstream.WorkQueuePolicy)
	u.publish(6)
	s, _ := u.open()
	u.wantNext(s, 1, 2, 3, 4)
	u.ack(s, 1, 3)
	mark := s.Mark()
	if !strings.HasPrefix(mark, "FILES/2/reader/") {
		t.Errorf("mark %q", mark)
	}
	u.deleteConsumer() // in an attempt
	u.publish(1)
	u.wantNext(s, 5, 6, 7)
	u.ack(s, 2, 4)
	testcluster.Await(t, "what was acknowledged is removed", func() bool {
		_, err := s.Again(t.Context(), 4)
		return errors.Is(err, feed.ErrNotFound)
	})
	mark = s.Mark()
	s.Close()
	u.deleteConsumer() // between two of them
	s = u.resumed(mark)
	u.wantNext(s, 5, 6, 7)
	u.ack(s, 5, 6, 7)
	u.unacknowledged(0)
}

func TestUpdates_OfAStreamForInterestGoOnBehindWhatTheyAcknowledged(t *testing.T) {
	t.Parallel()
	u := removing(t, jetstream.InterestPolicy)
	_, err := u.js.CreateConsumer(t.Context(), "FILES", jetstream.ConsumerConfig{
		Durable:   "other",
		AckPolicy: jetstream.AckExplicitPolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	u.publish(4)
	s, _ := u.open()
	u.wantNext(s, 1, 2)
	u.ack(s, 1, 2)
	mark := s.Mark()
	s.Close()
	u.deleteConsumer()
	s = u.resumed(mark)
	u.wantNext(s, 3, 4)
	u.ack(s, 3, 4)
	u.unacknowledged(0)
}

func TestUpdates_TellWhetherTheirStreamRemovesWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	for by, want := range map[jetstream.RetentionPolicy]bool{
		jetstream.LimitsPolicy:    false,
		jetstream.InterestPolicy:  true,
		jetstream.WorkQueuePolicy: true,
	} {
		u := removing(t, by)
		s, _ := u.open()
		u.settled(s)
		u.publish(1)
		if m := u.next(s); m.Removed != want {
			t.Errorf("%s: removed %t", by, m.Removed)
		}
	}
}
