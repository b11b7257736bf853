package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
)

// alter replaces a text of the snapshot of an entry and makes all sums right again.
func (s *snapshotted) alter(t *testing.T, entry uint64, from, to string) {
	t.Helper()
	sums, changed := sha256.New(), false
	for i, part := range s.parts[entry] {
		content := bytes.ReplaceAll(part[:len(part)-5], []byte(from), []byte(to))
		changed = changed || !bytes.Equal(content, part[:len(part)-5])
		part = append(content, part[len(part)-5:]...)
		binary.BigEndian.PutUint32(part[len(part)-4:], crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli)))
		s.parts[entry][i] = part
		sum := sha256.Sum256(part)
		sums.Write(sum[:])
	}
	if !changed {
		t.Fatalf("snapshot %d has no %q", entry, from)
	}
	at := slices.IndexFunc(s.kept, func(kept store.SnapshotInfo) bool { return kept.Entry == entry })
	s.kept[at].Hash = events.Hash(sums.Sum(nil))
}

// head returns the head that a checkpoint holds of the last of the records of shard 1.
func head(t *testing.T, all []store.Record, state bool) ledger.CheckpointHead {
	t.Helper()
	s := &snapshotted{parts: map[uint64][][]byte{}}
	e := testcluster.Decoded(t, all[len(all)-1].Data)
	h := ledger.CheckpointHead{Shard: 1, Entry: e.Number, Hash: e.Hash}
	if state {
		h.State, h.Form = s.take(t, all), projection.DigestForm()
	}
	return h
}

// Where the first entries were dropped, nothing but a checkpoint with the state shows that the snapshot which stands
// for them was forged.
func TestVerify_ACheckpointProvesAForgedSnapshot(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	ids := p.spread(8)
	whole := p.Records(1)
	kept := &snapshotted{trimmed{p.Store}, nil, map[uint64][][]byte{}}
	kept.take(t, whole[:3])
	p.Replace(1, whole[3:])
	last := head(t, whole, true)
	against := func(heads ...ledger.CheckpointHead) ledger.VerifyOptions {
		return ledger.VerifyOptions{Against: []ledger.Checkpoint{{Cluster: p.Store.Cluster().ID, Heads: heads}}}
	}
	c, err := engine.NewClient(engine.ClientConfig{Store: kept})
	if err != nil {
		t.Fatal(err)
	}
	if v := verified(t, c, against(last))[1]; v.Damage != "" || v.ProvedTo != last.Entry || strings.Contains(v.Unproved, "state") {
		t.Errorf("before the forgery: %+v", v)
	}
	kept.alter(t, 3, string(ids[0]), strings.Replace(string(ids[0]), "n-", "x-", 1))
	blind := last
	blind.State, blind.Form = events.Hash{}, ""
	if v := verified(t, c, against(blind))[1]; v.Damage != "" || v.ProvedTo != last.Entry || !strings.Contains(v.Unproved, "the state after entry 3") {
		t.Errorf("by a checkpoint without the state: %+v", v)
	}
	wantDamage(t, verified(t, c, against(last))[1], ledger.DamageSnapshot, 3)
}

// Entries between the first that is kept and the older snapshot are compared with checkpoints, and a gap among them
// is named.
func TestVerify_ComparesHeadsBeforeTheSnapshotThatItBeginsWith(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(16)
	whole := p.Records(1)
	if len(whole) < 12 {
		t.Fatalf("%d entries", len(whole))
	}
	kept := &snapshotted{trimmed{p.Store}, nil, map[uint64][][]byte{}}
	kept.take(t, whole[:8])
	kept.take(t, whole[:10])
	p.Replace(1, whole[2:])
	c := p.run(engine.ClientConfig{Store: kept})
	against := func(h ledger.CheckpointHead) ledger.VerifyOptions {
		return ledger.VerifyOptions{Against: []ledger.Checkpoint{{Cluster: p.Store.Cluster().ID, Heads: []ledger.CheckpointHead{h}}}}
	}
	honest := head(t, whole[:5], false)
	if v := verified(t, c, against(honest))[1]; v.Damage != "" || v.From != 3 || v.Heads != 1 || v.ProvedTo != 5 || v.Dropped != 0 {
		t.Errorf("an honest head: %+v", v)
	}
	other := honest
	other.Hash[0] ^= 1
	wantDamage(t, verified(t, c, against(other))[1], ledger.DamageCheckpoint, 5)
	p.Remove(1, 6)
	wantDamage(t, verified(t, c, ledger.VerifyOptions{})[1], ledger.DamageMissing, 6)
}

// An archive whose entries were removed, by a limit of its stream for example, is found without --archive where a
// checkpoint is given.
func TestVerify_ACheckpointMissesWhatTheArchiveHasLost(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(8)
	whole := p.Records(1)
	kept := &snapshotted{trimmed{p.Store}, nil, map[uint64][][]byte{}}
	kept.take(t, whole[:3])
	p.Replace(1, whole[3:])
	o := ledger.VerifyOptions{Against: []ledger.Checkpoint{
		{Cluster: p.Store.Cluster().ID, Heads: []ledger.CheckpointHead{head(t, whole, true)}},
	}}
	c := p.run(engine.ClientConfig{Store: kept, Archive: p.archive})
	wantDamage(t, verified(t, c, o)[1], ledger.DamageMissing, 1)
	setArchive(p.archive, 1, whole[:3])
	if v := verified(t, c, o)[1]; v.Damage != "" || v.From != 1 || v.ProvedTo != v.Entries || v.Unproved != "" {
		t.Errorf("with the whole archive: %+v", v)
	}
}

// Where no owner answers, nobody tells whether a cluster drops entries: what is neither in the journal nor in the
// archive is then not known to be damage, and not proved either. What the archive has is compared with the journal.
func TestVerify_ASilentOwnerProvesNothingOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(8)
	whole := p.Records(1)
	kept := &snapshotted{trimmed{p.Store}, nil, map[uint64][][]byte{}}
	kept.take(t, whole[:3])
	p.node.Kill()
	p.Replace(1, whole[3:])
	last := head(t, whole, true)
	o := ledger.VerifyOptions{Against: []ledger.Checkpoint{
		{Cluster: p.Store.Cluster().ID, Heads: []ledger.CheckpointHead{last}},
	}}
	with := p.run(engine.ClientConfig{Store: kept, Archive: p.archive})
	without := p.run(engine.ClientConfig{Store: kept}) // as of a cluster that drops
	wantUnknown := func(what string, c *engine.Client) {
		t.Helper()
		v := verified(t, c, o)[1]
		if v.Damage != "" || !v.Unknown || v.From == 1 || !strings.Contains(v.Unproved, "whether these were dropped by rule, or removed") {
			t.Errorf("%s: %+v", what, v)
		}
	}
	wantUnknown("an archive without entries", with)
	setArchive(p.archive, 1, whole[1:3])
	wantUnknown("an archive without the first entry", with)
	wantUnknown("no archive", without)
	setArchive(p.archive, 1, whole[:3])
	if v := verified(t, with, o)[1]; v.Damage != "" || v.Unknown || v.From != 1 || v.ProvedTo != last.Entry || v.Unproved != "" {
		t.Errorf("with the whole archive: %+v", v)
	}
	changed := slices.Clone(whole)
	fourth := testcluster.Decoded(t, whole[3].Data)
	fourth.Owner = "other"
	changed[3].Data = testcluster.Sealed(t, fourth)
	setArchive(p.archive, 1, changed[:4])
	wantDamage(t, verified(t, with, o)[1], ledger.DamageArchive, 4)
	setArchive(p.archive, 1, nil)
	o.Archive = true
	wantDamage(t, verified(t, with, o)[1], ledger.DamageMissing, 1)
}

// The export of a task goes on, by digests, to the entry that a kept checkpoint names, and is held against it.
func TestExportTask_IsHeldAgainstAKeptCheckpoint(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	ids := p.spread(4)
	p.spread(6)
	kept, err := p.node.Ledger().Checkpoint(testcluster.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	p.spread(4)
	for _, id := range ids {
		var short, long bytes.Buffer
		if err := p.node.Ledger().ExportTask(testcluster.Within(t), id, &short, nil); err != nil {
			t.Fatal(err)
		}
		if v, err := ledger.VerifyExport(&short, kept); err != nil || v.Heads != 0 {
			t.Errorf("%s without the checkpoint: %+v, %v", id, v, err)
		}
		if err := p.node.Ledger().ExportTask(testcluster.Within(t), id, &long, nil, kept); err != nil {
			t.Fatal(err)
		}
		text := long.String()
		v, err := ledger.VerifyExport(strings.NewReader(text), kept)
		if err != nil || v.Damage != "" || v.Heads != 1 || v.ProvedTo != v.Entries || v.Events != 3 {
			t.Errorf("%s up to the checkpoint: %+v, %v", id, v, err)
		}
		other := kept
		other.Heads = slices.Clone(kept.Heads)
		for i := range other.Heads {
			other.Heads[i].Hash[0] ^= 1
		}
		if v, err := ledger.VerifyExport(strings.NewReader(text), other); err != nil || v.Damage != ledger.DamageCheckpoint {
			t.Errorf("%s against another history: %+v, %v", id, v, err)
		}
		if err := p.node.Ledger().ExportTask(testcluster.Within(t), id, &long, nil, other); err == nil {
			t.Errorf("%s was exported up to an entry that the checkpoint has otherwise", id)
		}
	}
}
