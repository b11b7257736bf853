package natsbus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// inspected returns an archive's report on itself.
func inspected(t *testing.T, a *natsbus.Archive) store.ArchiveCondition {
	t.Helper()
	is, err := a.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// Whoever may use JetStream's API may shorten a stream in whose settings it says that nothing is deleted or purged.
func TestInspect_TellsOfAStreamThatWasShortened(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	a := openArchive(t, s)
	if is := inspected(t, a); is != (store.ArchiveCondition{Empty: true}) {
		t.Errorf("before it begins: %+v", is)
	}
	head := archive(t, a, 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 3))
	head = archive(t, a, 0, head, archivetest.Entries(t, 0, 4, 3))
	if is := inspected(t, a); is != (store.ArchiveCondition{}) {
		t.Errorf("as it was made: %+v", is)
	}
	js := byHand(t, s.URL)
	stream, err := js.Stream(t.Context(), archiveStream)
	if err != nil {
		t.Fatal(err)
	}
	whole := stream.CachedInfo().Config
	shortened := whole
	shortened.MaxAge, shortened.Duplicates = time.Second, time.Second
	if _, err := js.UpdateStream(t.Context(), shortened); err != nil {
		t.Fatal(err)
	}
	if is := inspected(t, a); !strings.Contains(is.Problem, archiveStream) || !strings.Contains(is.Problem, "it removes messages after 1s") {
		t.Errorf("shortened: %+v", is)
	}
	if _, err := a.Archive(t.Context(), 0, head, archivetest.Entries(t, 0, 7, 1)); err == nil || !strings.Contains(err.Error(), "would not keep") {
		t.Errorf("what came after that was archived: %v", err)
	}
	testcluster.Await(t, "the loss of all messages", func() bool {
		is := inspected(t, a)
		return is.Empty && strings.Contains(is.Problem, "its first 2 messages are gone")
	})
	if _, err := js.UpdateStream(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	if is := inspected(t, a); is.Problem != "stream "+archiveStream+": its first 2 messages are gone" {
		t.Errorf("with its settings as they were: %+v", is)
	}
}

func TestInspect_TellsOfMessagesThatMayBeRemovedAndOfThoseThatWere(t *testing.T) {
	t.Parallel()
	s := testcluster.StartJetStream(t)
	js := byHand(t, s.URL)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: archiveStream, Subjects: []string{"taskledger.archive.*"}})
	if err != nil {
		t.Fatal(err)
	}
	a := openArchive(t, s)
	head := archive(t, a, 0, store.ArchiveHead{}, archivetest.Entries(t, 0, 1, 1))
	head = archive(t, a, 0, head, archivetest.Entries(t, 0, 2, 1))
	archive(t, a, 0, head, archivetest.Entries(t, 0, 3, 1))
	if is := inspected(t, a); is.Empty || !strings.Contains(is.Problem, "lets messages be removed") {
		t.Errorf("removable: %+v", is)
	}
	if err := stream.DeleteMsg(t.Context(), head.Sequence); err != nil {
		t.Fatal(err)
	}
	if is := inspected(t, a); !strings.Contains(is.Problem, "1 messages in it were deleted") {
		t.Errorf("removed: %+v", is)
	}
}
