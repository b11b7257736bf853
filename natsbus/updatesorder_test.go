package natsbus_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/work/feed"
)

// deafDialer makes connections of which everything that comes can be lost.
type deafDialer struct {
	deaf atomic.Bool
	mu   sync.Mutex
	last net.Conn
}

func (d *deafDialer) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = c
	return &deafConn{c, d}, nil
}

// cut breaks the last connection, and lets the next one hear.
func (d *deafDialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last.Close()
	d.deaf.Store(false)
}

type deafConn struct {
	net.Conn
	d *deafDialer
}

func (c *deafConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.d.deaf.Load() {
			return n, err
		}
	}
}

// The answer to an acknowledgement is lost together with the next delivery: the message whose acknowledgement was taken
// must not stand for the one that is missing.
func TestUpdates_KeepTheOrderWhereTheAnswerToAnAcknowledgementIsLost(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.AckWait = 8 * time.Second // longer than a request, so that message 2 comes again after the server was asked
	d := &deafDialer{}
	conn, err := nats.Connect(u.server.URL, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ReconnectBufSize(-1), nats.SetCustomDialer(d))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := natsbus.NewUpdates(conn, u.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	u.publish(1)
	u.wantNext(s, 1)
	d.deaf.Store(true)
	acked := make(chan error, 1)
	go func() { acked <- s.Ack(t.Context(), feed.Message{Place: 1}) }()
	testcluster.Await(t, "the acknowledgement is taken", func() bool { return u.info().NumAckPending == 0 })
	u.publish(1)
	testcluster.Await(t, "message 2 is delivered", func() bool { return u.info().NumAckPending == 1 })
	d.cut()
	u.publish(1)
	u.wantNext(s, 2, 3)
	if err := receive(t, acked); err != nil {
		t.Error(err)
	}
	u.ack(s, 2, 3)
	u.unacknowledged(0)
}

// A message that is open here leaves the stream, and another one is lost on its way.
func TestUpdates_KeepTheOrderWhereOpenMessagesHaveLeftTheStream(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.AckWait, u.cfg.Batch = 3*time.Second, 1
	u.publish(3)
	s, conn := u.open()
	u.wantNext(s, 1, 2)
	st, err := u.js.Stream(t.Context(), "FILES")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.DeleteMsg(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	testcluster.Await(t, "the server waits for message 1 alone", func() bool { return u.info().NumAckPending == 1 })
	other, err := u.js.Consumer(t.Context(), "FILES", "reader")
	if err != nil {
		t.Fatal(err)
	}
	took, err := other.Fetch(1, jetstream.FetchMaxWait(timeout))
	if err != nil {
		t.Fatal(err)
	}
	for range took.Messages() { // it acknowledges nothing
	}
	if err := conn.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	u.publish(1)
	u.wantNext(s, 3, 4)
	u.ack(s, 1, 2, 3, 4)
	u.unacknowledged(0)
}

// The first message over a new connection may be here before the source has noticed that there is a new one.
func TestUpdates_ThatCameBehindAReconnectionAccuseNobody(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.Batch = 10
	u.publish(2)
	s, conn := u.open()
	u.wantNext(s, 1, 2)
	other, err := u.js.Consumer(t.Context(), "FILES", "reader")
	if err != nil {
		t.Fatal(err)
	}
	took, err := other.Fetch(1, jetstream.FetchMaxWait(timeout))
	if err != nil {
		t.Fatal(err)
	}
	testcluster.Await(t, "two requests wait", func() bool { return u.info().NumWaiting == 2 })
	u.publish(2)
	for range took.Messages() { // it acknowledges nothing
	}
	if err := conn.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	testcluster.Await(t, "the connection is back", func() bool {
		return conn.IsConnected() && conn.Stats().Reconnects > 0
	})
	before := conn.Stats().InMsgs
	u.publish(1)
	testcluster.Await(t, "a message has come", func() bool { return conn.Stats().InMsgs > before })
	u.wantNext(s, 3, 4, 5)
	u.ack(s, 1, 2, 3, 4, 5)
	u.unacknowledged(0)
}

func TestUpdates_ThatAreOpenAndWerePurgedAreAcknowledgedAndHideNothing(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(3)
	s, conn := u.open()
	u.wantNext(s, 1, 2)
	st, err := u.js.Stream(t.Context(), "FILES")
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	testcluster.Await(t, "the server waits for nothing", func() bool { return u.info().NumAckPending == 0 })
	if err := conn.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	u.publish(1)
	for m := u.next(s); m.Place != 4; m = u.next(s) {
		if m.Place != 3 { // which may have come before
			t.Fatalf("message %d came", m.Place)
		}
		u.ack(s, 3)
	}
	u.ack(s, 1, 2, 4)
	u.unacknowledged(0)
}

func TestUpdates_OfAConsumerWithLimitsOrABeginningThatDoNotFitFail(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(3)
	for want, c := range map[string]jetstream.ConsumerConfig{
		"5 messages at once": {MaxRequestBatch: 5},
		"wait for 1s":        {MaxRequestExpires: time.Second},
		"with the last":      {DeliverPolicy: jetstream.DeliverLastPolicy},
		"passes over":        {DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: "files.>"},
		"requests of groups": {PriorityPolicy: jetstream.PriorityPolicyOverflow, PriorityGroups: []string{"a"}},
		"pull consumer":      {DeliverSubject: "elsewhere"},
	} {
		c.Durable, c.AckPolicy = "reader", jetstream.AckExplicitPolicy
		u.cfg.Subjects = nil
		if c.FilterSubject != "" {
			u.cfg.Subjects = []string{c.FilterSubject}
		}
		if c.DeliverSubject != "" {
			if _, err := u.js.CreatePushConsumer(t.Context(), "FILES", c); err != nil {
				t.Fatal(err)
			}
		} else if _, err := u.js.CreateConsumer(t.Context(), "FILES", c); err != nil {
			t.Fatal(err)
		}
		s, _ := u.open()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		m, err := s.Next(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("message %d, error %v; want %s", m.Place, err, want)
		}
		if err := u.js.DeleteConsumer(t.Context(), "FILES", "reader"); err != nil {
			t.Fatal(err)
		}
	}
}

// deleteConsumer deletes the consumer, as an operator does.
func (u *updates) deleteConsumer() {
	u.t.Helper()
	if err := u.js.DeleteConsumer(u.t.Context(), "FILES", "reader"); err != nil {
		u.t.Fatal(err)
	}
}

// resumed returns a source that goes on behind a mark.
func (u *updates) resumed(mark string) *natsbus.Updates {
	u.t.Helper()
	s, _ := u.open()
	s.Resume(mark)
	return s
}

func TestUpdates_OfAConsumerThatIsDeletedBetweenAttemptsGoOnBehindTheirMark(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(5)
	s, _ := u.open()
	if is := s.Mark(); is != "" {
		t.Errorf("mark %q of a source that nobody has read", is)
	}
	u.wantNext(s, 1, 2, 3, 4)
	u.ack(s, 1, 2, 4)
	mark := s.Mark()
	if !strings.HasPrefix(mark, "FILES/3/reader/") {
		t.Errorf("mark %q", mark)
	}
	u.deleteConsumer()
	u.ack(s, 3)
	s.Close()
	s = u.resumed(mark)
	u.wantNext(s, 3, 4, 5)
	s.Close()
	for _, none := range []string{"", "42", strings.Replace(mark, "FILES", "OTHERS", 1), strings.Replace(mark, "/3/", "/0/", 1)} {
		u.deleteConsumer()
		s = u.resumed(none)
		u.wantNext(s, 1)
		s.Close()
	}
}

func TestUpdates_OfAConsumerThatSomebodyHasMadeBehindTheirMarkFail(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(3)
	s, _ := u.open()
	u.wantNext(s, 1, 2)
	u.ack(s, 1)
	mark := s.Mark()
	u.ack(s, 2)
	s.Close()
	s = u.resumed(mark) // the same consumer, acknowledged further
	u.wantNext(s, 3)
	s.Close()
	u.deleteConsumer()
	_, err := u.js.CreateConsumer(t.Context(), "FILES", jetstream.ConsumerConfig{
		Durable:       "reader",
		DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	s = u.resumed(mark)
	if _, err := s.Next(t.Context()); err == nil || !strings.Contains(err.Error(), "behind message 2") {
		t.Errorf("next: %v, want that the consumer begins behind message 2", err)
	}
}

// JetStream was restored from an older state without its consumer: a consumer at the mark would pass over what comes
// until then.
func TestUpdates_OfAStreamThatEndsBeforeTheirMarkFailUntilTheirConsumerIsMade(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(3)
	s, _ := u.open()
	u.wantNext(s, 1, 2, 3)
	u.ack(s, 1, 2, 3)
	mark := s.Mark()
	s.Close()
	u.deleteConsumer()
	later := strings.Replace(mark, "FILES/4/", "FILES/500/", 1)
	s = u.resumed(later)
	_, err := s.Next(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ends with message 3, before message 500") {
		t.Errorf("next: %v, want that the stream ends before the mark", err)
	}
	s.Close()
	s = u.resumed(mark) // directly behind the last message
	u.wantNothing(s, 300*time.Millisecond)
	u.publish(1)
	u.wantNext(s, 4)
	u.ack(s, 4)
	s.Close()
	u.deleteConsumer()
	u.cfg.AckWait = 30 * time.Second
	_, err = u.js.CreateConsumer(t.Context(), "FILES", jetstream.ConsumerConfig{
		Durable:       "reader",
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	u.wantNext(u.resumed(later), 1, 2, 3, 4)
}

func TestUpdates_OfAStreamThatIsMadeAgainBetweenAttemptsBeginAnew(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(5)
	s, _ := u.open()
	u.wantNext(s, 1, 2, 3)
	u.ack(s, 1, 2, 3)
	mark := s.Mark()
	s.Close()
	if err := u.js.DeleteStream(t.Context(), "FILES"); err != nil {
		t.Fatal(err)
	}
	_, err := u.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "FILES", Subjects: []string{"files.>"}})
	if err != nil {
		t.Fatal(err)
	}
	u.publish(2)
	u.wantNext(u.resumed(mark), 1, 2)
}

func TestUpdates_ThatEndTheirWaitWhileNATSIsAwaySaySo(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(1)
	s, conn := u.open()
	u.wantNext(s, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Next(ctx); errors.Is(err, feed.ErrAway) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while nothing comes: %v", err)
	}
	u.server.Stop()
	testcluster.Await(t, "the connection is lost", func() bool { return !conn.IsConnected() })
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Next(ctx); !errors.Is(err, feed.ErrAway) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while NATS is away: %v", err)
	}
}
