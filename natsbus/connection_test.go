package natsbus_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
)

func TestNotify_RestartedServerIsLostAndFoundWithItsSubscriptions(t *testing.T) {
	t.Parallel()
	s := testcluster.StartNATS(t)
	bus := openUp(t, s)
	came := subscribe(t, bus, "load", "")
	told := states(t, bus)
	await(t, told, true)
	s.Stop()
	await(t, told, false)
	if err := bus.Publish("load", "", nil); err == nil {
		t.Error("published without a server")
	}
	s.Start()
	await(t, told, true)
	publish(t, bus, "load", "", []byte("again"))
	if m := receive(t, came); string(m.Data) != "again" {
		t.Errorf("received %q", m.Data)
	}
}

func TestNotify_ServerThatComesLateIsFound(t *testing.T) {
	s := testcluster.StartNATS(t)
	s.Stop()
	bus := open(t, natsbus.Config{URLs: []string{s.URL}})
	told := states(t, bus)
	await(t, told, false)
	came := make(chan string, 1)
	err := bus.Subscribe(t.Context(), "load", "", func(m store.Message) { came <- string(m.Data) })
	if err != nil {
		t.Fatalf("subscribe without a server: %v", err)
	}
	s.Start()
	await(t, told, true)
	publish(t, bus, "load", "", []byte("hello"))
	await(t, came, "hello")
}

func TestNotify_SlowHandlerIsToldAtTheLossAndWhenItHasCaughtUp(t *testing.T) {
	t.Parallel()
	s := testcluster.StartNATS(t)
	slow, fast := openUp(t, s), openUp(t, s)
	held, handled := make(chan bool), make(chan int, 1)
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	count := 0
	err := slow.Subscribe(t.Context(), "load", "", func(store.Message) {
		if count == 0 {
			<-held
		}
		count++
		if count == natsbus.PendingMessages/2+10 {
			handled <- count
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, slow)
	told := states(t, slow)
	await(t, told, true)
	for range natsbus.PendingMessages + 1000 {
		publish(t, fast, "load", "", nil)
	}
	await(t, told, true)
	if got := slow.Stats().Overruns; got != 1 {
		t.Errorf("%d overruns, want 1", got)
	}
	if len(told) != 0 {
		t.Error("told again while the handler is behind")
	}
	settle(t, slow) // nothing is dropped from here on
	release()
	receive(t, handled)
	await(t, told, true)
}

// Whoever is told of the connection may take long over it: nobody else waits for that, and it misses nothing.
func TestNotify_OneThatIsBusyHoldsUpNobodyElse(t *testing.T) {
	s := testcluster.StartNATS(t)
	bus := openUp(t, s)
	entered, held := make(chan struct{}, 10), make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release)
	told := make(chan bool, 10)
	go func() {
		err := bus.Notify(t.Context(), func(up bool) {
			entered <- struct{}{}
			<-held
			told <- up
		})
		if err != nil {
			t.Error(err)
		}
	}()
	receive(t, entered)
	other := make(chan bool, 10)
	notified := make(chan error, 1)
	go func() { notified <- bus.Notify(t.Context(), func(up bool) { other <- up }) }()
	if err := receive(t, notified); err != nil {
		t.Fatal(err)
	}
	for _, up := range []bool{true, false, true} {
		if got := receive(t, other); got != up {
			t.Fatalf("told %v, want %v", got, up)
		}
		if up {
			s.Stop()
		} else {
			s.Start()
		}
	}
	if len(entered) != 0 {
		t.Error("it is told twice at a time")
	}
	release()
	for _, want := range []bool{true, false, true, false} {
		if got := receive(t, told); got != want {
			t.Errorf("it was told %v, want %v", got, want)
		}
	}
}

func TestOpen_InProcessServerNeedsNoSocket(t *testing.T) {
	s := testcluster.StartNATS(t)
	bus := open(t, natsbus.Config{InProcess: s.Server()})
	await(t, states(t, bus), true)
	came := subscribe(t, bus, "load", "")
	publish(t, bus, "load", "", []byte("near"))
	if m := receive(t, came); string(m.Data) != "near" {
		t.Errorf("received %q", m.Data)
	}
}

func TestOpen_GivenConnectionKeepsItsHandlersAndOutlivesTheBus(t *testing.T) {
	s := testcluster.StartNATS(t)
	lost := make(chan bool, 10)
	conn, err := nats.Connect(s.URL, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { lost <- true }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	bus := open(t, natsbus.Config{Conn: conn})
	told := states(t, bus)
	await(t, told, true)
	came := subscribe(t, bus, "load", "")
	s.Stop()
	await(t, told, false)
	await(t, lost, true)
	s.Start()
	await(t, told, true)
	publish(t, bus, "load", "", []byte("shared"))
	if m := receive(t, came); string(m.Data) != "shared" {
		t.Errorf("received %q", m.Data)
	}
	bus.Close()
	await(t, told, false)
	if !conn.IsConnected() || conn.NumSubscriptions() != 0 {
		t.Errorf("connected = %v with %d subscriptions after the bus was closed", conn.IsConnected(), conn.NumSubscriptions())
	}
}

func TestOpen_ServerThatRefusesIsTriedForEver(t *testing.T) {
	t.Parallel()
	s := testcluster.StartNATS(t)
	s.Token = "secret"
	s.Stop()
	s.Start()
	refused := make(attempts, 100)
	bus := open(t, natsbus.Config{URLs: []string{s.URL}, Log: slog.New(refused)})
	told := states(t, bus)
	for range 4 { // the client alone would give up at the second equal refusal
		receive(t, (chan struct{})(refused))
	}
	s.Stop()
	s.Token = ""
	s.Start()
	await(t, told, true)
}

// attempts is a log that counts attempts to connect.
type attempts chan struct{}

func (a attempts) Enabled(context.Context, slog.Level) bool { return true }
func (a attempts) WithAttrs([]slog.Attr) slog.Handler       { return a }
func (a attempts) WithGroup(string) slog.Handler            { return a }

func (a attempts) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "bus cannot connect, retrying" {
		a <- struct{}{}
	}
	return nil
}

// reporting is a context that is told of, and reports, before it says when it ends.
type reporting struct {
	context.Context
	report func(up bool)
}

// Done implements context.Context.
func (c reporting) Done() <-chan struct{} {
	c.report(true)
	return c.Context.Done()
}

func TestNotify_CallsTheCallersContextWithoutALock(t *testing.T) {
	listen, report := natsbus.Listen()
	told, returned := make(chan bool, 9), make(chan struct{})
	go func() {
		listen(reporting{t.Context(), report}, func(up bool) { told <- up })
		close(returned)
	}()
	select {
	case <-returned:
	case <-time.After(10 * time.Second): // used up only by a failure
		t.Fatal("the caller waits for itself")
	}
	await(t, told, false)
	await(t, told, true)
}

// levels is a log that tells the level of each line about a connection that came.
type levels chan slog.Level

func (l levels) Enabled(context.Context, slog.Level) bool { return true }
func (l levels) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l levels) WithGroup(string) slog.Handler            { return l }

func (l levels) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "bus connected" {
		l <- r.Level
	}
	return nil
}

// Whoever reads warnings alone, and so of an outage, reads of its end, too.
func TestOpen_TheEndOfAnOutageIsToldAtItsLevel(t *testing.T) {
	s := testcluster.StartNATS(t)
	came := make(levels, 10)
	open(t, natsbus.Config{URLs: []string{s.URL}, Log: slog.New(came)})
	if got := receive(t, (chan slog.Level)(came)); got != slog.LevelInfo {
		t.Errorf("the first connection is told at %s", got)
	}
	s.Stop()
	s.Start()
	if got := receive(t, (chan slog.Level)(came)); got != slog.LevelWarn {
		t.Errorf("the end of an outage is told at %s", got)
	}
}
