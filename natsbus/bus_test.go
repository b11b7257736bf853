package natsbus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/natsbus"
	"taskledger/store"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(4)
	goleak.VerifyTestMain(m)
}

// timeout bounds every wait of a test, on a slow and busy machine; it is used up only by a failure.
const timeout = 2 * time.Minute

func open(t *testing.T, cfg natsbus.Config) *natsbus.Bus {
	t.Helper()
	if cfg.Key == nil {
		cfg.Key = clusterKey
	}
	bus, err := natsbus.Open(cfg)
	if err != nil {
		t.Fatalf("open bus: %v", err)
	}
	t.Cleanup(func() { bus.Close() })
	return bus
}

// openUp opens a bus on the server and waits for its connection.
func openUp(t *testing.T, s *testcluster.NATS) *natsbus.Bus {
	t.Helper()
	bus := open(t, natsbus.Config{URLs: []string{s.URL}})
	await(t, states(t, bus), true)
	return bus
}

// states returns what Notify tells.
func states(t *testing.T, bus *natsbus.Bus) <-chan bool {
	t.Helper()
	told := make(chan bool, 100)
	if err := bus.Notify(t.Context(), func(up bool) { told <- up }); err != nil {
		t.Fatalf("notify: %v", err)
	}
	return told
}

// await receives until it gets want.
func await[T comparable](t *testing.T, from <-chan T, want T) {
	t.Helper()
	deadline := time.After(timeout)
	for {
		select {
		case got := <-from:
			if got == want {
				return
			}
		case <-deadline:
			t.Fatalf("no %v within %s", want, timeout)
		}
	}
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(timeout):
		t.Fatalf("nothing received within %s", timeout)
		panic("unreachable")
	}
}

// subscribe returns what comes. The server knows of the subscription when it returns, if the bus is connected.
func subscribe(t *testing.T, bus *natsbus.Bus, subject, queue string) <-chan store.Message {
	t.Helper()
	came := make(chan store.Message, 1000)
	if err := bus.Subscribe(t.Context(), subject, queue, func(m store.Message) { came <- m }); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	settle(t, bus)
	return came
}

// settle returns when the server has taken what bus sent before: a connection's messages are handled in order.
func settle(t *testing.T, bus *natsbus.Bus) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	came := make(chan store.Message, 1)
	if err := bus.Subscribe(ctx, "settled", "", func(m store.Message) { came <- m }); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	publish(t, bus, "settled", "", nil)
	receive(t, came)
}

func publish(t *testing.T, bus *natsbus.Bus, subject, reply string, data []byte) {
	t.Helper()
	if err := bus.Publish(subject, reply, data); err != nil {
		t.Fatal(err)
	}
}

// plain connects a client that knows nothing of the cluster key.
func plain(t *testing.T, s *testcluster.NATS) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(s.URL)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func TestPublish_ReachesOtherMembersAndTheSenderItself(t *testing.T) {
	s := testcluster.StartNATS(t)
	a, b := openUp(t, s), openUp(t, s)
	atA, atB := subscribe(t, a, "load", ""), subscribe(t, b, "load", "")
	publish(t, a, "load", "node.a.1", []byte("busy"))
	for _, at := range []<-chan store.Message{atA, atB} {
		m := receive(t, at)
		if m.Subject != "load" || m.Reply != "node.a.1" || string(m.Data) != "busy" || m.NoResponders {
			t.Errorf("received %+v", m)
		}
	}
}

func TestPublish_EmptyDataArrives(t *testing.T) {
	bus := openUp(t, testcluster.StartNATS(t))
	came := subscribe(t, bus, "settings", "")
	publish(t, bus, "settings", "", nil)
	if m := receive(t, came); len(m.Data) != 0 || m.NoResponders {
		t.Errorf("received %+v", m)
	}
}

func TestSubscribe_QueueGivesEachMessageToOneMember(t *testing.T) {
	s := testcluster.StartNATS(t)
	a, b := openUp(t, s), openUp(t, s)
	all := make(chan string, 1000)
	for _, bus := range []*natsbus.Bus{a, b} {
		err := bus.Subscribe(t.Context(), "plan.purge", "planners", func(m store.Message) { all <- string(m.Data) })
		if err != nil {
			t.Fatal(err)
		}
		settle(t, bus)
	}
	const count = 100
	for i := range count {
		publish(t, a, "plan.purge", "", fmt.Append(nil, i))
	}
	seen := map[string]bool{}
	for range count {
		seen[receive(t, all)] = true
	}
	settle(t, a)
	settle(t, b)
	if len(seen) != count || len(all) != 0 {
		t.Errorf("%d different messages and %d more, want %d and 0", len(seen), len(all), count)
	}
}

func TestSubscribe_WildcardTellsTheSubjectAMessageWasSentOn(t *testing.T) {
	bus := openUp(t, testcluster.StartNATS(t))
	done, node := subscribe(t, bus, "done.*", ""), subscribe(t, bus, "node.a.>", "")
	publish(t, bus, "node.a.3.0.17", "", nil)
	publish(t, bus, "done.12", "", nil)
	if m := receive(t, done); m.Subject != "done.12" {
		t.Errorf("received on %q", m.Subject)
	}
	if m := receive(t, node); m.Subject != "node.a.3.0.17" {
		t.Errorf("received on %q", m.Subject)
	}
}

func TestSubscribe_ClustersDoNotHearEachOther(t *testing.T) {
	s := testcluster.StartNATS(t)
	a := open(t, natsbus.Config{URLs: []string{s.URL}, Cluster: "a"})
	b := open(t, natsbus.Config{URLs: []string{s.URL}, Cluster: "b"})
	await(t, states(t, a), true)
	await(t, states(t, b), true)
	atB := subscribe(t, b, "load", "")
	publish(t, a, "load", "", []byte("of a"))
	settle(t, a)
	publish(t, b, "load", "", []byte("of b"))
	if m := receive(t, atB); string(m.Data) != "of b" {
		t.Errorf("received %q from another cluster", m.Data)
	}
}

func TestSubscribe_EndsWithItsContext(t *testing.T) {
	bus := openUp(t, testcluster.StartNATS(t))
	ctx, cancel := context.WithCancel(t.Context())
	came := make(chan string, 10)
	if err := bus.Subscribe(ctx, "load", "", func(m store.Message) { came <- string(m.Data) }); err != nil {
		t.Fatal(err)
	}
	publish(t, bus, "load", "", []byte("before"))
	receive(t, came)
	cancel()
	publish(t, bus, "load", "", []byte("after"))
	settle(t, bus)
	if len(came) != 0 {
		t.Errorf("received %q after the context ended", <-came)
	}
}

func TestPublish_NoRespondersNamesTheRequest(t *testing.T) {
	s := testcluster.StartNATS(t)
	a, b := openUp(t, s), openUp(t, s)
	answers := subscribe(t, a, "node.a.>", "")
	served := subscribe(t, b, "shard.2", "")
	publish(t, a, "shard.1", "node.a.1.0.7", []byte("batch"))
	publish(t, a, "shard.2", "node.a.2.0.8", []byte("batch"))
	m := receive(t, answers)
	if !m.NoResponders || m.Subject != "node.a.1.0.7" || len(m.Data) != 0 {
		t.Errorf("received %+v, want no responders on node.a.1.0.7", m)
	}
	request := receive(t, served)
	publish(t, b, request.Reply, "", []byte("answer"))
	if m := receive(t, answers); m.Subject != "node.a.2.0.8" || string(m.Data) != "answer" || m.NoResponders {
		t.Errorf("received %+v, want the answer on node.a.2.0.8", m)
	}
	settle(t, a)
	if len(answers) != 0 {
		t.Errorf("received %+v for a request that was served", <-answers)
	}
}

func TestReceive_ForgedMessagesAreCountedAndDropped(t *testing.T) {
	s := testcluster.StartNATS(t)
	var log bytes.Buffer // read when the bus has told what it drops
	bus := open(t, natsbus.Config{URLs: []string{s.URL}, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	await(t, states(t, bus), true)
	stranger := plain(t, s)
	came := subscribe(t, bus, "shard.*", "")
	genuine := natsbus.Seal(clusterKey, "taskledger.shard.1", "", []byte("batch"))
	noResponders := nats.NewMsg("taskledger.shard.1")
	noResponders.Header.Set("Status", "503")
	forged := []*nats.Msg{
		{Subject: "taskledger.shard.1"},
		{Subject: "taskledger.shard.1", Data: []byte("garbage")},
		{Subject: "taskledger.shard.1", Data: make([]byte, 100)},
		{Subject: "taskledger.shard.2", Data: genuine},
		{Subject: "taskledger.shard.1", Data: genuine, Reply: "taskledger.node.stranger"},
		{Subject: "taskledger.shard.1", Data: natsbus.Seal(bytes.Repeat([]byte{9}, 32), "taskledger.shard.1", "", nil)},
		noResponders,
	}
	for _, m := range forged {
		if err := stranger.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := stranger.Publish("taskledger.shard.1", genuine); err != nil {
		t.Fatal(err)
	}
	if m := receive(t, came); string(m.Data) != "batch" {
		t.Errorf("a forged message arrived: %+v", m)
	}
	if got, want := bus.Stats().Forged, uint64(len(forged)); got != want {
		t.Errorf("%d messages counted as forged, want %d", got, want)
	}
	if err := bus.Close(); err != nil {
		t.Error(err)
	}
	if got := strings.Count(log.String(), "taskledger.shard.1"); got != 1 {
		t.Errorf("the log is told %d times, want once, and the subject: %s", got, log.String())
	}
}

func TestPublish_CompletedIsPlainForAnyClient(t *testing.T) {
	s := testcluster.StartNATS(t)
	bus, outside := openUp(t, s), plain(t, s)
	sub, err := outside.SubscribeSync("taskledger.completed.*.FAILURE")
	if err != nil {
		t.Fatal(err)
	}
	if err := outside.Flush(); err != nil {
		t.Fatal(err)
	}
	inside := subscribe(t, bus, "completed.>", "")
	const event = `{"specversion":"1.0"}`
	publish(t, bus, "completed.purge.FAILURE", "", []byte(event))
	m, err := sub.NextMsg(timeout)
	if err != nil || string(m.Data) != event {
		t.Errorf("an outside client received %v, %v", m, err)
	}
	if m := receive(t, inside); string(m.Data) != event || m.Subject != "completed.purge.FAILURE" {
		t.Errorf("a member received %+v", m)
	}
}

func TestPublish_RefusesWhatIsNoSubject(t *testing.T) {
	bus := openUp(t, testcluster.StartNATS(t))
	for _, bad := range []string{"", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "ä", "a\r\nPUB x 0", "a/b"} {
		named := fmt.Sprintf("subject %q: ", bad)
		if err := bus.Publish(bad, "", nil); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("published on %q: %v", bad, err)
		}
		if err := bus.Publish("a", bad, nil); (err == nil) != (bad == "") || err != nil && !strings.Contains(err.Error(), "reply "+named) {
			t.Errorf("published with reply %q: %v", bad, err)
		}
	}
	for _, bad := range []string{"", "a.>.b", "a*", ">a", "a..*"} {
		if err := bus.Subscribe(t.Context(), bad, "", func(store.Message) {}); err == nil || !strings.Contains(err.Error(), `subject "`) {
			t.Errorf("subscribed to %q: %v", bad, err)
		}
	}
}

func TestPublish_BeyondTheServersLimitNamesBothSizes(t *testing.T) {
	bus := openUp(t, testcluster.StartNATS(t))
	err := bus.Publish("done.1", "", make([]byte, 1<<20))
	if !errors.Is(err, nats.ErrMaxPayload) || !strings.Contains(err.Error(), "1048576 bytes exceed the server's limit of 1048576") {
		t.Errorf("published 1 MiB: %v", err)
	}
	if err := bus.Publish("done.1", "", make([]byte, 1<<20-100)); err != nil {
		t.Errorf("published just under 1 MiB: %v", err)
	}
}

func TestOpen_RefusesBadConfigurations(t *testing.T) {
	urls := []string{"nats://127.0.0.1:1"}
	for _, c := range []struct {
		cfg  natsbus.Config
		want string
	}{
		{natsbus.Config{URLs: urls}, "cluster key: 0 bytes, want 32"},
		{natsbus.Config{Key: clusterKey}, "no NATS given"},
		{natsbus.Config{Key: clusterKey, URLs: urls, Conn: &nats.Conn{}}, "both Conn and URLs"},
		{natsbus.Config{Key: clusterKey, Conn: &nats.Conn{}}, "never been connected"},
		{natsbus.Config{Key: clusterKey, URLs: urls, Cluster: "a.b"}, `byte 1 is '.'`},
		{natsbus.Config{Key: clusterKey, URLs: urls, Cluster: strings.Repeat("a", 65)}, "65 bytes, want 1 to 64"},
		{natsbus.Config{Key: clusterKey, URLs: []string{"nats://\x00"}}, "invalid control character"},
	} {
		bus, err := natsbus.Open(c.cfg)
		if err == nil {
			bus.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("opened with %v, want %q", err, c.want)
		}
	}
}

// silentConn is a connection to whoever never says a word, like a host behind a broken network. It does not end in
// time.
type silentConn struct{ net.Conn }

func (silentConn) SetDeadline(time.Time) error      { return nil }
func (silentConn) SetReadDeadline(time.Time) error  { return nil }
func (silentConn) SetWriteDeadline(time.Time) error { return nil }

func TestOpen_SilentServerHoldsUpNobody(t *testing.T) {
	near, far := net.Pipe()
	dialed := make(chan struct{}, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		bus := open(t, natsbus.Config{URLs: []string{"nats://silent:4222"}, Dial: func(context.Context) (net.Conn, error) {
			dialed <- struct{}{}
			return silentConn{near}, nil
		}})
		if told := receive(t, states(t, bus)); told {
			t.Error("told of a connection")
		}
		<-dialed
		if err := bus.Publish("load", "", nil); !errors.Is(err, nats.ErrDisconnected) {
			t.Errorf("publish without a connection: %v", err)
		}
	}()
	receive(t, done)
	far.Close()
}

// The client holds its lock until an attempt to connect has ended.
func TestSubscribe_SilentServerHoldsUpNobody(t *testing.T) {
	s := testcluster.StartNATS(t)
	near, far := net.Pipe()
	t.Cleanup(func() { far.Close() })
	dialed, speaks := make(chan struct{}), make(chan struct{})
	bus := open(t, natsbus.Config{URLs: []string{s.URL}, Dial: func(ctx context.Context) (net.Conn, error) {
		if near != nil {
			silent := near
			near = nil
			close(dialed)
			return silentConn{silent}, nil
		}
		select {
		case <-speaks:
			return net.Dial("tcp", s.Server().Addr().String())
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}})
	told := states(t, bus)
	receive(t, dialed)
	ending, end := context.WithCancel(t.Context())
	came, ended := make(chan bool, 100), make(chan bool, 100)
	subscribed := make(chan error, 2)
	for ctx, to := range map[context.Context]chan bool{t.Context(): came, ending: ended} {
		go func() { subscribed <- bus.Subscribe(ctx, "load", "", func(store.Message) { to <- true }) }()
	}
	for range 2 { // before the server has said a word
		if err := receive(t, subscribed); err != nil {
			t.Fatal(err)
		}
	}
	end()
	close(speaks)
	far.Close()
	other, deadline := openUp(t, s), time.After(timeout)
	for heard := false; !heard; { // whenever messages may have been missed that is told
		select {
		case up := <-told:
			if up {
				settle(t, bus) // the server knows all subscriptions that were made before
				publish(t, other, "load", "", nil)
			}
		case <-came:
			heard = true
		case <-deadline:
			t.Fatal("nothing is received")
		}
	}
	testcluster.Await(t, "one subscription", func() bool { return s.Server().NumSubscriptions() == 1 })
	if len(ended) != 0 {
		t.Errorf("%d messages after the end of a context", len(ended))
	}
}

func TestNotify_EndsWithItsContext(t *testing.T) {
	s := testcluster.StartNATS(t)
	bus := openUp(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	ended, lives := make(chan bool, 10), states(t, bus)
	if err := bus.Notify(ctx, func(up bool) { ended <- up }); err != nil {
		t.Fatal(err)
	}
	await(t, ended, true)
	cancel()
	s.Stop()
	await(t, lives, false)
	bus.Close()
	if len(ended) != 0 {
		t.Errorf("told %v after the context ended", <-ended)
	}
}

func TestClose_EndsSubscriptionsAndRefusesTheRest(t *testing.T) {
	s := testcluster.StartNATS(t)
	bus := openUp(t, s)
	told := states(t, bus)
	subscribe(t, bus, "load", "")
	for range 2 {
		if err := bus.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	await(t, told, false)
	if err := bus.Publish("load", "", nil); err == nil {
		t.Error("published on a closed bus")
	}
	if err := bus.Subscribe(t.Context(), "load", "", func(store.Message) {}); err == nil {
		t.Error("subscribed to a closed bus")
	}
}

func TestClose_WaitsForTheHandlerThatRuns(t *testing.T) {
	bus := openUp(t, testcluster.StartNATS(t))
	running, finish, finished := make(chan bool), make(chan bool), make(chan bool, 1)
	err := bus.Subscribe(t.Context(), "load", "", func(store.Message) {
		close(running)
		<-finish
		finished <- true
	})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, bus, "load", "", nil)
	receive(t, running)
	go close(finish)
	bus.Close()
	if len(finished) != 1 {
		t.Error("closed while a handler ran")
	}
}
