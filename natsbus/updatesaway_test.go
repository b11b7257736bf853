package natsbus_test

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/natsbus"
	"taskledger/work/feed"
)

// away returns how long NATS does not answer: a minute in a proof.
func away() time.Duration { return time.Duration(testkit.Times(2, 60)) * time.Second }

// wantFew fails the test if more was sent over a connection in a time than 20 messages a second.
func wantFew(t *testing.T, conn *nats.Conn, since uint64, within time.Duration) {
	t.Helper()
	sent := conn.Stats().OutMsgs - since
	if most := 20 * uint64(within.Seconds()); sent > most {
		t.Errorf("%d messages in %s, want %d at most", sent, within, most)
	}
	t.Logf("%d messages in %s", sent, within)
}

// openBy returns a source that reads over a connection with options of its own.
func (u *updates) openBy(options ...nats.Option) (*natsbus.Updates, *nats.Conn) {
	u.t.Helper()
	conn, err := nats.Connect(u.server.URL, append([]nats.Option{
		nats.MaxReconnects(-1),
		nats.ReconnectWait(50 * time.Millisecond),
		nats.ReconnectBufSize(-1),
	}, options...)...)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(conn.Close)
	s, err := natsbus.NewUpdates(conn, u.cfg)
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { s.Close() })
	return s, conn
}

func TestUpdates_OutliveNATSWithoutABusyLoop(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(4)
	s, conn := u.open()
	u.wantNext(s, 1, 2)
	u.ack(s, 1)
	u.server.Stop()
	testcluster.Await(t, "the connection is lost", func() bool { return !conn.IsConnected() })
	before := conn.Stats().OutMsgs
	acked := make(chan error, 1)
	go func() { acked <- s.Ack(t.Context(), feed.Message{Place: 2}) }()
	u.wantNext(s, 3, 4) // they came before
	u.wantNothing(s, away())
	wantFew(t, conn, before, away())
	if err := s.Progress(t.Context(), feed.Message{Place: 3}); !errors.Is(err, feed.ErrAway) {
		t.Errorf("progress without NATS: %v", err)
	}
	u.server.Start()
	if err := receive(t, acked); err != nil {
		t.Error(err)
	}
	u.publish(2)
	u.wantNext(s, 5, 6)
	u.ack(s, 3, 4, 5, 6)
	u.unacknowledged(0)
}

// More messages than a source takes at once wait behind a host that hangs.
func TestUpdates_OutliveANATSThatIsSilentWithoutABusyLoop(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.Batch, u.cfg.AckWait = 64, 2*time.Second
	u.publish(4)
	w := newWire()
	s, conn := u.openBy(nats.SetCustomDialer(w))
	u.wantNext(s, 1, 2, 3, 4)
	w.silence()
	before := conn.Stats().OutMsgs
	const more = 700
	u.publish(more)
	acked := make(chan error, 1)
	go func() { acked <- s.Ack(t.Context(), feed.Message{Place: 1}) }()
	u.wantNothing(s, away())
	wantFew(t, conn, before, away())
	w.speak()
	if err := receive(t, acked); err != nil {
		t.Error(err)
	}
	u.ack(s, 2, 3, 4)
	for place := range uint64(more) {
		u.wantNext(s, 5+place)
		u.ack(s, 5+place)
	}
	u.unacknowledged(0)
}

func TestUpdates_BegunWithoutNATSReadWhatIsThereOnceItAnswers(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(12)
	dead, conn := u.open()
	u.wantNext(dead, 1, 2, 3)
	u.ack(dead, 2)
	conn.Close()
	u.server.Stop()
	s, conn := u.openBy(nats.RetryOnFailedConnect(true))
	u.wantNothing(s, away())
	wantFew(t, conn, 0, away())
	u.server.Start()
	u.wantNext(s, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	u.ack(s, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	u.unacknowledged(0)
}

// gate dials a connection that sends nothing while it is locked.
type gate struct {
	sync.RWMutex
	conn  net.Conn // the one that was dialed last
	pongs chan struct{}
}

func (g *gate) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	g.conn, g.pongs = conn, make(chan struct{}, 1)
	return gated{conn, g}, nil
}

type gated struct {
	net.Conn
	gate *gate
}

func (g gated) Write(data []byte) (int, error) {
	g.gate.RLock()
	defer g.gate.RUnlock()
	return g.Conn.Write(data)
}

func (g gated) Read(data []byte) (int, error) {
	n, err := g.Conn.Read(data)
	if bytes.Contains(data[:n], []byte("PONG")) {
		select {
		case g.gate.pongs <- struct{}{}:
		default:
		}
	}
	return n, err
}

// startJetStream has JetStream answer again. The server writes then what it reads for each request: those before are
// over once it has answered a ping, and later ones wait.
func (u *updates) startJetStream() {
	u.t.Helper()
	u.gate.Lock()
	defer u.gate.Unlock()
	select {
	case <-u.gate.pongs: // of the connection's beginning
	default:
	}
	if _, err := u.gate.conn.Write([]byte("PING\r\n")); err != nil {
		u.t.Fatal(err)
	}
	receive(u.t, u.gate.pongs)
	if _, err := u.server.Server().Connz(nil); err != nil { // it takes the lock of each connection
		u.t.Fatal(err)
	}
	u.server.StartJetStream()
}

// The servers stay connected, and JetStream answers nothing, as while it elects a leader: 100 acknowledgements wait for
// it.
func TestUpdates_OutliveAJetStreamThatDoesNotAnswerWithoutABusyLoop(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.Batch, u.cfg.AckWait = 100, 2*time.Second
	u.publish(100)
	s, conn := u.open()
	u.wantNext(s, order(1, 100)...)
	u.server.StopJetStream()
	acked := make(chan error, 100)
	for _, place := range order(1, 100) {
		go func() { acked <- s.Ack(t.Context(), feed.Message{Place: place}) }()
	}
	u.wantNothing(s, time.Second) // each is sent once
	before := conn.Stats().OutMsgs
	u.wantNothing(s, away())
	wantFew(t, conn, before, away())
	if !conn.IsConnected() {
		t.Error("the connection is lost")
	}
	if err := s.Progress(t.Context(), feed.Message{Place: 3}); !errors.Is(err, feed.ErrAway) {
		t.Errorf("progress without JetStream: %v", err)
	}
	u.startJetStream()
	u.publish(1)
	u.wantNext(s, 101)
	for range 100 {
		if err := receive(t, acked); err != nil {
			t.Error(err)
		}
	}
	u.ack(s, 101)
	u.unacknowledged(0)
}

// A JetStream that begins answers so while it has not read all of its streams.
func TestUpdates_AskAgainWhereJetStreamTellsOnceThatThereIsNoStream(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.publish(1)
	s, _ := u.open()
	u.wantNext(s, 1)
	u.server.StopJetStream()
	begins, err := nats.Connect(u.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer begins.Close()
	told := make(chan struct{})
	none := `{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`
	sub, err := begins.Subscribe("$JS.API.CONSUMER.INFO.FILES.reader", func(m *nats.Msg) {
		defer close(told)
		if err := m.Respond([]byte(none)); err != nil {
			t.Error(err)
		}
	})
	if err == nil {
		err = errors.Join(sub.AutoUnsubscribe(1), begins.Flush())
	}
	if err != nil {
		t.Fatal(err)
	}
	acked := make(chan error, 1)
	go func() { acked <- s.Ack(t.Context(), feed.Message{Place: 1}) }()
	receive(t, told)
	u.startJetStream()
	if err := receive(t, acked); err != nil {
		t.Error(err)
	}
	u.unacknowledged(0)
}

// Acknowledgements of a consumer that is gone end, however many there are, and ask little.
func TestUpdates_AcknowledgeWithFewRequestsWhereTheConsumerIsDeleted(t *testing.T) {
	t.Parallel()
	u := newUpdates(t)
	u.cfg.Batch, u.cfg.AckWait = 100, 2*time.Second
	u.publish(100)
	s, conn := u.open()
	u.wantNext(s, order(1, 100)...)
	u.deleteConsumer()
	before := conn.Stats().OutMsgs
	acked := make(chan error, 100)
	for _, place := range order(1, 100) {
		go func() { acked <- s.Ack(t.Context(), feed.Message{Place: place}) }()
	}
	for range 100 {
		if err := receive(t, acked); err != nil {
			t.Error(err)
		}
	}
	if sent := conn.Stats().OutMsgs - before; sent > 300 {
		t.Errorf("%d messages for 100 acknowledgements, want 300 at most", sent)
	}
	u.publish(1)
	u.wantNext(s, 101)
}
