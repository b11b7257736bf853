package filestore_test

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
	"taskledger/filestore/memjournal"
	"taskledger/store"
)

// failing is a journal of which no append is made.
type failing struct{ memjournal.Journal }

var errLost = errors.New("connection lost")

// Append implements journal.Journaler.
func (f *failing) Append(journal.Entry) error { return errLost }

func TestBroken_WritesAndRenewalsTellOfTheWriteThatNobodyKnowsTheOutcomeOf(t *testing.T) {
	ctx := t.Context()
	s := open(t, new(failing))
	session, err := s.Join(ctx, store.NodeInfo{Name: "node"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	own, err := s.Take(ctx, session, 0, store.Owner{})
	if err == nil {
		err = s.Renew(ctx, session)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, first := s.Append(ctx, own, store.Head{}, []byte("entry"))
	_, joined := s.Join(ctx, store.NodeInfo{Name: "node"}, time.Minute)
	for of, err := range map[string]error{"append": first, "join": joined, "renew": s.Renew(ctx, session)} {
		if !errors.Is(err, store.ErrBroken) || !errors.Is(err, errLost) {
			t.Errorf("%s: %v", of, err)
		}
	}
	if err := s.Leave(ctx, session); err != nil {
		t.Errorf("leave: %v", err)
	}
}

// A store that answers before it syncs, and on which nothing is written, learns that what was answered could not be
// kept.
func TestBroken_RenewalsTellOfASyncThatFailedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		d := faultdisk.New()
		s, j, err := bounded(d, "boot", 0)
		if err != nil {
			t.Fatal(err)
		}
		session, err := s.Join(ctx, store.NodeInfo{Name: "node"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		own, err := s.Take(ctx, session, 0, store.Owner{})
		if err == nil {
			_, err = s.Append(ctx, own, store.Head{}, []byte("entry"))
		}
		if err != nil {
			t.Fatal(err)
		}
		d.FailAt(1, syscall.EIO)
		time.Sleep(time.Second)
		synctest.Wait()
		if err := s.Renew(ctx, session); !errors.Is(err, store.ErrBroken) || !errors.Is(err, syscall.EIO) {
			t.Errorf("renew: %v", err)
		}
		_ = j.Close()
	})
}
