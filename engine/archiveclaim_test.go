package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger/repair"
	"taskledger/store"
	"taskledger/store/memarchive"
	"taskledger/task"
)

// beginsAnew is the line that a node logs when an archive begins anew.
const beginsAnew = "the archive does not end with what the journal has, which was given up: it begins anew"

// claimed is an archive that counts how often somebody says whose it is.
type claimed struct {
	*shelf
	claims atomic.Int32
	silent atomic.Bool // claims are not answered, and do not count
}

// Claim implements store.Claiming.
func (a *claimed) Claim(context.Context) error {
	if a.silent.Load() {
		return errors.New("nobody answers claims")
	}
	a.claims.Add(1)
	return nil
}

// archivedPast is a shard with a trimmed journal, whose archive a test replaces while no node runs.
type archivedPast struct {
	*ground
	archive *claimed
	whole   []store.Record // archive and journal as one
	first   uint64         // entry of the journal
	book    logBook        // of the nodes
}

func newArchivedPast(t *testing.T) *archivedPast {
	t.Helper()
	p := &archivedPast{ground: newGround(t, "archive")}
	p.load(t)
	p.archive = &claimed{shelf: p.ground.archive}
	var err error
	if p.first, err = p.store.First(within(t), 0); err != nil {
		t.Fatal(err)
	}
	p.whole = p.archive.held.Records(0)[:p.first-1]
	for rec, err := range p.store.Read(within(t), 0, p.first) {
		if err != nil {
			t.Fatal(err)
		}
		p.whole = append(p.whole, rec)
	}
	return p
}

// otherwise has the archive hold the entries up to last, as another history has them from the entry from on.
func (p *archivedPast) otherwise(t *testing.T, from, last uint64) {
	t.Helper()
	all := slices.Clone(p.whole)
	for uint64(len(all)) < last {
		more := all[len(all)-1]
		more.Number++
		e := testcluster.Decoded(t, more.Data)
		e.Number++
		more.Data = testcluster.Sealed(t, e)
		all = append(all, more)
	}
	prev := events.Hash{1}
	if from > 1 {
		prev = testcluster.Decoded(t, all[from-2].Data).Hash
	}
	for i := from - 1; i < last; i++ {
		e := testcluster.Decoded(t, all[i].Data)
		e.Prev, e.Owner = prev, "of another history"
		all[i].Data = testcluster.Sealed(t, e)
		prev = testcluster.Decoded(t, all[i].Data).Hash
	}
	p.archive.held.Alter(0, func([]memarchive.Segment) []memarchive.Segment {
		return []memarchive.Segment{{Head: store.ArchiveHead{Entry: last, Sequence: 1}, Entries: all[:last]}}
	})
}

// serve runs a node until the test ends.
func (p *archivedPast) serve(t *testing.T) *engine.Node {
	t.Helper()
	return runNode(t, engine.NodeConfig{
		Store:     small{p.store},
		Archive:   p.archive,
		Name:      "n",
		TTL:       time.Minute,
		Behaviors: []task.Behavior{p.worker},
		Log:       p.book.logger(),
	})
}

// giveUp gives up what came after the journals while no node runs.
func (p *archivedPast) giveUp(t *testing.T) {
	t.Helper()
	by := runClient(t, engine.ClientConfig{Store: p.store, Archive: p.archive})
	found, err := by.Operations().Repair(within(t), repair.Options{Restored: true})
	if i := slices.IndexFunc(found, func(s repair.Stray) bool { return s.Shard == 0 && s.GivenUp }); i < 0 || err != nil {
		t.Fatalf("gave up %+v, %v", found, err)
	}
}

// serveUntrimmed runs a node until shard 0, to whose archive nothing may be added, says why it is not trimmed.
func (p *archivedPast) serveUntrimmed(t *testing.T, why string) {
	t.Helper()
	before := len(p.archive.held.Records(0))
	n := p.serve(t)
	testcluster.Await(t, "a shard that says why it is not trimmed", func() bool {
		now, claims, anew := len(p.archive.held.Records(0)), p.archive.claims.Load(), p.book.said(t, beginsAnew)
		if now != before || claims != 0 || len(anew) != 0 {
			t.Fatalf("%d entries are archived, after %d claims and %q; want %d and none", now, claims, anew, before)
		}
		all, err := n.Operations().Shards(within(t))
		return err == nil && strings.Contains(all[0].Degraded, "not trimmed") && strings.Contains(all[0].Degraded, why)
	})
}

func awaitServed(t *testing.T, n *engine.Node) {
	t.Helper()
	testcluster.Await(t, "a shard that is served", func() bool {
		all, err := n.Operations().Shards(within(t))
		return err == nil && all[0].Problem == ""
	})
}

// An owner compares its journal with the archive once, however often it trims.
func TestTrim_ClaimsTheArchiveInWhichItFindsItsEntriesOnce(t *testing.T) {
	t.Parallel()
	p := newArchivedPast(t)
	n := p.serve(t)
	first, trims, round := p.first, 0, 0
	testcluster.Await(t, "a journal that was trimmed twice", func() bool {
		fillShard(t, n.Client, p.worker, fmt.Sprint("more", round), 300)
		round++
		now, err := p.store.First(within(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		if now > first {
			first, trims = now, trims+1
		}
		return trims >= 2
	})
	if claims := p.archive.claims.Load(); claims != 1 {
		t.Errorf("claimed %d times, want once", claims)
	}
}

func TestTrim_ClaimsTheArchiveAgainWhereNobodyAnswered(t *testing.T) {
	t.Parallel()
	p := newArchivedPast(t)
	p.archive.silent.Store(true)
	p.serveUntrimmed(t, "nobody answers claims")
	p.archive.silent.Store(false)
	testcluster.Await(t, "a claim", func() bool { return p.archive.claims.Load() == 1 })
}

// Where everything that is archived was trimmed, the hash of its end tells whether the journal goes on there.
func TestTrim_AddsNothingToAnArchiveThatTheJournalDoesNotFollow(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(p *archivedPast) uint64{
		"all was trimmed":              func(p *archivedPast) uint64 { return p.first - 1 },
		"the journal has the last one": func(p *archivedPast) uint64 { return p.first },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newArchivedPast(t)
			end := last(p)
			p.otherwise(t, 1, end)
			p.serveUntrimmed(t, "archive continues otherwise")
			if held := p.archive.held.Records(0); uint64(len(held)) != end || p.archive.claims.Load() != 0 {
				t.Errorf("%d entries are archived, after %d claims; want %d and none", len(held), p.archive.claims.Load(), end)
			}
		})
	}
}

// Nodes may go on for some time before an operator gives up what the archive has and the journal has lost.
func TestTrim_LossThatWasGivenUpLateLetsAnArchiveOfItsOwnBeginAnew(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]func(p *archivedPast) uint64{
		"the archive ends before the journal": func(p *archivedPast) uint64 { return uint64(len(p.whole)) - 1 },
		"the archive goes beyond it":          func(p *archivedPast) uint64 { return uint64(len(p.whole)) + 3 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newArchivedPast(t)
			end := last(p)
			p.otherwise(t, p.first+1, end)
			p.giveUp(t)
			p.archive.away.Store(true)
			t.Run("an owner that records it", func(t *testing.T) { awaitServed(t, p.serve(t)) })
			p.archive.away.Store(false)
			awaitServed(t, p.serve(t))
			testcluster.Await(t, "an archive that begins anew", func() bool {
				return len(p.book.said(t, beginsAnew)) == 1
			})
		})
	}
}

// A loss does not explain an archive that has nothing in common with the journal.
func TestTrim_NoLossLetsTheArchiveOfAnotherHistoryBeginAnew(t *testing.T) {
	t.Parallel()
	p := newArchivedPast(t)
	end := uint64(len(p.whole)) - 1
	p.otherwise(t, 1, end)
	p.giveUp(t)
	p.serveUntrimmed(t, "archive continues otherwise")
	if held := p.archive.held.Records(0); uint64(len(held)) != end || p.archive.claims.Load() != 0 {
		t.Errorf("%d entries are archived, after %d claims; want %d and none", len(held), p.archive.claims.Load(), end)
	}
}
