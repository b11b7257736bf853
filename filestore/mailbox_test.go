package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"taskledger/filestore/memjournal"
	"taskledger/store"
)

func TestStore_KeepsNothingOfSendersThatHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, new(memjournal.Journal))
		ctx, leave := context.WithCancel(t.Context())
		for i := range 100 {
			go func() {
				for range s.Answers(ctx, fmt.Sprint("sender-", i)) {
				}
			}()
		}
		synctest.Wait()
		if n := s.Topics(); n != 100 {
			t.Errorf("%d topics, want one for each of 100 senders that wait", n)
		}
		leave()
		synctest.Wait()
		if n := s.Topics(); n != 0 {
			t.Errorf("%d topics, and nobody waits", n)
		}
	})
}

// posted posts batches of a byte, each of another sender, until the store takes no more, and returns them.
func posted(t *testing.T, s store.Store) (all []store.MailboxBatch) {
	t.Helper()
	n := 0
	for ; ; n++ {
		err := s.Post(t.Context(), 0, fmt.Sprint("sender-", n), 0, []byte{1})
		if errors.Is(err, store.ErrFull) && errors.Is(err, store.ErrRefused) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for b, err := range s.Batches(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, b); len(all) == n {
			break
		}
	}
	return all
}

// Each sender has a name, and boxes are held in tables: small batches take more than their bytes.
func TestMailboxes_OfManySendersAreBoundedByMoreThanTheirData(t *testing.T) {
	s := open(t, new(memjournal.Journal))
	s.BoundMail(64 << 10)
	if n := len(posted(t, s)); n < 100 || n > 256 {
		t.Errorf("%d batches of a byte wait in 64 KiB", n)
	}
}

func TestAnswer_IsBoundedAsBatchesAre(t *testing.T) {
	const most = 64 << 10
	s := open(t, new(memjournal.Journal))
	s.BoundMail(most)
	all := posted(t, s)
	if err := s.Answer(t.Context(), all[0], []byte("a little more than was posted")); err != nil {
		t.Fatalf("no room is left for the answers of what was posted: %v", err)
	}
	large, answered := make([]byte, 4<<10), 1
	var err error
	for err == nil && answered < len(all) {
		if err = s.Answer(t.Context(), all[answered], large); err == nil {
			answered++
		}
		if used := s.Mail(); used > most {
			t.Fatalf("%d bytes wait after %d answers, at most %d may", used, answered, most)
		}
	}
	if !errors.Is(err, store.ErrFull) || !errors.Is(err, store.ErrRefused) {
		t.Fatalf("after %d answers of 4 KiB: %v", answered, err)
	}
	if err := s.Answer(t.Context(), all[answered], []byte{1}); err != nil {
		t.Errorf("the batch cannot be answered by no more than it had: %v", err)
	}
	for range s.Answers(t.Context(), all[1].Sender) { // it takes the first one
		break
	}
	if err := s.Answer(t.Context(), all[answered+1], large); err != nil {
		t.Errorf("after an answer was taken: %v", err)
	}
	if err := s.RemoveMailboxes(t.Context(), all[len(all)-1].Sender); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.SweepMailboxes(t.Context(), revision(t, s)); err != nil || s.Mail() != 0 {
		t.Errorf("%d bytes are counted of no boxes, %v", s.Mail(), err)
	}
}
