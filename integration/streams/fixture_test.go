package streams_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/feed"
)

const followed events.TaskID = "tenant/follow"

type (
	stream = work.Stream[struct{}, change]
	follow = work.Work[struct{}, work.Change[change]]
)

// world is a cluster of nodes that run a stream.
type world struct {
	*testing.T
	cluster *testcluster.Cluster
	nodes   map[string]*testcluster.Node
	client  *testcluster.Client
	of      *follow // as the client has it
	define  func(node string) *follow
	script  *script
	target  *target

	simulates bool // each run simulates the stream first; fill sets it

	mu     sync.Mutex
	begins []begin
	conns  map[string][]*nats.Conn // of sources, by node
}

// begin tells from where an attempt has fetched changes.
type begin struct {
	at    time.Time
	token string
}

// newWorld starts three nodes and a client. fill completes the stream of a node, whose Process it may leave nil: the
// target takes the change then, after pace.
func newWorld(t *testing.T, s *script, pace time.Duration, policy task.Policy, fill func(w *world, node string, s *stream)) *world {
	t.Helper()
	w := &world{
		T:      t,
		script: s,
		target: newTarget(),
		nodes:  map[string]*testcluster.Node{},
		conns:  map[string][]*nats.Conn{},
		cluster: testcluster.New(t, testcluster.Options{
			JetStream: true,
			TTL:       3 * time.Second,
		}),
	}
	w.define = func(node string) *follow {
		var is stream
		fill(w, node, &is)
		if is.Process == nil {
			is.Process = func(ctx context.Context, c work.Change[change]) error {
				if err := short(ctx, pace); err != nil {
					return err
				}
				a, _ := behaviors.Attempt(ctx)
				return w.target.apply(node, a.Token.Ref, c.Value)
			}
		}
		all := []stream{is}
		if w.simulates {
			think := is
			think.ID, think.Mode = "think", work.Simulate
			all = []stream{think, is}
		}
		return work.DefineStream("follow", &work.Options{Policy: policy}, all...)
	}
	for _, name := range []string{"a", "b", "c"} {
		w.start(name)
	}
	w.client = w.cluster.StartClient("client", nil)
	w.of = w.define("client")
	return w
}

func (w *world) start(name string) {
	w.nodes[name] = w.cluster.StartNode(name, func(cfg *engine.NodeConfig) { cfg.Slots = 4 }, w.define(name))
}

// crash kills a node, whose session lives on until its time is over, and starts it again.
func (w *world) crash(name string) {
	w.mu.Lock()
	conns := w.conns[name]
	w.conns[name] = nil
	w.mu.Unlock()
	for _, conn := range conns { // a process that dies gives nothing back
		conn.Close()
	}
	w.nodes[name].Crash()
	w.start(name)
}

func (w *world) must(errs ...error) {
	w.Helper()
	if err := errors.Join(errs...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) within() context.Context { return testcluster.Within(w) }

func (w *world) await(what string, holds func() bool) {
	w.Helper()
	testcluster.Await(w, what, holds)
}

func (w *world) submit() {
	w.Helper()
	f, err := w.of.Submit(w.within(), w.client, struct{}{}, task.SubmitOptions{ID: followed})
	w.must(err)
	f.Close()
}

// show returns a task; false: there is none.
func (w *world) show(id events.TaskID) (t task.Task, is bool) {
	w.Helper()
	t, err := w.client.GetLinear(w.within(), id)
	if errors.Is(err, task.ErrNotFound) {
		return t, false
	}
	w.must(err)
	return t, true
}

func (w *world) awaitStatus(id events.TaskID, want task.Status) {
	w.Helper()
	w.await(fmt.Sprintf("task %s is %s", id, want), func() bool {
		t, is := w.show(id)
		return is && t.Status == want
	})
}

// awaitDone waits until so many changes are processed.
func (w *world) awaitDone(n int) {
	w.Helper()
	w.await(fmt.Sprint(n, " changes are processed"), func() bool {
		done, _ := w.target.count()
		return done >= n
	})
}

// fetch has a stream fetch the changes of the script, with their places as tokens.
func (w *world) fetch(s *stream) {
	s.Changes = func(_ context.Context, _ struct{}, token string) iter.Seq2[work.Change[change], error] {
		w.mu.Lock()
		w.begins = append(w.begins, begin{time.Now(), token})
		w.mu.Unlock()
		return func(yield func(work.Change[change], error) bool) {
			for _, c := range w.script.from(place(token)) {
				if !yield(work.Change[change]{Key: c.Key, Token: strconv.FormatUint(c.Place, 10), Value: c}, nil) {
					return
				}
			}
		}
	}
}

func place(token string) uint64 {
	n, _ := strconv.ParseUint(token, 10, 64) // "" is 0
	return n
}

// moved returns the moves of the token in the journal.
func (w *world) moved() (all []*moved) {
	w.Helper()
	for ev, err := range w.client.Ledger().History(w.within(), followed) {
		w.must(err)
		if m, is := ev.Body.(*events.TokenMoved); is && m.Token != "" && !m.Simulated {
			all = append(all, &moved{m, ev.At.Time()})
		}
	}
	return all
}

type moved struct {
	*events.TokenMoved
	at time.Time
}

// judge reports an error if the journal has a token behind a change that was not processed then, one that goes back, or
// an attempt that began before the last one.
func (w *world) judge() {
	w.Helper()
	const tick = 2 * time.Millisecond // the journal tells milliseconds
	all := w.moved()
	var last uint64
	for _, m := range all {
		at, done := w.target.allUpTo(place(m.Token))
		if !done || at.After(m.at.Add(tick)) {
			w.Errorf("token %s at %s, and a change before it was processed at %s (%v)", m.Token, m.at, at, done)
		}
		if place(m.Token) <= last {
			w.Errorf("token %s behind %d", m.Token, last)
		}
		last = place(m.Token)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.begins {
		was := slices.IndexFunc(all, func(m *moved) bool { return m.at.Add(tick).After(b.at) })
		if was < 0 {
			was = len(all)
		}
		if was > 0 && place(all[was-1].Token) > place(b.token) {
			w.Errorf("changes are fetched from token %q on, and the journal has %s", b.token, all[was-1].Token)
		}
	}
	w.Logf("%d moves, %d times fetched", len(all), len(w.begins))
}

// push publishes the changes of the script, which take the places of their messages.
func (w *world) push() jetstream.JetStream {
	w.Helper()
	conn, err := nats.Connect(w.cluster.NATS.URL, nats.MaxReconnects(-1))
	w.must(err)
	w.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(256))
	w.must(err)
	_, err = js.CreateStream(w.within(), jetstream.StreamConfig{
		Name:     "CHANGES",
		Subjects: []string{"changes"},
		Storage:  jetstream.FileStorage,
	})
	w.must(err)
	for _, c := range w.script.from(0) {
		data, err := json.Marshal(c)
		w.must(err)
		_, err = js.PublishAsync("changes", data, jetstream.WithStallWait(time.Minute))
		w.must(err)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-w.within().Done():
		w.Fatal("not all changes were published")
	}
	return js
}

// left returns how many messages are delivered and not acknowledged, and how many are not delivered.
func (w *world) left(js jetstream.JetStream) (unacknowledged, pending int) {
	c, err := js.Consumer(w.within(), "CHANGES", "follow")
	if err != nil { // NATS is away, or the consumer was not made yet
		return 0, -1
	}
	is := c.CachedInfo()
	return is.NumAckPending, int(is.NumPending)
}

// awaitAcknowledged waits until all messages are acknowledged.
func (w *world) awaitAcknowledged(js jetstream.JetStream) {
	w.Helper()
	w.await("all messages are acknowledged", func() bool {
		unacknowledged, pending := w.left(js)
		return unacknowledged == 0 && pending == 0
	})
}

// receive has a stream read what is pushed.
func (w *world) receive(node string, s *stream) {
	s.Source = func(context.Context, struct{}) (feed.Source, error) {
		conn, err := nats.Connect(w.cluster.NATS.URL, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
			nats.ReconnectBufSize(-1), nats.RetryOnFailedConnect(true))
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		w.conns[node] = append(w.conns[node], conn)
		w.mu.Unlock()
		updates, err := natsbus.NewUpdates(conn, natsbus.UpdatesConfig{
			Stream:   "CHANGES",
			Consumer: "follow",
			AckWait:  5 * time.Second,
		})
		if err != nil {
			conn.Close()
			return nil, err
		}
		return source{updates, conn}, nil
	}
	s.Convert = func(_ context.Context, _ struct{}, m feed.Message) ([]work.Change[change], error) {
		var c change
		if err := json.Unmarshal(m.Data, &c); err != nil {
			return nil, behaviors.Code("unreadable", err, nil)
		}
		return []work.Change[change]{{Key: c.Key, Value: c}}, nil
	}
}

// source is a source with a connection of its own.
type source struct {
	*natsbus.Updates
	conn *nats.Conn
}

func (s source) Close() error {
	defer s.conn.Close()
	return s.Updates.Close()
}

// short waits a moment, or until ctx ends.
func short(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
