package natsbus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/work/feed"
)

// updates is a stream of messages and how it is read.
type updates struct {
	t      *testing.T
	server *testcluster.NATS
	js     jetstream.JetStream
	cfg    natsbus.UpdatesConfig
	gate   gate // of the connections that read the stream
}

// newUpdates makes a stream on a server of its own.
func newUpdates(t *testing.T) *updates {
	t.Helper()
	s := testcluster.StartJetStream(t)
	u := &updates{
		t:      t,
		server: s,
		js:     byHand(t, s.URL),
		cfg: natsbus.UpdatesConfig{
			Stream:   "FILES",
			Consumer: "reader",
			AckWait:  time.Second,
		},
	}
	_, err := u.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "FILES", Subjects: []string{"files.>"}})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// publish adds n messages.
func (u *updates) publish(n int) {
	u.t.Helper()
	for i := range n {
		if _, err := u.js.Publish(u.t.Context(), fmt.Sprintf("files.%d", i), []byte(fmt.Sprint("data ", i))); err != nil {
			u.t.Fatal(err)
		}
	}
}

func (u *updates) conn() *nats.Conn {
	u.t.Helper()
	conn, err := nats.Connect(u.server.URL, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ReconnectBufSize(-1), nats.SetCustomDialer(&u.gate))
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(conn.Close)
	return conn
}

// open returns a source, and the connection by which it reads.
func (u *updates) open() (*natsbus.Updates, *nats.Conn) {
	u.t.Helper()
	conn := u.conn()
	s, err := natsbus.NewUpdates(conn, u.cfg)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { s.Close() })
	return s, conn
}

func (u *updates) info() *jetstream.ConsumerInfo {
	u.t.Helper()
	c, err := u.js.Consumer(u.t.Context(), "FILES", "reader")
	if err != nil {
		u.t.Fatal(err)
	}
	is, err := c.Info(u.t.Context())
	if err != nil {
		u.t.Fatal(err)
	}
	return is
}

// next returns the next message, which has to come.
func (u *updates) next(s *natsbus.Updates) feed.Message {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), timeout)
	defer cancel()
	m, err := s.Next(ctx)
	if err != nil {
		u.t.Fatal(err)
	}
	return m
}

// wantNext fails the test unless these are the places of the next messages.
func (u *updates) wantNext(s *natsbus.Updates, want ...uint64) {
	u.t.Helper()
	for _, place := range want {
		if m := u.next(s); m.Place != place {
			u.t.Fatalf("message %d came, want %d", m.Place, place)
		}
	}
}

// wantNothing fails the test if a message comes within a time.
func (u *updates) wantNothing(s *natsbus.Updates, within time.Duration) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), within)
	defer cancel()
	if m, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		u.t.Fatalf("message %d, error %v; want nothing", m.Place, err)
	}
}

func (u *updates) ack(s *natsbus.Updates, places ...uint64) {
	u.t.Helper()
	for _, place := range places {
		if err := s.Ack(u.t.Context(), feed.Message{Place: place}); err != nil {
			u.t.Fatal(err)
		}
	}
}

// unacknowledged returns how many messages the server waits for.
func (u *updates) unacknowledged(want int) {
	u.t.Helper()
	if is := u.info(); is.NumAckPending != want {
		u.t.Errorf("%d messages are not acknowledged, want %d", is.NumAckPending, want)
	}
}

func TestUpdates_HandOutMessagesWithWhatTheyTell(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	m := nats.NewMsg("files.a")
	m.Header.Set("Op", "put")
	m.Data = []byte("text")
	if _, err := u.js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	s, _ := u.open()
	got := u.next(s)
	if got.Place != 1 || got.Subject != "files.a" || string(got.Data) != "text" || got.Header["Op"][0] != "put" ||
		got.Redelivered() || got.Time.IsZero() {
		t.Errorf("message %+v", got)
	}
	u.ack(s, 1)
	u.unacknowledged(0)
	if err := s.Ack(t.Context(), got); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("acknowledged twice: %v", err)
	}
	again, err := s.Again(t.Context(), 1)
	if err != nil || string(again.Data) != "text" || again.Header["Op"][0] != "put" || !again.Time.Equal(got.Time) {
		t.Errorf("again: %+v, %v", again, err)
	}
	if _, err := s.Again(t.Context(), 7); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("a message that is not there: %v", err)
	}
}

func TestUpdates_KeepNewMessagesBackUntilThoseOfADeadWorkerCameAgain(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(14)
	dead, conn := u.open()
	u.wantNext(dead, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	u.ack(dead, 1, 3, 10)
	conn.Close()
	s, _ := u.open()
	u.wantNext(s, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14)
	u.ack(s, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14)
	u.unacknowledged(0)
}

func TestUpdates_GiveBackWhatIsOpenWhenTheyClose(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.AckWait = time.Hour
	u.publish(14)
	closed, _ := u.open()
	u.wantNext(closed, 1, 2, 3)
	u.ack(closed, 2)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := closed.Next(t.Context()); !errors.Is(err, feed.ErrClosed) {
		t.Errorf("next of a closed source: %v", err)
	}
	s, _ := u.open()
	u.wantNext(s, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
}

func TestUpdates_RepeatNothingThatIsOpen(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(3)
	s, _ := u.open()
	u.wantNext(s, 1, 2, 3)
	testcluster.Await(t, "the messages are delivered again", func() bool {
		u.wantNothing(s, 100*time.Millisecond)
		return u.info().NumRedelivered == 3
	})
	u.ack(s, 1, 2, 3)
	u.unacknowledged(0)
}

func TestUpdates_InProgressAreNotDeliveredAgain(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.AckWait = 5 * time.Second
	u.publish(2)
	s, _ := u.open()
	u.wantNext(s, 1, 2)
	for range 70 {
		if err := s.Progress(t.Context(), feed.Message{Place: 1}); err != nil {
			t.Fatal(err)
		}
		u.wantNothing(s, 100*time.Millisecond)
	}
	if is := u.info(); is.NumRedelivered != 1 {
		t.Errorf("%d messages were delivered again, want that alone which was not in progress", is.NumRedelivered)
	}
}

func TestUpdates_OfADeletedConsumerGoOnWithoutLossOrRepetition(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(6)
	s, _ := u.open()
	u.wantNext(s, 1, 2, 3, 4)
	u.ack(s, 1, 3)
	if err := u.js.DeleteConsumer(t.Context(), "FILES", "reader"); err != nil {
		t.Fatal(err)
	}
	u.ack(s, 4)
	u.wantNext(s, 5, 6)
	u.publish(2)
	u.wantNext(s, 7, 8)
	u.ack(s, 2, 5, 6, 7, 8)
	testcluster.Await(t, "everything is acknowledged", func() bool {
		u.wantNothing(s, 100*time.Millisecond)
		is := u.info()
		return is.NumAckPending == 0 && is.NumPending == 0
	})
}

func TestUpdates_FailWhereSomebodyHasMadeTheConsumerBehindAnOpenMessage(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(3)
	s, _ := u.open()
	u.wantNext(s, 1, 2)
	if err := u.js.DeleteConsumer(t.Context(), "FILES", "reader"); err != nil {
		t.Fatal(err)
	}
	_, err := u.js.CreateConsumer(t.Context(), "FILES", jetstream.ConsumerConfig{
		Durable:       "reader",
		DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // what came before it was deleted is handed out
		if _, err = s.Next(t.Context()); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "behind message 1") {
		t.Errorf("next: %v, want that the consumer begins behind message 1", err)
	}
}

func TestUpdates_SayThatAnotherProgramReadsAndKeepTheOrder(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.Batch = 1
	u.publish(2)
	s, _ := u.open()
	u.wantNext(s, 1, 2)
	u.ack(s, 1, 2)
	other, err := u.js.Consumer(t.Context(), "FILES", "reader")
	if err != nil {
		t.Fatal(err)
	}
	u.publish(2)
	took, err := other.Fetch(2, jetstream.FetchMaxWait(timeout))
	if err != nil {
		t.Fatal(err)
	}
	for range took.Messages() { // it acknowledges nothing
	}
	u.publish(1)
	if _, err = s.Next(t.Context()); !errors.Is(err, feed.ErrShared) {
		t.Errorf("next: %v, want that another program reads", err)
	}
	u.wantNext(s, 3, 4, 5)
}

func TestUpdates_TellWhichMessageIsTooLarge(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.MaxBytes = 100
	for _, size := range []int{100, 101, 1} {
		if _, err := u.js.Publish(t.Context(), "files.a", make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := u.open()
	u.wantNext(s, 1)
	m, err := s.Next(t.Context())
	if !errors.Is(err, feed.ErrTooLarge) || m.Place != 2 || m.Subject != "files.a" || m.Data != nil {
		t.Errorf("message %d of %d bytes, error %v", m.Place, len(m.Data), err)
	}
	if again, err := s.Again(t.Context(), 2); err != nil || len(again.Data) != 101 {
		t.Errorf("again: %d bytes, %v", len(again.Data), err)
	}
	u.ack(s, 2)
	u.wantNext(s, 3)

	headers := nats.NewMsg("files.a")
	headers.Header.Set("Note", strings.Repeat("x", 100))
	if _, err := u.js.PublishMsg(t.Context(), headers); err != nil {
		t.Fatal(err)
	}
	m, err = s.Next(t.Context())
	if !errors.Is(err, feed.ErrTooLarge) || m.Place != 4 || m.Header != nil {
		t.Errorf("message %d with the headers %v, error %v", m.Place, m.Header, err)
	}
	if again, err := s.Again(t.Context(), 4); err != nil || len(again.Header["Note"][0]) != 100 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestUpdates_AskLittleWhileNothingComes(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	s, conn := u.open()
	u.wantNothing(s, 100*time.Millisecond)
	before := conn.Stats().OutMsgs
	u.wantNothing(s, 3*time.Second)
	if sent := conn.Stats().OutMsgs - before; sent > 10 {
		t.Errorf("%d requests in 3 s, want few", sent)
	}
}

func TestUpdates_SayThatNATSIsAwayOnceTheirTimeoutEnds(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.Timeout = time.Second
	u.publish(1)
	s, _ := u.open()
	u.wantNext(s, 1)
	u.server.Stop()
	if _, err := s.Next(t.Context()); !errors.Is(err, feed.ErrAway) {
		t.Errorf("next without NATS: %v", err)
	}
	u.server.Start()
	u.publish(1)
	u.wantNext(s, 2)
}

func TestUpdates_KnowHowManyMessagesAreLeft(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.Subjects = []string{"files.0", "files.1"}
	s, _ := u.open()
	testcluster.Await(t, "the consumer is made", func() bool {
		u.wantNothing(s, 100*time.Millisecond)
		_, err := u.js.Consumer(t.Context(), "FILES", "reader")
		return err == nil
	})
	if n, oldest, err := s.Pending(t.Context()); n != 0 || !oldest.IsZero() || err != nil {
		t.Errorf("nothing left: %d, %s, %v", n, oldest, err)
	}
	u.publish(3)
	first, err := s.Again(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := func(left int64, since time.Time) {
		t.Helper()
		if n, oldest, err := s.Pending(t.Context()); n != left || !oldest.Equal(since) || err != nil {
			t.Errorf("%d left since %s, error %v; want %d since %s", n, oldest, err, left, since)
		}
	}
	testcluster.Await(t, "the consumer counts what was published", func() bool {
		n, _, err := s.Pending(t.Context())
		return n == 2 && err == nil
	})
	want(2, first.Time)
	u.wantNext(s, 1, 2)
	want(2, first.Time)
	u.ack(s, 1)
	second, err := s.Again(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	want(1, second.Time)
}

func TestUpdates_RefuseAConsumerThatDoesNotFit(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	for why, change := range map[string]func(*jetstream.ConsumerConfig){
		"explicit":          func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckAllPolicy },
		"after 3 deliver":   func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 3 },
		"lets -1 messages":  func(c *jetstream.ConsumerConfig) { c.MaxAckPending = -1 },
		"headers alone":     func(c *jetstream.ConsumerConfig) { c.HeadersOnly = true },
		"has read it for 1": func(c *jetstream.ConsumerConfig) { c.InactiveThreshold = time.Hour },
		"the subjects":      func(c *jetstream.ConsumerConfig) { c.FilterSubject = "files.1" },
	} {
		cfg := jetstream.ConsumerConfig{Durable: "reader", AckPolicy: jetstream.AckExplicitPolicy}
		change(&cfg)
		if _, err := u.js.CreateConsumer(t.Context(), "FILES", cfg); err != nil {
			t.Fatal(err)
		}
		s, _ := u.open()
		if _, err := s.Next(t.Context()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
		if err := u.js.DeleteConsumer(t.Context(), "FILES", "reader"); err != nil {
			t.Fatal(err)
		}
	}
	u.cfg.Stream = "OTHER"
	s, _ := u.open()
	if _, err := s.Next(t.Context()); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a stream that is not there: %v", err)
	}
}

func TestNewUpdates_NamesTheFieldThatIsWrong(t *testing.T) {
	t.Parallel()
	conn := plain(t, testcluster.StartNATS(t))
	good := natsbus.UpdatesConfig{Stream: "S", Consumer: "c"}
	var names []string
	for field, change := range map[string]func(*natsbus.UpdatesConfig){
		"stream":          func(c *natsbus.UpdatesConfig) { c.Stream = "a.b" },
		"consumer":        func(c *natsbus.UpdatesConfig) { c.Consumer = "" },
		"ack wait":        func(c *natsbus.UpdatesConfig) { c.AckWait = natsbus.MinAckWait - 1 },
		"max ack pending": func(c *natsbus.UpdatesConfig) { c.MaxAckPending = natsbus.MaxMaxAckPending + 1 },
		"batch":           func(c *natsbus.UpdatesConfig) { c.Batch = natsbus.MaxUpdatesBatch + 1 },
		"bytes":           func(c *natsbus.UpdatesConfig) { c.MaxBytes = -1 },
		"timeout":         func(c *natsbus.UpdatesConfig) { c.Timeout = time.Millisecond },
	} {
		cfg := good
		change(&cfg)
		_, err := natsbus.NewUpdates(conn, cfg)
		if err == nil || !strings.HasPrefix(err.Error(), "updates: "+field+": ") {
			t.Errorf("%s: %v", field, err)
		}
		names = append(names, field)
	}
	if _, err := natsbus.NewUpdates(conn, good); err != nil || slices.Contains(names, "") {
		t.Errorf("correct config: %v", err)
	}
}
