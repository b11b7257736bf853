package natsbus_test

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// ofCluster opens the archive as members of the cluster with an id do.
func ofCluster(t testing.TB, s *testcluster.NATS, id string) *natsbus.Archive {
	t.Helper()
	return archiveOf(t, natsbus.Config{URLs: []string{s.URL}}, natsbus.ArchiveConfig{Cluster: id})
}

// makeStream makes the stream as an operator does beforehand, with settings of his own.
func makeStream(t testing.TB, js jetstream.JetStream, metadata map[string]string) {
	t.Helper()
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name:     archiveStream,
		Subjects: []string{"taskledger.archive.*"},
		MaxMsgs:  1000,
		Discard:  jetstream.DiscardNew,
		Metadata: metadata,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantCluster checks which cluster the stream tells, and that it is otherwise as it was made.
func wantCluster(t testing.TB, js jetstream.JetStream, id string) {
	t.Helper()
	s, err := js.Stream(t.Context(), archiveStream)
	if err != nil {
		t.Fatal(err)
	}
	if c := s.CachedInfo().Config; c.Metadata["taskledger-cluster"] != id || c.Metadata["owner"] != "ops" || c.MaxMsgs != 1000 {
		t.Errorf("stream %+v, want it of cluster %q and as it was made", c, id)
	}
}

// wantAnothers checks that the archive is neither read nor written.
func wantAnothers(t testing.TB, a *natsbus.Archive) {
	t.Helper()
	_, headless := a.Head(t.Context(), 0)
	_, unread := archivetest.Collect(a.ReadArchive(t.Context(), 0, 1))
	_, unfound := archivetest.Collect(a.FindArchived(t.Context(), 0, "task-1", math.MaxUint64))
	_, unwritten := a.Archive(t.Context(), 1, store.ArchiveHead{}, archivetest.Entries(t, 1, 1, 1))
	unclaimed := a.Claim(t.Context())
	for what, err := range map[string]error{"head": headless, "read": unread, "find": unfound, "archive": unwritten, "claim": unclaimed} {
		if !errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "it is of cluster one, this is two") {
			t.Errorf("%s of another cluster's: %v", what, err)
		}
	}
}

func TestArchive_StreamThatWasMadeBeforehandIsOfWhoWritesFirst(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	js := byHand(t, s.URL)
	makeStream(t, js, map[string]string{"owner": "ops"})
	one, two := ofCluster(t, s, "one"), ofCluster(t, s, "two")
	for _, a := range []*natsbus.Archive{one, two} { // nobody has written: whoever looks learns nothing for later
		if head, err := a.Head(t.Context(), 0); head != (store.ArchiveHead{}) || err != nil {
			t.Fatalf("of an empty stream: %+v, %v", head, err)
		}
	}
	archive(t, one, 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 1))
	wantCluster(t, js, "one")
	wantAnothers(t, two)
	archive(t, one, 1, store.ArchiveHead{}, archivetest.Entries(t, 1, 1, 1))
}

func TestArchive_StreamThatTellsNoClusterIsClaimed(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	js := byHand(t, s.URL)
	makeStream(t, js, map[string]string{"owner": "ops"})
	anybodys := archivetest.Entries(t, 0, 1, 2)
	head := archive(t, openArchive(t, s), 0, store.ArchiveHead{}, anybodys)
	one, two := ofCluster(t, s, "one"), ofCluster(t, s, "two")
	for _, a := range []*natsbus.Archive{one, two} {
		if got, err := a.Head(t.Context(), 0); got != head || err != nil {
			t.Fatalf("before it is claimed: %+v, %v", got, err)
		}
	}
	wantCluster(t, js, "")
	for range 2 {
		if err := one.Claim(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantCluster(t, js, "one")
	wantAnothers(t, two)
	got, err := archivetest.Collect(one.ReadArchive(t.Context(), 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, anybodys)
}

// Whoever has written to the stream before it was another cluster's writes, and confirms, no more: its journal would be
// trimmed.
func TestArchive_IsNotWrittenOnceAnotherClusterHasClaimedIt(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	js := byHand(t, s.URL)
	makeStream(t, js, nil)
	archive(t, openArchive(t, s), 1, store.ArchiveHead{}, archivetest.Entries(t, 1, 1, 1)) // so nobody names it
	one, two := ofCluster(t, s, "one"), ofCluster(t, s, "two")
	written := archivetest.Entries(t, 0, 1, 2)
	head := archive(t, two, 0, store.ArchiveHead{}, written)
	if err := one.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := two.Confirm(t.Context(), 0, head, written); !errors.Is(err, store.ErrConflict) {
		t.Errorf("confirmed: %v", err)
	}
	more := archivetest.Entries(t, 0, 1, 3)[2:]
	if _, err := two.Archive(t.Context(), 0, head, more); !errors.Is(err, store.ErrConflict) {
		t.Errorf("archived: %v", err)
	}
}

// A stream that was emptied tells nothing of whose it was. Of which cluster the next message is must be known at once.
func TestArchive_StreamThatWasEmptiedIsOfWhoWritesNext(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	js := byHand(t, s.URL)
	makeStream(t, js, map[string]string{"owner": "ops"})
	forge(t, js, nil, []byte("a try"))
	stream, err := js.Stream(t.Context(), archiveStream)
	if err == nil {
		err = stream.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	archive(t, ofCluster(t, s, "one"), 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 1))
	wantCluster(t, js, "one")
	wantAnothers(t, ofCluster(t, s, "two"))
}

// asked counts the requests for the stream's settings, and those to change them.
type asked struct {
	t            testing.TB
	js           jetstream.JetStream
	looks, names *nats.Subscription
}

// listenTo counts what is asked from now on.
func listenTo(t testing.TB, js jetstream.JetStream) *asked {
	t.Helper()
	subscribe := func(what string) *nats.Subscription {
		sub, err := js.Conn().SubscribeSync("$JS.API.STREAM." + what + "." + archiveStream)
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	a := &asked{t, js, subscribe("INFO"), subscribe("UPDATE")}
	a.since()
	return a
}

// since returns how much was asked since it was called last.
func (a *asked) since() (looks, names int) {
	a.t.Helper()
	if err := a.js.Conn().Flush(); err != nil { // what the server has got before is here then
		a.t.Fatal(err)
	}
	for sub, n := range map[*nats.Subscription]*int{a.looks: &looks, a.names: &names} {
		var err error
		*n, _, err = sub.Pending()
		for i := 0; i < *n && err == nil; i++ {
			_, err = sub.NextMsg(timeout)
		}
		if err != nil {
			a.t.Fatal(err)
		}
	}
	return looks, names
}

// Where the server does not let its stream tell the cluster, a node archives all the same, says once what is missing,
// and asks no more often than once a minute, whatever the number of shards.
func TestArchive_StreamThatCannotBeNamedIsUsedAndToldOnce(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	js := byHand(t, s.URL)
	makeStream(t, js, map[string]string{"owner": "ops", "": strings.Repeat("x", 127<<10)}) // a server takes 128 KiB
	requests := listenTo(t, js)
	var log bytes.Buffer
	warnings := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	cfg := natsbus.Config{URLs: []string{s.URL}, Log: warnings}
	id := strings.Repeat("1", 2<<10)
	a := archiveOf(t, cfg, natsbus.ArchiveConfig{Cluster: id})
	archive(t, a, 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 1))
	if looks, names := requests.since(); looks > 2 || names != 1 {
		t.Errorf("%d looks, and %d tries to name the stream before its first segment, want 2 at most, and one", looks, names)
	}
	for shard := range 8 {
		if err := a.Claim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Head(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
		archive(t, a, 8+shard, store.ArchiveHead{}, archivetest.Entries(t, 8+shard, 1, 1))
	}
	if looks, names := requests.since(); looks+names > 0 {
		t.Errorf("%d looks, and %d tries to name the stream within a minute", looks, names)
	}
	a.Later()
	for shard := range 8 {
		if _, err := a.Head(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
	}
	if looks, _ := requests.since(); looks != 1 {
		t.Errorf("%d looks within the next minute, want one", looks)
	}
	inspected(t, a)
	if _, names := requests.since(); names != 1 {
		t.Errorf("%d tries to name the stream when it is inspected, want one", names)
	}
	if n := strings.Count(log.String(), "the archive does not tell its cluster"); n != 1 {
		t.Errorf("told %d times, want once: %.2000s", n, log.String())
	}
	wantCluster(t, js, "")

	stream, err := js.Stream(t.Context(), archiveStream)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	c.Metadata = map[string]string{"owner": "ops"}
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	inspected(t, a)
	wantCluster(t, js, id)
}

// Many shards that find their entries at a time name the stream once.
func TestArchive_IsClaimedByOneShardAtATime(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	js := byHand(t, s.URL)
	makeStream(t, js, map[string]string{"owner": "ops"})
	archive(t, openArchive(t, s), 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 1)) // so nobody names it
	requests := listenTo(t, js)
	one := ofCluster(t, s, "one")
	var claims sync.WaitGroup
	for range 32 {
		claims.Go(func() {
			if err := one.Claim(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	claims.Wait()
	wantCluster(t, js, "one")
	if _, names := requests.since(); names != 1 {
		t.Errorf("the stream was named %d times, want once", names)
	}
}
