package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"taskledger/store"
)

// Fixture is a fresh cluster of at least two shards.
type Fixture struct {
	// A and B are two handles on it, each over a connection, such as two processes have. They must not be the
	// handles by which the process of the server itself keeps house: the suite wants their Defragment refused.
	A, B   store.Store
	Strays Strays // on its keys; RunWithoutStrays needs none
}

// world holds the cluster of one test. Its helpers end the test when the store fails them.
type world struct {
	*testing.T
	Fixture
	ctx context.Context
}

func (w *world) join(s store.Store) store.Session {
	w.Helper()
	session, err := s.Join(w.ctx, store.NodeInfo{Name: w.Name(), Owner: true}, 30*time.Second)
	if err != nil {
		w.Fatalf("join: %v", err)
	}
	return session
}

func (w *world) leave(s store.Store, session store.Session) {
	w.Helper()
	if err := s.Leave(w.ctx, session); err != nil {
		w.Fatalf("leave: %v", err)
	}
}

func (w *world) take(s store.Store, session store.Session, shard int, seen store.Owner) store.Ownership {
	w.Helper()
	o, err := s.Take(w.ctx, session, shard, seen)
	if err != nil {
		w.Fatalf("take: %v", err)
	}
	return o
}

// own joins and takes shard 0 of the fresh cluster.
func (w *world) own(s store.Store) store.Ownership {
	w.Helper()
	return w.take(s, w.join(s), 0, store.Owner{})
}

// owned is the ownership of a session that the owner key of shard 0 names.
func (w *world) owned(session store.Session) store.Ownership {
	w.Helper()
	owner := w.members().Owners[0]
	if owner.Node != session.ID {
		w.Fatalf("shard 0 is owned by %q, want %q", owner.Node, session.ID)
	}
	return store.Ownership{Shard: 0, Revision: owner.Revision, Session: session}
}

func (w *world) handOver(s store.Store, o store.Ownership, target store.Session) store.Ownership {
	w.Helper()
	if err := s.HandOver(w.ctx, o, target.ID); err != nil {
		w.Fatalf("hand over: %v", err)
	}
	return w.owned(target)
}

func (w *world) members() store.Membership {
	w.Helper()
	m, err := w.A.ReadMembers(w.ctx)
	if err != nil {
		w.Fatalf("read members: %v", err)
	}
	return m
}

func (w *world) append(s store.Store, o store.Ownership, after store.Head, entry string) store.Head {
	w.Helper()
	rev, err := s.Append(w.ctx, o, after, []byte(entry))
	if err != nil {
		w.Fatalf("append %q: %v", entry, err)
	}
	return store.Head{Number: after.Number + 1, Revision: rev}
}

// fill appends entries 1 to n to shard 0: more than fit in one reply, when n is 100.
func (w *world) fill(o store.Ownership, after store.Head, n int) (heads []store.Head) {
	w.Helper()
	for range n {
		after = w.append(w.A, o, after, fmt.Sprint("entry ", after.Number+1))
		heads = append(heads, after)
	}
	return heads
}

// refuse asserts that appending fails with the error that want names.
func (w *world) refuse(s store.Store, o store.Ownership, after store.Head, entry string, want error, rule string) {
	w.Helper()
	if rev, err := s.Append(w.ctx, o, after, []byte(entry)); !errors.Is(err, want) {
		w.Fatalf("append of entry %d: revision %d, error %v, want %v: %s", after.Number+1, rev, err, want, rule)
	}
}

// journal returns the entries of shard 0 from a number on.
func (w *world) journal(from uint64) (entries []string) {
	w.Helper()
	for r, err := range w.B.Read(w.ctx, 0, from) {
		if err != nil {
			w.Fatalf("read from entry %d: %v", from, err)
		}
		if want := from + uint64(len(entries)); r.Number != want {
			w.Fatalf("read entry %d, want %d: entries come in order, without gaps", r.Number, want)
		}
		entries = append(entries, string(r.Data))
	}
	return entries
}

func (w *world) wantJournal(from uint64, want ...string) {
	w.Helper()
	if got := w.journal(from); !slices.Equal(got, want) {
		w.Errorf("journal from entry %d is %q, want %q", from, got, want)
	}
}

// pull returns a function that waits for the next value of the sequence and ends the test when there is none.
func pull[V any](w *world, seq iter.Seq2[V, error]) func() V {
	next, stop := iter.Pull2(seq)
	w.Cleanup(stop)
	return func() V {
		w.Helper()
		v, err, ok := next()
		if err != nil || !ok {
			w.Fatalf("sequence ended (%v) or failed: %v", !ok, err)
		}
		return v
	}
}

// failsWith asserts that a sequence yields the error that want names, and nothing before it.
func failsWith[V any](w *world, seq iter.Seq2[V, error], want error) {
	w.Helper()
	for v, err := range seq {
		if !errors.Is(err, want) {
			w.Fatalf("got %+v, %v, want %v", v, err, want)
		}
		return
	}
	w.Fatalf("sequence ended, want %v", want)
}
