package engine

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/internal/testkit"
	"taskledger/store"
)

// unjoined is a store in which no session can begin.
type unjoined struct {
	noStore
	joins atomic.Int64
}

func (s *unjoined) Join(context.Context, store.NodeInfo, time.Duration) (store.Session, error) {
	s.joins.Add(1)
	return store.Session{}, errors.New("not now")
}

func (s *unjoined) Answers(ctx context.Context, _ string) iter.Seq2[store.MailboxAnswer, error] {
	return func(func(store.MailboxAnswer, error) bool) { <-ctx.Done() }
}

func (s *unjoined) RemoveMailboxes(context.Context, string, ...int) error { return nil }

func TestSession_PausesGrowWhileNoneLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unjoined{}
		n, err := NewNode(NodeConfig{Store: s})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := n.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if joins := s.joins.Load(); joins < 10 || joins > 20 {
			t.Errorf("%d sessions were tried in 30 s, want 10 to 20", joins)
		}
	})
}

// Several goroutines read the membership, and take what they have read in any order.
func TestMember_NeverSeesAnOlderMembershipAgain(t *testing.T) {
	p := newPost(t)
	const readers = 4
	rounds := testkit.Times(50_000, 300_000)
	var latest atomic.Int64 // a revision that was taken
	var all sync.WaitGroup
	for range readers {
		all.Go(func() {
			for range rounds {
				least := p.view.Load().Revision
				v := &store.Membership{Revision: latest.Add(1), Nodes: map[string]store.NodeInfo{p.session.ID: {}}}
				if err := p.see(v); err != nil {
					t.Error(err)
					return
				}
				if now := p.view.Load().Revision; now < least || now < v.Revision {
					t.Errorf("revision %d is seen after %d and %d", now, least, v.Revision)
					return
				}
			}
		})
	}
	all.Wait()
}

// What a session begins that was not renewed for long may be recorded when it is over.
func TestMember_TakesOnWorkWhileItsSessionIsYoung(t *testing.T) {
	p := newPost(t)
	wantMay := func(when string, age time.Duration, may bool) {
		t.Helper()
		p.renewed.Store(int64(time.Since(clockBase) - age))
		if got := (workerHost{p.member}).MayStart(); got != may {
			t.Errorf("%s: it may start is %t, want %t", when, got, may)
		}
	}
	wantMay("just renewed", 0, true)
	wantMay("renewed half a TTL ago", p.ttl/2, true)
	wantMay("renewed three quarters of a TTL ago", p.ttl*3/4, false)
	p.end(nil)
	wantMay("renewed, and over", 0, false)
}
