package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"taskledger/events"
	"taskledger/store"
)

// ReceiverFixture is a place in which there is nothing.
type ReceiverFixture struct {
	// Receive opens a store.Receiver there. The suite opens another one only after the one before is not used any more.
	Receive func(ctx context.Context, c store.Cluster) (store.Receiver, error)
	// Open opens what is there as nodes do, which must exist.
	Open func(ctx context.Context) (store.Store, error)
}

// RunReceiver holds a store.Receiver to its contract, and the store that it makes, in parallel subtests, each with a
// fixture of its own.
func RunReceiver(t *testing.T, open func(t *testing.T) ReceiverFixture) {
	for name, test := range receptions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			test(&place{T: t, ReceiverFixture: open(t), ctx: ctx})
		})
	}
}

// place is the fixture of one test.
type place struct {
	*testing.T
	ReceiverFixture
	ctx context.Context
}

// copied is the cluster that is copied.
var copied = store.Cluster{ID: "abcdefghijklmnop", Shards: 2, Key: []byte("0123456789abcdef0123456789abcdef")}

// highest is the revision after which the copy goes on.
const highest = 1_000_000

var writtenThere = store.Reads{
	Kind:     events.KindDeleted + 1,
	Entry:    4,
	Snapshot: 3,
	Rules:    2,
}

func (p *place) receive() store.Receiver {
	p.Helper()
	r, err := p.Receive(p.ctx, copied)
	p.must(err)
	return r
}

func (p *place) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) wantError(err, want error) {
	p.Helper()
	if !errors.Is(err, want) {
		p.Errorf("error is %v, want %v", err, want)
	}
}

// entries returns those from one number to another, with revisions that have gaps.
func entriesOf(from, to uint64) (all []store.Record) {
	for n := from; n <= to; n++ {
		head := store.Head{Number: n, Revision: int64(100 * n)}
		all = append(all, store.Record{Head: head, Data: fmt.Append(nil, "entry ", n)})
	}
	return all
}

// snapshotOf returns a snapshot and its parts, of which one is empty.
func snapshotOf(entry uint64) (s store.SnapshotInfo, parts [][]byte) {
	sums := sha256.New()
	for _, text := range []string{fmt.Sprint("state ", entry), "", "end"} {
		sum := sha256.Sum256([]byte(text))
		sums.Write(sum[:])
		parts = append(parts, []byte(text))
		s.Bytes += int64(len(text))
	}
	s.Entry, s.Epoch, s.Parts, s.Hash = entry, int64(100*entry), len(parts), events.Hash(sums.Sum(nil))
	return s, parts
}

func partsOf(s store.SnapshotInfo) iter.Seq2[[]byte, error] {
	_, parts := snapshotOf(s.Entry)
	return func(yield func([]byte, error) bool) {
		for _, part := range parts {
			if !yield(part, nil) {
				return
			}
		}
	}
}

// trimmedShard is a shard whose journal begins with entry 5.
func trimmedShard() store.ReceivedShard {
	newer, _ := snapshotOf(8)
	older, _ := snapshotOf(5)
	return store.ReceivedShard{
		First:   5,
		Pointer: store.SnapshotPointer{Revision: 900, Kept: []store.SnapshotInfo{newer, older}},
		Loss: store.Loss{
			Shard:    0,
			Entry:    70,
			Hash:     events.Hash{7},
			Reason:   "a test",
			Revision: 901,
		},
	}
}

// add copies all but the end.
func (p *place) add(r store.Receiver) {
	p.Helper()
	p.must(r.Begin(p.ctx))
	p.must(r.AddShard(p.ctx, 0, trimmedShard(), partsOf))
	p.must(r.AddEntries(p.ctx, 0, entriesOf(5, 40)))
	p.must(r.AddEntries(p.ctx, 0, entriesOf(41, 70)))
	p.must(r.AddShard(p.ctx, 1, store.ReceivedShard{}, partsOf))
	p.must(r.AddEntries(p.ctx, 1, entriesOf(1, 1)))
}

// wantAll asserts that a store holds what add copies.
func (p *place) wantAll(s store.Store) {
	p.Helper()
	p.wantEntries(s, 0, entriesOf(5, 70))
	p.wantEntries(s, 1, entriesOf(1, 1))
	want := trimmedShard()
	pointer, err := s.Pointer(p.ctx, 0)
	p.must(err)
	if pointer.Revision <= 0 || !slices.Equal(pointer.Kept, want.Pointer.Kept) {
		p.Errorf("pointer is %+v, want %+v", pointer, want.Pointer)
	}
	for _, kept := range pointer.Kept {
		_, parts := snapshotOf(kept.Entry)
		n := 0
		for part, err := range s.Parts(p.ctx, 0, kept) {
			p.must(err)
			if n >= len(parts) || string(part) != string(parts[n]) {
				p.Errorf("part %d of snapshot %d is %q", n, kept.Entry, part)
			}
			n++
		}
		if n != len(parts) {
			p.Errorf("snapshot %d has %d parts, want %d", kept.Entry, n, len(parts))
		}
	}
	if none, err := s.Pointer(p.ctx, 1); err != nil || none.Revision != 0 {
		p.Errorf("pointer of the other shard is %+v, %v", none, err)
	}
	l, err := s.Loss(p.ctx, 0)
	p.must(err)
	if want.Loss.Revision = l.Revision; l != want.Loss || l.Revision <= 0 {
		p.Errorf("given up is %+v, want %+v", l, want.Loss)
	}
	first, err := s.First(p.ctx, 0)
	p.must(err)
	if first != want.First {
		p.Errorf("the journal begins with entry %d, want %d", first, want.First)
	}
}

func (p *place) wantEntries(s store.Store, shard int, want []store.Record) {
	p.Helper()
	var got []store.Record
	for rec, err := range s.Read(p.ctx, shard, want[0].Number) {
		p.must(err)
		got = append(got, rec)
	}
	if !slices.EqualFunc(got, want, func(a, b store.Record) bool {
		return a.Head == b.Head && string(a.Data) == string(b.Data)
	}) {
		p.Errorf("entries of shard %d are %v, want %v", shard, got, want)
	}
	for rec, err := range s.Backward(p.ctx, shard, want[len(want)-1].Number) {
		p.must(err)
		if rec.Head != want[len(want)-1].Head {
			p.Errorf("backward comes entry %+v first", rec.Head)
		}
		break
	}
}

// unfinished asserts that nobody opens what is there.
func (p *place) unfinished(after string) {
	p.Helper()
	s, err := p.Open(p.ctx)
	if !errors.Is(err, store.ErrUnfinished) {
		p.Errorf("opened after %s: %v, %v", after, s, err)
	}
}

var receptions = map[string]func(*place){
	"Copied/IsNothingWhereNothingIs": func(p *place) {
		if there, finished, err := p.receive().Copied(p.ctx); there != nil || finished || err != nil {
			p.Errorf("there is %v, finished %v, %v", there, finished, err)
		}
	},
	"Finish/MakesAStoreOfTheCopy": func(p *place) {
		r := p.receive()
		p.add(r)
		there, finished, err := r.Copied(p.ctx)
		p.must(err)
		if finished {
			p.Error("it is finished before its end")
		}
		p.wantAll(there)
		p.must(r.Finish(p.ctx, highest, writtenThere))
		s, err := p.Open(p.ctx)
		p.must(err)
		if c := s.Cluster(); c.ID != copied.ID || c.Shards != copied.Shards || string(c.Key) != string(copied.Key) {
			p.Errorf("cluster is %+v", c)
		}
		p.wantAll(s)
	},
	"Finish/OpensWhatGoesOn": func(p *place) {
		r := p.receive()
		p.add(r)
		p.must(r.Finish(p.ctx, highest, writtenThere))
		s, err := p.Open(p.ctx)
		p.must(err)
		w := &world{T: p.T, Fixture: Fixture{A: s, B: s}, ctx: p.ctx}
		m := w.members()
		if m.Revision < highest || len(m.Owners) != 0 || len(m.Nodes) != 0 || m.Written != writtenThere {
			p.Errorf("members are %+v", m)
		}
		if _, err := s.Join(p.ctx, store.NodeInfo{Name: "old"}, timeout); !errors.Is(err, store.ErrOutdated) {
			p.Errorf("a node that cannot read what is written joins: %v", err)
		}
		session, err := s.Join(p.ctx, store.NodeInfo{Name: "new", Owner: true, Reads: writtenThere}, timeout)
		p.must(err)
		o := w.take(s, session, 0, store.Owner{})
		if o.Revision <= highest || session.Revision <= highest {
			p.Errorf("epoch %d, session of revision %d, after revision %d", o.Revision, session.Revision, highest)
		}
		last := store.Head{Number: 70, Revision: 7000}
		w.refuse(s, o, store.Head{Number: 69, Revision: 6900}, "another", store.ErrAlien, "entry 70 is there")
		w.refuse(s, o, store.Head{Number: 71, Revision: 7100}, "another", store.ErrRefused, "entry 71 is not there")
		head := w.append(s, o, last, "entry 71")
		if again := w.append(s, o, last, "entry 71"); head.Revision <= highest || again != head {
			p.Errorf("entry 71 is %+v, and again %+v", head, again)
		}
		head = w.append(s, o, head, "entry 72")
		next := pull(w, s.Follow(p.ctx, 0, 70))
		for _, want := range []store.Head{last, {Number: 71, Revision: head.Revision - 1}, head} {
			got := next()
			if got.Number != want.Number || got.Number != 71 && got.Head != want {
				p.Errorf("followed %+v, want %+v", got.Head, want)
			}
		}
		w.append(s, o, head, "entry 73")
		if got := next(); got.Number != 73 || got.Revision <= head.Revision {
			p.Errorf("followed %+v, want entry 73", got.Head)
		}
		p.goesOn(w, o)
	},
	"Begin/MarksWhatIsNotFinished": func(p *place) {
		p.must(p.receive().Begin(p.ctx))
		p.unfinished("Begin")
		r := p.receive()
		p.must(r.Begin(p.ctx))
		p.must(r.AddShard(p.ctx, 0, trimmedShard(), partsOf))
		p.unfinished("AddShard")
		p.add(p.receive())
		p.unfinished("AddEntries")
	},
	"Begin/GoesOnWhereAnotherHasEnded": func(p *place) {
		r := p.receive()
		p.must(r.Begin(p.ctx))
		p.must(r.AddShard(p.ctx, 0, trimmedShard(), partsOf))
		p.must(r.AddEntries(p.ctx, 0, entriesOf(5, 50)))
		again := p.receive()
		there, finished, err := again.Copied(p.ctx)
		p.must(err)
		if finished {
			p.Error("it is finished before its end")
		}
		p.wantEntries(there, 0, entriesOf(5, 50))
		p.add(again)
		p.must(again.Finish(p.ctx, highest, writtenThere))
		s, err := p.Open(p.ctx)
		p.must(err)
		p.wantAll(s)
	},
	"Begin/AfterTheEndIsAConflict": func(p *place) {
		r := p.receive()
		p.add(r)
		p.must(r.Finish(p.ctx, highest, writtenThere))
		again := p.receive()
		there, finished, err := again.Copied(p.ctx)
		p.must(err)
		if !finished {
			p.Error("it is not finished after its end")
		}
		p.wantAll(there)
		p.wantError(again.Begin(p.ctx), store.ErrTaken)
		p.wantError(r.AddEntries(p.ctx, 1, entriesOf(2, 2)), store.ErrTaken)
	},
	"Begin/OverAnotherClusterIsAConflict": func(p *place) {
		p.must(p.receive().Begin(p.ctx))
		for _, change := range []func(*store.Cluster){
			func(c *store.Cluster) { c.ID = "ponmlkjihgfedcba" },
			func(c *store.Cluster) { c.Shards = 4 },
			func(c *store.Cluster) { c.Key = []byte("0123456789abcdef0123456789abcde-") },
		} {
			other := copied
			change(&other)
			_, err := p.Receive(p.ctx, other)
			p.wantError(err, store.ErrTaken)
			p.wantError(err, store.ErrUnfinished)
		}
		r := p.receive()
		p.add(r)
		p.must(r.Finish(p.ctx, highest, writtenThere))
		other := copied
		other.ID = "ponmlkjihgfedcba"
		_, err := p.Receive(p.ctx, other)
		p.wantError(err, store.ErrTaken)
	},
	"AddEntries/BeforeBeginIsAConflict": func(p *place) {
		p.wantError(p.receive().AddEntries(p.ctx, 0, entriesOf(1, 1)), store.ErrTaken)
	},
	"AddEntries/PassesOverWhatIsThereAndRefusesAnotherEntry": func(p *place) {
		r := p.receive()
		p.must(r.Begin(p.ctx))
		p.must(r.AddShard(p.ctx, 1, store.ReceivedShard{}, partsOf))
		p.must(r.AddEntries(p.ctx, 1, entriesOf(1, 3)))
		p.must(r.AddEntries(p.ctx, 1, entriesOf(1, 3)))
		other := entriesOf(3, 3)
		other[0].Data = []byte("another")
		p.wantError(r.AddEntries(p.ctx, 1, other), store.ErrTaken)
		other = entriesOf(3, 3)
		other[0].Revision++
		p.wantError(r.AddEntries(p.ctx, 1, other), store.ErrTaken)
		there, _, err := r.Copied(p.ctx)
		p.must(err)
		p.wantEntries(there, 1, entriesOf(1, 3))
	},
	"AddShard/TakesThePlaceOfWhatWasThere": func(p *place) {
		r := p.receive()
		p.must(r.Begin(p.ctx))
		older, _ := snapshotOf(2)
		before := store.ReceivedShard{
			Pointer: store.SnapshotPointer{Revision: 300, Kept: []store.SnapshotInfo{older}},
		}
		p.must(r.AddShard(p.ctx, 0, before, partsOf))
		p.must(r.AddEntries(p.ctx, 0, entriesOf(1, 10)))
		p.add(p.receive())
		r = p.receive()
		p.add(r)
		there, _, err := r.Copied(p.ctx)
		p.must(err)
		p.wantAll(there)
	},
	"AddShard/EndsWithTheErrorOfAPart": func(p *place) {
		r := p.receive()
		p.must(r.Begin(p.ctx))
		broken := errors.New("broken")
		err := r.AddShard(p.ctx, 0, trimmedShard(), func(store.SnapshotInfo) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) { yield(nil, broken) }
		})
		p.wantError(err, broken)
		p.unfinished("a part that cannot be read")
	},
}

// goesOn asserts that snapshots and trims of shard 0 go on, with all revisions above those of the copy.
func (p *place) goesOn(w *world, o store.Ownership) {
	p.Helper()
	pointer := w.snapshot(w.A, o, 71, "next")
	pointer = w.snapshot(w.A, o, 72, "and next")
	if pointer.Revision <= highest {
		p.Errorf("pointer has revision %d", pointer.Revision)
	}
	p.must(w.A.Trim(p.ctx, o, pointer, 5, 71))
	first, err := w.A.First(p.ctx, 0)
	p.must(err)
	if first != 71 {
		p.Errorf("the journal begins with entry %d after a trim", first)
	}
	l, err := w.A.Loss(p.ctx, 0)
	p.must(err)
	p.must(w.A.Forget(p.ctx, l))
	w.wantLoss(store.Loss{})
	p.must(w.A.Post(p.ctx, 1, "sender", 0, []byte("batch")))
	batch := pull(w, w.A.Batches(p.ctx, 1))()
	if batch.Revision <= highest {
		p.Errorf("a batch has revision %d", batch.Revision)
	}
	p.must(w.A.Answer(p.ctx, batch, []byte("answer")))
	if answer := pull(w, w.A.Answers(p.ctx, "sender"))(); string(answer.Answer) != "answer" {
		p.Errorf("answer is %q", answer.Answer)
	}
}
