package engine_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

// A full or read-only disk costs the wait that the file would save, and nothing else.
func TestSession_FileThatCannotBeWrittenLeavesOneSession(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true})
	j := newJob(engine.Policy{})
	path := filepath.Join(t.TempDir(), "missing", "session.json")
	n := c.StartNode("a", func(cfg *cfg) { cfg.SessionFile = path }, j)
	f := j.submit(t, n, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
	got, err := c.Etcd.Get(within(t), nodeKey(""), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || got.Count != 1 {
		t.Errorf("%d sessions, %v; want one", got.Count, err)
	}
}

// What a crash left half-written is written again, and nothing else is left beside it.
func TestSession_FileIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true})
	path := filepath.Join(t.TempDir(), "session.json")
	for _, half := range []string{path, path + ".new"} {
		if err := os.WriteFile(half, []byte(`{"ID":"ha`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := c.StartNode("a", func(cfg *cfg) { cfg.SessionFile = path })
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), n.SessionID()) {
		t.Errorf("the file holds %q, %v; want session %s", text, err, n.SessionID())
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, %v; want the one", files, err)
	}
}

var errGivesUp = errors.New("refused for good")

// ending is a store whose watches of mail and members a test ends, as a refusal does.
type ending struct {
	store.Store
	letters, members chan struct{} // what is sent ends one of them
	answers          atomic.Int32  // times to end at once
}

func (s *ending) Batches(ctx context.Context, shard int) iter.Seq2[store.MailboxBatch, error] {
	if shard != 0 {
		return s.Store.Batches(ctx, shard)
	}
	return endedBy(ctx, s.letters, func(ctx context.Context) iter.Seq2[store.MailboxBatch, error] { return s.Store.Batches(ctx, shard) })
}

func (s *ending) WatchMembers(ctx context.Context) iter.Seq2[store.Membership, error] {
	return endedBy(ctx, s.members, s.Store.WatchMembers)
}

func (s *ending) Answers(ctx context.Context, sender string) iter.Seq2[store.MailboxAnswer, error] {
	if s.answers.Add(-1) >= 0 {
		return func(yield func(store.MailboxAnswer, error) bool) { yield(store.MailboxAnswer{}, errGivesUp) }
	}
	return s.Store.Answers(ctx, sender)
}

// endedBy is a watch that ends with an error when something is sent.
func endedBy[V any](ctx context.Context, over <-chan struct{}, watch func(context.Context) iter.Seq2[V, error]) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			select {
			case <-over:
				cancel(errGivesUp)
			case <-ctx.Done():
			}
		}()
		for v, err := range watch(ctx) {
			if !yield(v, err) {
				return
			}
		}
		if err := context.Cause(ctx); errors.Is(err, errGivesUp) {
			var none V
			yield(none, err)
		}
	}
}

// A node that hears of nothing any more must not stay a member that others wait for.
func TestSession_EndsWithItsWatches(t *testing.T) {
	t.Parallel()
	for what, watch := range map[string]func(*ending) chan struct{}{
		"letters": func(s *ending) chan struct{} { return s.letters },
		"members": func(s *ending) chan struct{} { return s.members },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 2})
			s := &ending{letters: make(chan struct{}), members: make(chan struct{})}
			n := c.StartNode("a", func(cfg *cfg) { s.Store, cfg.Store = cfg.Store, s })
			session := n.SessionID()
			watch(s) <- struct{}{}
			testcluster.Await(t, "another session", func() bool { id := n.SessionID(); return id != "" && id != session })
		})
	}
}

func TestClient_ReadsAnswersAgainAfterARefusal(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true})
	j := newJob(engine.Policy{})
	c.StartNode("a", nil, j)
	s := &ending{}
	s.answers.Store(2)
	client := c.StartClient("caller", func(cfg *engine.ClientConfig) { s.Store, cfg.Store = cfg.Store, s })
	f := j.submit(t, client, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
}

// counted counts the records of a log that hold a text.
type counted struct {
	slog.Handler
	text string
	n    *atomic.Int64
}

func (h counted) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, h.text) {
		h.n.Add(1)
	}
	return h.Handler.Handle(ctx, r)
}

func (h counted) WithAttrs(attrs []slog.Attr) slog.Handler {
	return counted{h.Handler.WithAttrs(attrs), h.text, h.n}
}

func TestBrake_IsLoggedWhenItBeginsAndNotForEveryByte(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 1})
	g, said := &gauge{}, new(atomic.Int64)
	g.show(79)
	j := newJob(engine.Policy{})
	n := c.StartNode("a", with(g.under, func(cfg *cfg) { cfg.Log = slog.New(counted{cfg.Log.Handler(), "new tasks are refused", said}) }), j)
	for times := range int64(2) {
		for percent := int64(81); percent < 83; percent++ {
			g.show(percent)
			awaitDegraded(t, n.Client, "the store holds "+strconv.FormatInt(16<<20/100*percent, 10))
			wantOverload(t, n, j, "the store holds")
		}
		if got := said.Load(); got != times+1 {
			t.Errorf("logged %d times, want %d", got, times+1)
		}
		g.show(50)
		awaitDegraded(t, n.Client, "")
	}
}
