package ledger_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
)

// What the owner serves is compared with what the journal has become under it.
func TestVerify_AnOwnerWhoseStateIsNotTheJournalsIsFound(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	all, prev := p.Records(1), events.Hash{}
	for i := range all {
		all[i].Data = testcluster.Forged(t, all[i].Data, prev, "1000000")
		prev = testcluster.Decoded(t, all[i].Data).Hash
	}
	p.Replace(1, all)
	wantDamage(t, verified(t, p.node.Client, ledger.VerifyOptions{})[1], ledger.DamageState, uint64(len(all)))
}

func TestVerify_NamesShardEntryAndKindOfDamage(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	c := p.reader(nil)
	for shard, v := range verified(t, c, ledger.VerifyOptions{}) {
		if wantDamage(t, v, "", 0); !v.Compared || v.Entries == 0 || v.From != 1 || v.Shard != shard {
			t.Errorf("undamaged: %+v", v)
		}
	}
	whole := p.Records(1)
	for _, row := range testcluster.Damages {
		p.Replace(1, row.Do(t, slices.Clone(whole)))
		all := verified(t, c, ledger.VerifyOptions{})
		t.Log(row.What, "in the journal:", all[1].Problem)
		wantDamage(t, all[0], "", 0)
		wantDamage(t, all[1], row.Kind, row.At)
	}
	p.Replace(1, whole)
	p.keep(1)
	for _, row := range testcluster.Damages {
		damaged := archiveOf(1, row.Do(t, slices.Clone(whole)))
		all := verified(t, p.reader(damaged), ledger.VerifyOptions{})
		t.Log(row.What, "in the archive:", all[1].Problem)
		wantDamage(t, all[0], "", 0)
		if row.What == "a removed entry" { // the archive itself notices
			row.Kind = ledger.DamageGarbled
		}
		wantDamage(t, all[1], row.Kind, row.At)
	}
	wantDamage(t, verified(t, p.reader(p.archive), ledger.VerifyOptions{Archive: true})[1], "", 0)
	wantDamage(t, verified(t, c, ledger.VerifyOptions{})[1], ledger.DamageMissing, 1)
}

func TestVerify_TellsItsProgressEntryByEntry(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	progress := map[int][]uint64{}
	all := verified(t, p.node.Client, ledger.VerifyOptions{Progress: func(shard int, entry uint64) { progress[shard] = append(progress[shard], entry) }})
	for shard, v := range all {
		if uint64(len(progress[shard])) != v.Entries || v.Entries == 0 {
			t.Errorf("shard %d: progress %v, of %d entries", shard, progress[shard], v.Entries)
		}
		for i, entry := range progress[shard] {
			if entry != uint64(i)+1 {
				t.Errorf("shard %d: entry %d is number %d of the progress", shard, entry, i)
			}
		}
	}
}

// An archive that begins late, after the journal was dropped once, is read from where it begins: what is in it is
// replayed, exported and verified as far as that can be.
func TestVerify_ReadsAnArchiveThatBeginsLate(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	const begins = 3
	later := 0 // the first entry of a later time than the one the archive begins with
	var whole []store.Record
	for later == 0 || len(whole) < later+6 {
		p.spread(2)
		whole = p.Records(1)
		for i := begins + 1; i < len(whole) && later == 0; i++ {
			if testcluster.Decoded(t, whole[i].Data).Time > testcluster.Decoded(t, whole[begins].Data).Time {
				later = i
			}
		}
	}
	kept := &snapshotted{trimmed{p.Store}, nil, map[uint64][][]byte{}}
	older, newer := later+2, later+4
	kept.take(t, whole[:older])
	kept.take(t, whole[:newer])
	p.Replace(1, whole[older:])
	setArchive(p.archive, 1, whole[begins:newer])
	reader := func() *engine.Client { return p.run(engine.ClientConfig{Store: kept, Archive: p.archive}) }
	c := reader()
	if v := verified(t, c, ledger.VerifyOptions{})[1]; v.Damage != "" || v.From != begins+1 || v.Entries != uint64(len(whole)) {
		t.Errorf("verified %+v, want all from entry %d on", v, begins+1)
	}
	first := testcluster.Decoded(t, whole[later].Data) // in the archive alone
	got := 0
	for _, ev := range replayed(t, c, ledger.ReplayOptions{From: first.Time.Time(), Task: first.Events[0].Task}) {
		if got++; ev.Position.Ref.Entry() < begins+1 {
			t.Errorf("replayed %+v", ev)
		}
	}
	if got == 0 {
		t.Error("nothing of the archive is replayed")
	}
	var file bytes.Buffer
	if err := c.Ledger().ExportShard(testcluster.Within(t), 1, &file, nil); err != nil {
		t.Fatal(err)
	}
	if v, err := ledger.VerifyExport(&file); err != nil || v.Damage != "" || v.From != begins+1 || v.Entries != uint64(len(whole)) {
		t.Errorf("exported %+v, %v, want all from entry %d on", v, err, begins+1)
	}
	for _, row := range testcluster.Damages {
		switch row.Kind {
		case ledger.DamageTransition: // nothing is folded of it
			continue
		case ledger.DamageMissing: // the archive itself notices
			row.Kind = ledger.DamageGarbled
		}
		setArchive(p.archive, 1, row.Do(t, slices.Clone(whole[begins:newer])))
		wantDamage(t, verified(t, reader(), ledger.VerifyOptions{})[1], row.Kind, row.At+begins)
	}
}

// What is cut off the end leaves a whole chain behind; only the owner, or a checkpoint, knows the end.
func TestVerify_FindsAMissingEndByTheOwnerAndByACheckpoint(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	kept, err := p.node.Ledger().Checkpoint(testcluster.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	whole := p.Records(1)
	last := uint64(len(whole))
	p.Replace(1, whole[:last-1])
	wantDamage(t, verified(t, p.node.Client, ledger.VerifyOptions{})[1], ledger.DamageMissing, last)
	stopped := p.unserved(nil)
	wantDamage(t, verified(t, stopped, ledger.VerifyOptions{})[1], "", 0)
	wantDamage(t, verified(t, stopped, ledger.VerifyOptions{Against: []ledger.Checkpoint{kept}})[1], ledger.DamageMissing, last)
}

func TestVerify_AKeptCheckpointProvesAForgedResult(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	kept, err := p.node.Ledger().Checkpoint(testcluster.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	p.spread(10) // the checkpoint is an old one
	whole := p.Records(1)
	forged, prev := slices.Clone(whole), events.Hash{}
	for i := range forged {
		forged[i].Data = testcluster.Forged(t, forged[i].Data, prev, []string{"", "1000000"}[i%2])
		prev = testcluster.Decoded(t, forged[i].Data).Hash
	}
	var head ledger.CheckpointHead
	for _, h := range kept.Heads {
		if h.Shard == 1 {
			head = h
		}
	}
	against := ledger.VerifyOptions{Against: []ledger.Checkpoint{kept}}
	if v := verified(t, p.reader(nil), against)[1]; v.Heads != 1 || v.Damage != "" {
		t.Errorf("before the forgery: %+v", v)
	}
	p.Replace(1, forged)
	stopped := p.unserved(nil)
	wantDamage(t, verified(t, stopped, ledger.VerifyOptions{})[1], "", 0)
	wantDamage(t, verified(t, stopped, against)[1], ledger.DamageCheckpoint, head.Entry)
	p.Replace(1, whole)
	p.keep(1)
	wantDamage(t, verified(t, p.unserved(archiveOf(1, forged)), against)[1], ledger.DamageCheckpoint, head.Entry)
}

func TestVerify_ComparesArchiveAndJournal(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	whole := p.Records(1)
	both := ledger.VerifyOptions{Archive: true}
	archive := archiveOf(0, p.Records(0))
	setArchive(archive, 1, whole[:3])
	if v := verified(t, p.reader(archive), both); v[0].Damage != "" || v[1].Damage != "" || v[1].Archived != 3 {
		t.Errorf("alike: %+v", v)
	}
	forged := slices.Clone(whole[:3])
	forged[1].Data = testcluster.Forged(t, forged[1].Data, events.Hash{1}, "")
	setArchive(archive, 1, forged)
	wantDamage(t, verified(t, p.reader(archive), ledger.VerifyOptions{})[1], "", 0)
	wantDamage(t, verified(t, p.reader(archive), both)[1], ledger.DamageArchive, 2)
	setArchive(archive, 1, whole[1:3])
	wantDamage(t, verified(t, p.reader(archive), both)[1], ledger.DamageMissing, 1)
	setArchive(archive, 1, whole)
	p.Replace(1, slices.Delete(slices.Clone(whole), 2, 3))
	wantDamage(t, verified(t, p.reader(archive), ledger.VerifyOptions{})[1], "", 0)
	wantDamage(t, verified(t, p.reader(archive), both)[1], ledger.DamageMissing, 3)
	if _, err := p.reader(nil).Ledger().Verify(testcluster.Within(t), both); err == nil {
		t.Error("a comparison without an archive was made")
	}
}

// unserved is a client that no owner answers.
func (p *past) unserved(archive store.ArchiveReader) *engine.Client {
	p.t.Helper()
	c, err := engine.NewClient(engine.ClientConfig{Store: trimmed{p.Store}, Archive: archive})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func verified(t *testing.T, c *engine.Client, o ledger.VerifyOptions) []ledger.Verification {
	t.Helper()
	all, err := c.Ledger().Verify(testcluster.Within(t), o)
	if err != nil || len(all) != pastShards {
		t.Fatalf("verify: %+v, %v", all, err)
	}
	return all
}

func wantDamage(t *testing.T, v ledger.Verification, kind ledger.Damage, at uint64) {
	t.Helper()
	if v.Damage != kind || v.At != at || !strings.Contains(v.Problem, string(kind)) && kind != "" {
		t.Errorf("shard %d: %q at entry %d (%s), want %q at %d", v.Shard, v.Damage, v.At, v.Problem, kind, at)
	}
}

// snapshotted is a store with snapshots that a test made.
type snapshotted struct {
	trimmed
	kept  []store.SnapshotInfo
	parts map[uint64][][]byte // by entry
}

func (s *snapshotted) Pointer(_ context.Context, shard int) (p store.SnapshotPointer, err error) {
	if shard == 1 {
		p.Kept = s.kept
	}
	return p, nil
}

func (s *snapshotted) Parts(_ context.Context, _ int, snapshot store.SnapshotInfo) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, part := range s.parts[snapshot.Entry] {
			if !yield(part, nil) {
				return
			}
		}
	}
}

// take makes the fold of the records the newest snapshot, and returns its digest.
func (s *snapshotted) take(t *testing.T, all []store.Record) events.Hash {
	t.Helper()
	state := projection.NewShard(1)
	for _, rec := range all {
		e, err := events.Decode(rec.Data)
		if err == nil {
			err = state.Replay(e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	taken := state.BeginSnapshot()
	defer taken.End()
	for !taken.Step(100) {
	}
	parts, sums := taken.Parts(), sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256(part)
		sums.Write(sum[:])
	}
	s.parts[state.Number] = parts
	s.kept = slices.Insert(s.kept, 0, store.SnapshotInfo{Entry: state.Number, Parts: len(parts), Hash: events.Hash(sums.Sum(nil))})
	return state.Digest(nil)
}

func TestVerify_ComparesSnapshotsAndBeginsWithTheOlderWhereTheBeginningWasDropped(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(8)
	whole := p.Records(1)
	kept := &snapshotted{trimmed{p.Store}, nil, map[uint64][][]byte{}}
	kept.take(t, whole[:3])
	kept.take(t, whole[:5])
	c := p.run(engine.ClientConfig{Store: kept})
	if v := verified(t, c, ledger.VerifyOptions{})[1]; v.Damage != "" || v.Snapshots != 2 || v.From != 1 {
		t.Errorf("nothing dropped: %+v", v)
	}
	p.Replace(1, whole[3:])
	v := verified(t, c, ledger.VerifyOptions{})[1]
	if v.Damage != "" || v.Snapshots != 2 || v.From != 4 || v.Entries != whole[len(whole)-1].Number {
		t.Errorf("the first three dropped: %+v", v)
	}
	for ev, err := range c.Ledger().Replay(testcluster.Within(t), ledger.ReplayOptions{Behavior: "job"}) {
		if ev.Position.Shard == 1 && err == nil || err != nil && !errors.Is(err, store.ErrTrimmed) {
			t.Errorf("replay by behavior from before the snapshot: %+v, %v", ev, err)
		}
	}
	since := testcluster.Decoded(t, whole[2].Data).Time.Time().Add(time.Millisecond)
	for _, ev := range replayed(t, c, ledger.ReplayOptions{Behavior: "job", From: since}) {
		if ev.Position.Shard == 1 && ev.Position.Ref.Entry() < 4 {
			t.Errorf("replay from after it: %+v", ev)
		}
	}
	early := ledger.Checkpoint{Cluster: p.Store.Cluster().ID, Heads: []ledger.CheckpointHead{{Shard: 1, Entry: 3, Hash: testcluster.Decoded(t, whole[2].Data).Hash}}}
	if v := verified(t, c, ledger.VerifyOptions{Against: []ledger.Checkpoint{early}})[1]; v.Damage != "" || v.Heads != 1 {
		t.Errorf("against a checkpoint of the snapshot's entry: %+v", v)
	}
	early.Heads[0].Entry = 2
	if v := verified(t, c, ledger.VerifyOptions{Against: []ledger.Checkpoint{early}})[1]; v.Damage != "" || v.Dropped != 1 || v.ProvedTo != 0 {
		t.Errorf("against a checkpoint of an entry that was dropped by rule: %+v", v)
	}

	other := &snapshotted{parts: map[uint64][][]byte{}}
	forged := slices.Clone(whole[:5])
	forged[3].Data = testcluster.Forged(t, forged[3].Data, testcluster.Decoded(t, forged[2].Data).Hash, "2")
	forged[4].Data = testcluster.Forged(t, forged[4].Data, testcluster.Decoded(t, forged[3].Data).Hash, "")
	other.take(t, forged)
	kept.kept[0], kept.parts[5] = other.kept[0], other.parts[5]
	wantDamage(t, verified(t, c, ledger.VerifyOptions{})[1], ledger.DamageSnapshot, 5)
	kept.parts[5] = nil
	wantDamage(t, verified(t, c, ledger.VerifyOptions{})[1], ledger.DamageSnapshot, 5)
}

// overtaken drops entries when a reader has begun.
type overtaken struct {
	*snapshotted
	drop func()
	once sync.Once
}

func (s *overtaken) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	if shard == 1 {
		s.once.Do(s.drop)
	}
	return s.Store.Read(ctx, shard, from)
}

func TestVerify_BeginsAgainWhenEntriesAreDroppedMeanwhile(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(8)
	whole := p.Records(1)
	kept := &overtaken{snapshotted: &snapshotted{trimmed{p.Store}, nil, map[uint64][][]byte{}}}
	kept.take(t, whole[:3])
	kept.drop = func() { p.Replace(1, whole[3:]) }
	v := verified(t, p.run(engine.ClientConfig{Store: kept}), ledger.VerifyOptions{})[1]
	if v.Damage != "" || v.From != 4 || v.Entries != whole[len(whole)-1].Number {
		t.Errorf("dropped while it was read: %+v", v)
	}
}

// A client that counted other shards than the cluster has made owners record tasks that nobody finds by their ids.
func TestVerify_NamesATaskOfAnotherShard(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	whole := p.Records(1)
	last := testcluster.Decoded(t, whole[len(whole)-1].Data)
	stray := events.TaskID(testcluster.IDIn(0, pastShards))
	created := testcluster.Decoded(t, whole[0].Data).Events[0].Body.(*events.Created)
	next := &events.Entry{
		Shard:  1,
		Number: last.Number + 1,
		Epoch:  last.Epoch,
		Owner:  last.Owner,
		Time:   last.Time,
		Prev:   last.Hash,
		Events: []events.Event{{Task: stray, Seq: 1, Body: created}},
	}
	added := store.Record{Head: store.Head{Number: next.Number}, Data: testcluster.Sealed(t, next)}
	p.Replace(1, append(slices.Clone(whole), added))
	all := verified(t, p.unserved(nil), ledger.VerifyOptions{})
	wantDamage(t, all[0], "", 0)
	wantDamage(t, all[1], ledger.DamageShard, next.Number)
	if want := string(stray) + " is of shard 0 of 2"; !strings.Contains(all[1].Problem, want) {
		t.Errorf("problem %q, want it to say that %s", all[1].Problem, want)
	}
	if all[1].Entries != next.Number {
		t.Errorf("checked up to entry %d, want %d", all[1].Entries, next.Number)
	}
}
