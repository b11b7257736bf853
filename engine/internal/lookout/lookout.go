// Package lookout knows, as the membership in the store tells, whether any node is alive. A command that leaves while none is would
// lie in a mailbox, and be carried out whenever a node comes, long after its caller has given up: so it does not leave.
package lookout

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"taskledger/store"
	"taskledger/task"
)

const (
	// Patience is how long no node may be alive before a caller is told; with Again and a look that takes long it is 3 s at most.
	Patience = 2200 * time.Millisecond
	// Again is the time between two looks at the membership while no node is alive and somebody is to be told so in time.
	Again = 250 * time.Millisecond
	// Later is the time between two looks while those who wait wait for whatever node comes: futures, which may be open for days.
	Later = time.Second
	// lookWithin bounds a look. When the store does not answer nothing is known, and all goes on as if nodes were alive; after a look
	// that saw none it goes on when looksAgain further ones were not answered either.
	lookWithin = 500 * time.Millisecond
	looksAgain = 2
	// AliveFor is how long a sign of life is believed. A client that is idle for longer looks before its next command leaves.
	AliveFor = time.Second
)

// Lookout is told of signs of life, and looks at the membership where they are missing. Its methods may be called concurrently.
type Lookout struct {
	Members store.Members // nil: it cannot be known, or one is here, and all wait for as long as their contexts last

	base   time.Time
	doubts chan struct{} // somebody waits, and no node has given a sign of life for a while
	seen   atomic.Int64  // when one gave a sign last, since base
	absent atomic.Bool   // the last look saw none, and somebody waits
}

// New returns a lookout that has seen no node yet.
func New() *Lookout {
	l := &Lookout{base: time.Now(), doubts: make(chan struct{}, 1)}
	l.seen.Store(math.MinInt64 / 2) // never
	return l
}

// Sign notes that a node is alive.
func (l *Lookout) Sign() { l.seen.Store(int64(time.Since(l.base))) }

// Doubtful reports that no node has given a sign of life for a while, and lets the membership be looked at. It never blocks.
func (l *Lookout) Doubtful() bool {
	if l.Members == nil || time.Since(l.base)-time.Duration(l.seen.Load()) < AliveFor {
		return false
	}
	select {
	case l.doubts <- struct{}{}:
	default:
	}
	return true
}

// Why is what a caller is told whose context has ended.
func (l *Lookout) Why(ctx context.Context) error {
	if l.absent.Load() {
		return fmt.Errorf("%w: %w", task.ErrNoNode, context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// Missed is told after every look that saw no node, with the time of the first one in a row, and returns after how long to look again;
// 0 = nobody waits any more.
type Missed func(since time.Time) (again time.Duration)

// Run looks at the membership whenever there are doubts, until ctx ends. While it sees no node, and somebody waits for one, it goes on
// looking. Once it sees a node, or cannot see, it calls seen.
func (l *Lookout) Run(ctx context.Context, missed Missed, seen func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.doubts:
		}
		if !l.absence(ctx, missed) {
			l.Sign()
			seen()
		}
	}
}

// absence returns false when a node is alive, or it cannot be known, and true when none is and nobody waits for one any more.
func (l *Lookout) absence(ctx context.Context, missed Missed) bool {
	defer l.absent.Store(false)
	since, unknown, again := time.Now(), looksAgain, Again
	for {
		nodes, err := l.look(ctx)
		switch {
		case nodes > 0 || err != nil && unknown == looksAgain:
			return false
		case err != nil:
			unknown++
			again = Again
		default:
			if again = missed(since); again == 0 {
				return true
			}
			unknown = 0
			l.absent.Store(true)
		}
		select {
		case <-ctx.Done():
			return true
		case <-time.After(again):
		}
	}
}

func (l *Lookout) look(ctx context.Context) (nodes int, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	members, err := l.Members.ReadMembers(ctx)
	return len(members.Nodes), err
}
