package ledger_test

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"
	"testing"

	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
)

// readings is a journal that counts the entries that are read.
type readings struct {
	*paper
	entries atomic.Int64
}

func (r *readings) Entry(ctx context.Context, shard int, number uint64) (store.Record, error) {
	r.entries.Add(1)
	return r.paper.Entry(ctx, shard, number)
}

func (r *readings) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return r.counted(r.paper.Read(ctx, shard, from))
}

func (r *readings) Backward(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return r.counted(r.paper.Backward(ctx, shard, from))
}

func (r *readings) counted(all iter.Seq2[store.Record, error]) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for rec, err := range all {
			if r.entries.Add(1); !yield(rec, err) {
				return
			}
		}
	}
}

// marked is a ledger of a journal, with milestones.
func (p *paper) marked(j ledger.Journal, o ledger.Owners) *ledger.Ledger {
	return ledger.New(ledger.Config{
		Cluster:    store.Cluster{Shards: 1},
		Journal:    j,
		Owners:     o,
		Milestones: new(ledger.Milestones),
	})
}

// Whatever was asked for before, a state is the same as without milestones.
func TestState_FromAMilestoneIsTheFoldOfAllEvents(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*paper){
		"every kind of event": func(p *paper) { p.wholeLife() },
		"a long life":         func(p *paper) { p.begin("x"); p.progress("x", 2500, 0) },
		"two lives": func(p *paper) {
			p.wholeLife()
			p.begin("x")
			p.progress("x", 30, 2)
		},
	} {
		p := newPaper(t)
		write(p)
		plain, kept := p.ledger(p.owner(t)), p.marked(p, p.owner(t))
		last := p.last["x"].Seq
		for i := range min(last, 60) {
			seq := 1 + (i*7919)%last // there and back
			for _, ask := range []func(l *ledger.Ledger) (any, error){
				func(l *ledger.Ledger) (any, error) { return l.StateAfter(t.Context(), "x", seq) },
				func(l *ledger.Ledger) (any, error) {
					return l.StateAt(t.Context(), "x", events.Millis(len(p.entries)-int(i)).Time())
				},
			} {
				want, wrong := ask(plain)
				for range 2 {
					got, err := ask(kept)
					if fmt.Sprint(err) != fmt.Sprint(wrong) || wrong == nil && !reflect.DeepEqual(got, want) {
						t.Errorf("%s, event %d: %+v, %v; want %+v, %v", name, seq, got, err, want, wrong)
					}
				}
			}
		}
	}
}

// The first look at a late event reads the life from its beginning; any other one reads from the milestone before.
func TestState_OfALongLifeIsFoldedFromNearby(t *testing.T) {
	t.Parallel()
	const last, stride = 20_000, 1000
	p := newPaper(t)
	p.begin("x")
	p.progress("x", last-2, 0)
	r := &readings{paper: p}
	l := p.marked(r, p.owner(t))
	look := func(seq uint64) int64 {
		t.Helper()
		r.entries.Store(0)
		is, err := l.StateAfter(t.Context(), "x", seq)
		if err != nil || is.Details.Seq != seq {
			t.Fatalf("after event %d: %d, %v", seq, is.Details.Seq, err)
		}
		return r.entries.Load()
	}
	if n := look(last - 1); n < last {
		t.Errorf("the first look reads %d entries", n)
	}
	for _, seq := range []uint64{last, last - 2, 1, 999, 1000, 1001, last / 2, last/2 + stride - 1, last - 1} {
		if n := look(seq); n > stride+600 { // a walk back, and what is read to find the way
			t.Errorf("event %d: %d entries are read", seq, n)
		}
	}
	look(5777)
	if n := look(5776); n > 300 {
		t.Errorf("the event before one that was looked at: %d entries are read", n)
	}
}

// Lives that many look at do not fill the memory.
func TestMilestones_KeepTheLivesThatWereLookedAtLast(t *testing.T) {
	t.Parallel()
	const tasks, long = 40, 1500
	p := newPaper(t)
	id := func(i int) events.TaskID { return events.TaskID(fmt.Sprint("x", i)) }
	for i := range tasks {
		p.begin(id(i))
		for n := range long - 2 {
			p.write(happened{id(i), &events.Progressed{Done: int64(n)}})
		}
	}
	r := &readings{paper: p}
	l := p.marked(r, p.owner(t))
	look := func(i int) int64 {
		r.entries.Store(0)
		if _, err := l.StateAfter(t.Context(), id(i), long-1); err != nil {
			t.Fatal(err)
		}
		return r.entries.Load()
	}
	for i := range tasks {
		look(i)
	}
	if n := look(tasks - 1); n > 300 {
		t.Errorf("a life that was looked at last: %d entries are read", n)
	}
	if n := look(0); n < long-2 {
		t.Errorf("a life that was looked at long ago: %d entries are read", n)
	}
}
