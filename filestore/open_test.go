package filestore_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
	"taskledger/filestore/memjournal"
	"taskledger/store"
)

var update = flag.Bool("update", false, "write the golden file where it is missing; an existing one is never changed")

func TestOpen_RefusesAnotherStoreThanWasExpectedAndChangesNothing(t *testing.T) {
	d := faultdisk.New()
	with := func(cfg filestore.Config) error {
		j, err := filejournal.OpenLayer(d, filejournal.Options{Boot: "boot"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = filestore.New(j, cfg)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		return err
	}
	if err := with(filestore.Config{ID: "expected"}); !errors.Is(err, filestore.ErrOtherCluster) {
		t.Errorf("where there is no store: %v", err)
	}
	for _, shards := range []int{-1, 3, 512} {
		if _, is := errors.AsType[*store.InvalidError](with(filestore.Config{Shards: shards})); !is {
			t.Errorf("a store of %d shards was created", shards)
		}
	}
	if err := with(filestore.Config{Shards: 2}); err != nil {
		t.Fatal(err)
	}
	before := d.Contents()
	if err := with(filestore.Config{Shards: 4}); !errors.Is(err, filestore.ErrShards) {
		t.Errorf("with another number of shards: %v", err)
	}
	if err := with(filestore.Config{ID: "expected"}); !errors.Is(err, filestore.ErrOtherCluster) {
		t.Errorf("of another cluster: %v", err)
	}
	for name, data := range d.Contents() {
		if !bytes.Equal(data, before[name]) {
			t.Errorf("%s was changed", name)
		}
	}
	if err := with(filestore.Config{}); err != nil {
		t.Error(err)
	}
}

// contents returns what is in the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range matches(t, filepath.Join(dir, "*")) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = string(data)
	}
	return all
}

// What a crash has left is settled by whoever may have the store alone.
func TestOpen_ChangesNothingOfAStoreThatItRefusesAfterACrash(t *testing.T) {
	errBeside := errors.New("the archive is another cluster's")
	for _, durability := range []filejournal.Durability{filejournal.Strict, filejournal.Opportunistic} {
		running := t.TempDir()
		o := filejournal.Options{Durability: durability, Boot: "first"}
		s, err := filestore.Open(running, filestore.Config{Shards: 2}, o)
		if err != nil {
			t.Fatal(err)
		}
		own(t, s, 0).fill(5)
		crashed := t.TempDir()
		if err := os.CopyFS(crashed, os.DirFS(running)); err != nil {
			t.Fatal(err)
		}
		id := s.Cluster().ID
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(crashed, "log-0000000000000001")
		if err := errors.Join(tear(log), os.WriteFile(filepath.Join(crashed, "run.new"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		before := contents(t, crashed)
		o.Boot = "second"
		for name, c := range map[string]struct {
			cfg  filestore.Config
			want error
		}{
			"another cluster":          {filestore.Config{ID: "expected"}, filestore.ErrOtherCluster},
			"another number of shards": {filestore.Config{Shards: 4}, filestore.ErrShards},
			"what is beside it": {
				filestore.Config{Beside: func(c store.Cluster) (func() error, error) {
					if c.ID != id || c.Shards != 2 {
						t.Errorf("the cluster is %+v", c)
					}
					return nil, errBeside
				}},
				errBeside,
			},
		} {
			if _, err := filestore.Open(crashed, c.cfg, o); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", name, err)
			}
			if after := contents(t, crashed); !maps.Equal(after, before) {
				t.Errorf("%s: something was changed", name)
			}
		}
		begun := false
		s, err = filestore.Open(crashed, filestore.Config{ID: id, Beside: func(store.Cluster) (func() error, error) {
			return func() error {
				begun = true
				return nil
			}, nil
		}}, o)
		if err != nil {
			t.Fatal(err)
		}
		if !begun {
			t.Error("what is beside it has not begun")
		}
		if s.Last(0).Number < 4 {
			t.Errorf("the last entry is %d", s.Last(0).Number)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if maps.Equal(contents(t, crashed), before) {
			t.Error("nothing is cut by who may have it")
		}
	}
}

// tear cuts a file in its last record.
func tear(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return os.Truncate(name, info.Size()-10)
}

// A directory in which nothing was created has no store of any id.
func TestOpen_CreatesNoStoreOfAnIDThatIsExpected(t *testing.T) {
	dir := t.TempDir()
	if _, err := filestore.Open(dir, filestore.Config{ID: "expected"}, filejournal.Options{}); !errors.Is(err, filestore.ErrOtherCluster) {
		t.Errorf("error is %v", err)
	}
	for name := range contents(t, dir) {
		if name != "lock" {
			t.Errorf("there is %s", name)
		}
	}
}

func TestNew_RefusesNotesThatItDoesNotRead(t *testing.T) {
	for notes, want := range map[string]error{
		`{"format":"taskledger store","version":2}`: filestore.ErrFormat,
		`{"format":"another","version":1}`:          filestore.ErrFormat,
		`{"format":"taskledger store"`:              events.ErrDamaged,
	} {
		j := new(memjournal.Journal)
		s := journal.Snapshot{Parts: [][]byte{[]byte(notes)}}
		if err := j.WriteSnapshot(journal.Key{Shard: journal.Notes}, s); err != nil {
			t.Fatal(err)
		}
		if _, err := filestore.New(j, filestore.Config{}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", notes, err, want)
		}
	}
}

// A journaler that has lost entries without saying so is found out by the numbers.
func TestNew_RefusesAJournalThatDoesNotBeginWhereItWasTrimmed(t *testing.T) {
	j := new(memjournal.Journal)
	w := own(t, open(t, j), 0)
	w.fill(5)
	w.trim(3)
	lost := new(memjournal.Journal)
	s, err := j.ReadSnapshot(journal.Key{Shard: journal.Notes})
	if err == nil {
		err = lost.WriteSnapshot(journal.Key{Shard: journal.Notes}, s)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filestore.New(lost, filestore.Config{}); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("without any entry: %v", err)
	}
	for e := range j.Read(0, 4) {
		if err := lost.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := filestore.New(lost, filestore.Config{}); !errors.Is(err, events.ErrDamaged) {
		t.Errorf("without the first entry that was not trimmed: %v", err)
	}
}

// trim takes snapshots of an entry and the next one, and makes it the first one.
func (w *writer) trim(number uint64) store.SnapshotPointer {
	w.t.Helper()
	var p store.SnapshotPointer
	var err error
	for _, entry := range []uint64{number, number + 1} {
		s := store.SnapshotInfo{Entry: entry, Epoch: w.own.Revision, Parts: 1, Bytes: 5}
		if err = w.store.PutPart(w.t.Context(), w.own, entry, 0, []byte("state")); err == nil {
			p, err = w.store.Publish(w.t.Context(), w.own, p, s)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if err := w.store.Trim(w.t.Context(), w.own, p, 1, number); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func TestStore_HasEverythingAgainButWhoWasThere(t *testing.T) {
	j := new(memjournal.Journal)
	before := open(t, j)
	w := own(t, before, 0)
	w.fill(5)
	p := w.trim(3)
	lost := store.Loss{Shard: 1, Entry: 7, Reason: "why"}
	if err := errors.Join(before.Raise(t.Context(), written), before.GiveUp(t.Context(), lost)); err != nil {
		t.Fatal(err)
	}
	after := open(t, j)
	if a, b := after.Cluster(), before.Cluster(); a.ID != b.ID || a.Shards != b.Shards || !bytes.Equal(a.Key, b.Key) {
		t.Errorf("the cluster is %+v, was %+v", a, b)
	}
	m, err := after.ReadMembers(t.Context())
	if err != nil || len(m.Nodes)+len(m.Owners) != 0 || m.Written != (store.Reads{}).With(written) {
		t.Errorf("members are %+v, %v", m, err)
	}
	if l := loss(t, after, 1); l != loss(t, before, 1) || l.Reason != "why" {
		t.Errorf("given up is %+v", l)
	}
	got, err := after.Pointer(t.Context(), 0)
	if err != nil || got.Revision != p.Revision || !slices.Equal(got.Kept, p.Kept) {
		t.Errorf("the pointer is %+v, %v; was %+v", got, err, p)
	}
	for part, err := range after.Parts(t.Context(), 0, p.Kept[1]) {
		if err != nil || string(part) != "state" {
			t.Errorf("a part is %q, %v", part, err)
		}
	}
	if first, err := after.First(t.Context(), 0); err != nil || first != 3 {
		t.Errorf("the first entry is %d, %v", first, err)
	}
	if r, err := after.Entry(t.Context(), 0, 5); err != nil || r.Head != w.head {
		t.Errorf("the last entry is %+v, %v; was %+v", r.Head, err, w.head)
	}
	session, err := after.Join(t.Context(), store.NodeInfo{Reads: written}, time.Hour)
	if given := max(w.given, p.Revision, loss(t, before, 1).Revision); err != nil || session.Revision <= given {
		t.Errorf("the next session is %+v, %v; revision %d was given before", session, err, given)
	}
}

// A shard that writes little must not keep the log of a busy one, though each segment has an entry of it.
func TestTrim_GivesTheRoomBack(t *testing.T) {
	dir := t.TempDir()
	s, err := filestore.Open(dir, filestore.Config{Shards: 2}, filejournal.Options{SegmentBytes: 8 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	idle, busy := own(t, s, 1), own(t, s, 0)
	var p store.SnapshotPointer
	for n := uint64(1); n <= 600; n++ {
		busy.fill(1)
		if n%25 == 0 {
			idle.fill(1)
		}
		if n%50 != 0 {
			continue
		}
		snapshot := store.SnapshotInfo{Entry: n, Epoch: busy.own.Revision, Parts: 1, Bytes: 5}
		err := s.PutPart(t.Context(), busy.own, n, 0, []byte("state"))
		if err == nil {
			p, err = s.Publish(t.Context(), busy.own, p, snapshot)
		}
		if err == nil && len(p.Kept) == 2 {
			err = s.Trim(t.Context(), busy.own, p, 1, p.Kept[1].Entry)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if size, most := size(t, dir), int64(80<<10); size > most {
		t.Errorf("the log takes %d bytes, want %d at most", size, most)
	}
	n := uint64(0)
	for r, err := range s.Read(t.Context(), 1, 1) {
		if n++; err != nil || r.Number != n {
			t.Fatalf("entry %d of the idle shard is %d, %v", n, r.Number, err)
		}
	}
	if n != idle.head.Number {
		t.Errorf("%d entries of the idle shard are there, want %d", n, idle.head.Number)
	}
}

// The last snapshot of a shard comes before what it covers is archived and trimmed, and none may ever follow.
func TestTrim_GivesTheRoomBackThoughNoSnapshotFollows(t *testing.T) {
	dir := t.TempDir()
	files := filejournal.Options{SegmentBytes: 8 << 10}
	s, err := filestore.Open(dir, filestore.Config{Shards: 2}, files)
	if err != nil {
		t.Fatal(err)
	}
	w := own(t, s, 0)
	w.fill(600)
	before := size(t, dir)
	w.trim(600)
	w.fill(1)
	if after := size(t, dir); before < 100<<10 || after > 20<<10 {
		t.Errorf("the log takes %d bytes, and took %d before it was trimmed", after, before)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = filestore.Open(dir, filestore.Config{}, files); err != nil {
			t.Fatal(err)
		}
		if first, err := s.First(t.Context(), 0); err != nil || first != 600 || s.Last(0) != w.head {
			t.Errorf("entries %d to %d are there, %v; want 600 to %d", first, s.Last(0).Number, err, w.head.Number)
		}
		p, err := s.Pointer(t.Context(), 0)
		if err != nil || len(p.Kept) != 2 {
			t.Errorf("the pointer is %+v, %v", p, err)
		}
		for _, kept := range p.Kept {
			for part, err := range s.Parts(t.Context(), 0, kept) {
				if err != nil || string(part) != "state" {
					t.Errorf("snapshot %d is %q, %v", kept.Entry, part, err)
				}
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// size returns the bytes of the log in a directory.
func size(t *testing.T, dir string) (size int64) {
	t.Helper()
	for _, name := range matches(t, filepath.Join(dir, "log-*")) {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

// unread is a journal of which no entry may be read.
type unread struct{ *filejournal.Journal }

func (j unread) Read(shard int, from uint64) iter.Seq2[journal.Entry, error] {
	return func(yield func(journal.Entry, error) bool) {
		yield(journal.Entry{}, fmt.Errorf("shard %d is read from entry %d", shard, from))
	}
}

// What was read to look at a journal is not read again to begin.
func TestOpen_ReadsNoEntryASecondTime(t *testing.T) {
	d := faultdisk.New()
	s, j, err := bounded(d, "boot", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	trimmed, whole := own(t, s, 0), own(t, s, 1)
	trimmed.fill(9)
	whole.fill(7)
	trimmed.trim(5)
	want, err := s.Usage(t.Context())
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	if j, err = filejournal.LookLayer(d, filejournal.Options{Boot: "boot"}); err != nil {
		t.Fatal(err)
	}
	if s, err = filestore.OpenLookedWith(unread{j}, filestore.Config{}, j.Begin); err != nil {
		t.Fatal(err)
	}
	got, err := s.Usage(t.Context())
	if first, _ := s.First(t.Context(), 0); err != nil || got.InUse != want.InUse || first != 5 ||
		s.Last(0) != trimmed.head || s.Last(1) != whole.head {
		t.Errorf("in use are %d bytes, from entry %d to %v and %v, %v; want %d, from 5 to %v and %v",
			got.InUse, first, s.Last(0), s.Last(1), err, want.InUse, trimmed.head, whole.head)
	}
	again, err := filestore.New(j, filestore.Config{}) // the journal has begun, and knows no more what it had read
	if err != nil || again.Last(0) != trimmed.head || again.Last(1) != whole.head {
		t.Errorf("read again: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

func matches(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// The notes of a store with everything in them are read as this version has written them.
func TestGolden_NotesAreRead(t *testing.T) {
	name := filepath.Join("testdata", "notes.json")
	if _, err := os.Stat(name); *update && errors.Is(err, fs.ErrNotExist) {
		writeNotes(t, name)
	}
	notes, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	j := new(memjournal.Journal)
	if err := j.WriteSnapshot(journal.Key{Shard: journal.Notes}, journal.Snapshot{Parts: [][]byte{notes}}); err != nil {
		t.Fatal(err)
	}
	for n := uint64(3); n <= 5; n++ {
		if err := j.Append(journal.Entry{Number: n, Revision: int64(n), Data: []byte("entry")}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := filestore.New(j, filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.First(t.Context(), 0)
	p, failed := s.Pointer(t.Context(), 0)
	l := loss(t, s, 1)
	same := first == 3 && len(p.Kept) == 2 && p.Kept[0].Entry == 4 && l.Entry == 7 && l.Reason == "why"
	if err != nil || failed != nil || !same || l.Hash == (events.Hash{}) {
		t.Errorf("the first entry is %d, the pointer %+v, the loss %+v; %v, %v", first, p, l, err, failed)
	}
	if m, err := s.ReadMembers(t.Context()); err != nil || m.Written != (store.Reads{}).With(written) {
		t.Errorf("written is %+v, %v", m.Written, err)
	}
	again, err := j.ReadSnapshot(journal.Key{Shard: journal.Notes})
	// Opening reserves revisions behind those that may have been given.
	want := bytes.Replace(notes, []byte(`"revisions":1048576`), []byte(`"revisions":2097152`), 1)
	if err != nil || !bytes.Equal(again.Parts[0], want) {
		t.Errorf("opening has changed the notes: %v\n%s\nwant\n%s", err, again.Parts[0], want)
	}
}

// writeNotes writes the notes of a store that has some of everything.
func writeNotes(t *testing.T, name string) {
	t.Helper()
	j := new(memjournal.Journal)
	s := open(t, j)
	w := own(t, s, 0)
	w.fill(5)
	w.trim(3)
	lost := store.Loss{Shard: 1, Entry: 7, Hash: w.last.Hash, Reason: "why"}
	if err := errors.Join(s.Raise(t.Context(), written), s.GiveUp(t.Context(), lost)); err != nil {
		t.Fatal(err)
	}
	notes, err := j.ReadSnapshot(journal.Key{Shard: journal.Notes})
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, notes.Parts[0], 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The notes are written before the first entry: without them there is no telling whose entries these are.
func TestOpen_OfEntriesWithoutNotesIsDamageAndMakesNoOtherStore(t *testing.T) {
	for name, cfg := range map[string]filestore.Config{"no shards given": {}, "fewer shards": {Shards: 1}, "more shards": {Shards: 8}} {
		dir := t.TempDir()
		s, err := filestore.Open(dir, filestore.Config{Shards: 2}, filejournal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		own(t, s, 1).fill(5)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		notes, err := filepath.Glob(filepath.Join(dir, "snapshot-notes-*"))
		if err != nil || len(notes) == 0 {
			t.Fatalf("%v, %v", notes, err)
		}
		for _, file := range notes {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		before := contents(t, dir)
		if _, err := filestore.Open(dir, cfg, filejournal.Options{}); !errors.Is(err, events.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if after := contents(t, dir); !maps.Equal(after, before) {
			t.Errorf("%s: something was changed", name)
		}
	}
}

// Once the beginning of each shard that was used is trimmed, no first entry tells that there was a store.
func TestOpen_OfATrimmedStoreWithoutNotesIsDamageAndMakesNoOtherStore(t *testing.T) {
	for name, use := range map[string]func(*writer){
		"entries are left":    func(w *writer) { w.fill(5); w.trim(3) },
		"an entry is left":    func(w *writer) { w.fill(5); w.trim(5) },
		"few were ever there": func(w *writer) { w.fill(2); w.trim(2) },
	} {
		dir := t.TempDir()
		s, err := filestore.Open(dir, filestore.Config{Shards: 2}, filejournal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for shard := range 2 {
			use(own(t, s, shard))
		}
		of := s.Cluster()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "snapshot-notes-0")); err != nil {
			t.Fatal(err)
		}
		before := contents(t, dir)
		if _, err := filestore.Open(dir, filestore.Config{}, filejournal.Options{}); !errors.Is(err, events.ErrDamaged) {
			t.Errorf("%s: it is opened with %v", name, err)
		}
		if _, err := filestore.Receive(dir, of, "a test", filejournal.Options{}); !errors.Is(err, store.ErrTaken) {
			t.Errorf("%s: a copy is received with %v", name, err)
		}
		if after := contents(t, dir); !maps.Equal(after, before) {
			t.Errorf("%s: something was changed", name)
		}
	}
}
