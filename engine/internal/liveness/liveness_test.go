package liveness_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/liveness"
	"taskledger/store"
	"taskledger/task"
)

const (
	none  = "none"
	fails = "fails"
	node  = "node"
)

// sights implements store.Members: it answers with what is to be seen next, after which nothing can be.
type sights struct {
	store.Members
	left []string
	tell func(string)
}

func (s *sights) ReadMembers(ctx context.Context) (m store.Membership, err error) {
	sight := fails
	if len(s.left) > 0 {
		sight, s.left = s.left[0], s.left[1:]
	}
	s.tell(sight)
	switch sight {
	case node:
		m.Nodes = map[string]store.NodeInfo{"n": {}}
	case fails:
		<-ctx.Done()
		err = ctx.Err()
	}
	return m, err
}

// What was held because no node was alive leaves when one is seen, or when three looks in turn have failed: one that
// fails says nothing.
func TestMonitor_LetsWhatItHeldLeaveForNoLookThatFails(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		looks string
		waits int // how often somebody still waits
		want  string
	}{
		{node, 9, "node seen"},
		{fails, 9, "fails seen"},
		{"none fails node", 9, "none missed fails node seen"},
		{"none fails fails none fails fails node", 9, "none missed fails fails none missed fails fails node seen"},
		{"none fails fails fails", 9, "none missed fails fails fails seen"},
		{"none none fails", 1, "none missed none missed"},
	} {
		t.Run(row.looks, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				tell := func(what string) { told = append(told, what) }
				waits := row.waits
				l := liveness.New()
				l.Members = &sights{left: strings.Fields(row.looks), tell: tell}
				began := time.Now()
				missed := func(since time.Time) time.Duration {
					tell("missed")
					if !since.Equal(began) {
						t.Errorf("no node is alive since %s after the first look", since.Sub(began))
					}
					if waits--; waits < 0 {
						return 0
					}
					return liveness.Again
				}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- l.Run(ctx, missed, func() { tell("seen") }) }()
				if !l.Doubtful() {
					t.Error("there are no doubts before any sign of life")
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if want := strings.Fields(row.want); !slices.Equal(told, want) {
					t.Errorf("told %v, want %v", told, want)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// How long those who wait have time says nothing of when a look that failed is to be made up for.
func TestMonitor_LooksAgainSoonAfterALookThatFailsHoweverLongThereIsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var looks []time.Duration // when they began
		l := liveness.New()
		l.Members = &sights{
			left: []string{none, fails, none, node},
			tell: func(string) { looks = append(looks, time.Since(began)) },
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx, func(time.Time) time.Duration { return time.Minute }, func() {}) }()
		l.Doubtful()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(looks) != 4 || looks[1] != time.Minute || looks[2]-looks[1] > time.Second || looks[3]-looks[2] != time.Minute {
			t.Errorf("looks at %v, want a minute between two, and one within a second of the one that failed", looks)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Whoever gives up meanwhile is told the cause that was seen, and nobody later.
func TestMonitor_TellsWhoGivesUpThatNoNodeIsAliveAlsoAfterALookThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := liveness.New()
		l.Members = &sights{left: []string{none, fails, node}, tell: func(string) {}}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx, func(time.Time) time.Duration { return liveness.Again }, func() {}) }()
		l.Doubtful()
		time.Sleep(liveness.Again + time.Millisecond) // the second look is under way
		given, giveUp := context.WithCancel(t.Context())
		giveUp()
		if err := l.Why(given); !errors.Is(err, task.ErrNoNode) || !errors.Is(err, context.Canceled) {
			t.Errorf("while a look fails: %v, want that no node is alive", err)
		}
		time.Sleep(time.Minute)
		if err := l.Why(given); errors.Is(err, task.ErrNoNode) || !errors.Is(err, context.Canceled) {
			t.Errorf("once a node was seen: %v, want the cause alone", err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
