// Package liveness finds out, from the membership in the store, whether any node is alive. A command sent while none
// is would lie in a mailbox, and be carried out whenever a node comes, long after its caller has given up: so it is
// not sent.
package liveness

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
	// Timeout is the time without a live node after which callers fail. With Again and a slow read of the
	// membership it is 3 s at most.
	Timeout = 2200 * time.Millisecond
	// Again is the time between two reads of the membership while no node is alive and a caller has to fail in time.
	Again = 250 * time.Millisecond
	// Later is the time between two reads while all callers wait for whatever node comes, as futures do, for days.
	Later = time.Second
	// readTimeout bounds one read. A store that does not answer leaves it unknown whether nodes are alive, and
	// commands leave as if some were; after a read that saw none, once further retries were not answered either.
	readTimeout = 500 * time.Millisecond
	retries     = 2
	// AliveFor is the time for which a sign of life counts. A client that is idle for longer reads the membership
	// before it sends.
	AliveFor = time.Second
)

// Monitor notes signs of life, and reads the membership where they are missing. Its methods may be called
// concurrently.
type Monitor struct {
	Members store.Members // nil: it cannot be known, or one is here, and all wait for as long as their contexts last

	base   time.Time
	doubts chan struct{} // somebody waits, and no node has given a sign of life for a while
	seen   atomic.Int64  // when one gave a sign last, since base
	absent atomic.Bool   // the last read saw none, and somebody waits
}

// New returns a monitor that has seen no node yet.
func New() *Monitor {
	l := &Monitor{base: time.Now(), doubts: make(chan struct{}, 1)}
	l.seen.Store(math.MinInt64 / 2) // never
	return l
}

// Sign notes that a node is alive.
func (l *Monitor) Sign() { l.seen.Store(int64(time.Since(l.base))) }

// Doubtful reports whether no node has given a sign of life for a while, and makes Run read the membership then. It
// never blocks.
func (l *Monitor) Doubtful() bool {
	if l.Members == nil || time.Since(l.base)-time.Duration(l.seen.Load()) < AliveFor {
		return false
	}
	select {
	case l.doubts <- struct{}{}:
	default:
	}
	return true
}

// Why returns the error of a caller whose context has ended.
func (l *Monitor) Why(ctx context.Context) error {
	if l.absent.Load() {
		return fmt.Errorf("%w: %w", task.ErrNoNode, context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// Missed is called after every read that saw no node, with the time of the first one in a row. It returns the time
// until the next read; 0 = nobody waits any more.
type Missed func(since time.Time) (again time.Duration)

// Run reads the membership whenever there are doubts, until ctx ends, and again while it sees no node and somebody
// waits for one. Once it sees a node, or the store does not answer, it calls seen.
func (l *Monitor) Run(ctx context.Context, missed Missed, seen func()) error {
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

// absence returns false when a node is alive, or it cannot be known, and true when none is and nobody waits for one
// any more.
func (l *Monitor) absence(ctx context.Context, missed Missed) bool {
	defer l.absent.Store(false)
	since, unknown, again := time.Now(), retries, Again
	for {
		nodes, err := l.liveNodes(ctx)
		switch {
		case nodes > 0 || err != nil && unknown == retries:
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

func (l *Monitor) liveNodes(ctx context.Context) (nodes int, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	members, err := l.Members.ReadMembers(ctx)
	return len(members.Nodes), err
}
