package natsbus_test

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strings"
	"testing"

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

// Who has written to the stream before it was another cluster's writes, and confirms, no more: its journal would be trimmed.
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

// Where the server does not let its stream tell the cluster, a node archives all the same, and says what is missing.
func TestArchive_StreamThatCannotBeNamedIsUsedAndTold(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	js := byHand(t, s.URL)
	full := map[string]string{"owner": "ops", "": strings.Repeat("x", 127<<10)} // a server takes 128 KiB
	makeStream(t, js, full)
	var log bytes.Buffer
	warnings := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	cfg := natsbus.Config{URLs: []string{s.URL}, Log: warnings}
	a := archiveOf(t, cfg, natsbus.ArchiveConfig{Cluster: strings.Repeat("1", 2<<10)})
	archive(t, a, 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 1))
	if !strings.Contains(log.String(), "the archive does not tell its cluster") {
		t.Errorf("log %q", log.String())
	}
	if err := a.Claim(t.Context()); err == nil {
		t.Error("claimed")
	}
	wantCluster(t, js, "")
}
