package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/journal"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/store/memarchive"
	"taskledger/store/transfer"
)

// copyTo copies into a receiver.
func copyTo(t *testing.T, s transfer.Source, a store.Archive, to store.Receiver, archive store.Archive) ([]transfer.Shard, error) {
	t.Helper()
	return transfer.Copy(t.Context(), transfer.Config{From: s, FromArchive: a, To: to, ToArchive: archive})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("error is %v, want %v with %q", err, want, text)
	}
}

// inEtcd is a place in an etcd.
func inEtcd(t *testing.T, client *clientv3.Client, name string, c store.Cluster) *etcdstore.Receiver {
	t.Helper()
	r, err := etcdstore.Receive(t.Context(), etcdstore.Config{Client: client, Cluster: name, RequestTimeout: timeout}, c, "a test")
	must(t, err)
	return r
}

func openEtcd(t *testing.T, client *clientv3.Client, name string) *etcdstore.Store {
	t.Helper()
	s, err := etcdstore.Open(t.Context(), etcdstore.Config{Client: client, Cluster: name, Existing: true, RequestTimeout: timeout})
	must(t, err)
	return s
}

// From files to etcd, from there to files, and to another etcd.
func TestCopy_OneWayAndBackExportsTheSameBytes(t *testing.T) {
	t.Parallel()
	from, archive := source(t)
	want := exports(t, from, archive)
	_, one := testcluster.StartEtcd(t)
	_, other := testcluster.StartEtcd(t)

	archives := []*memarchive.Archive{memarchive.New(), memarchive.New()}
	_, err := copyTo(t, from, archive, inEtcd(t, one, "one", from.Cluster()), archives[0])
	must(t, err)
	there := openEtcd(t, one, "one")
	wantSame(t, from, there, archive, archives[0])

	dir := filepath.Join(t.TempDir(), "files")
	back, err := filestore.Receive(dir, from.Cluster(), "a test", filejournal.Options{})
	must(t, err)
	kept, err := filearchive.Open(filepath.Join(t.TempDir(), "archive"), from.Cluster().ID)
	must(t, err)
	_, err = copyTo(t, there, archives[0], back, kept)
	must(t, errors.Join(err, back.Close()))
	files, err := filestore.OpenToCopy(dir, "")
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(files.Close(), kept.Close())) })
	wantSame(t, from, files, archive, kept)

	_, err = copyTo(t, files, kept, inEtcd(t, other, "two", from.Cluster()), archives[1])
	must(t, err)
	last := openEtcd(t, other, "two")
	wantSame(t, from, last, archive, archives[1])

	for what, got := range map[string]map[string][]byte{
		"etcd":         exports(t, there, archives[0]),
		"files":        exports(t, files, kept),
		"another etcd": exports(t, last, archives[1]),
	} {
		for name, bytesOf := range want {
			if !bytes.Equal(got[name], bytesOf) {
				t.Errorf("%s exports of %s other bytes", what, name)
			}
		}
	}
}

func TestCopy_TellsWhatWasCopiedAndNothingWhenItIsRepeated(t *testing.T) {
	t.Parallel()
	from, archive := source(t)
	to := newPlace()
	all, err := copyTo(t, from, archive, to.receiver(t, from.Cluster()), to.archive)
	must(t, err)
	for _, s := range all {
		if s.First <= 1 || s.Entries != s.Last-s.First+1 || s.Archived < s.First-1 || s.Copied != s.Entries+s.Archived || s.Snapshots != 2 || s.Tasks == 0 {
			t.Errorf("copied %+v", s)
		}
	}
	again, err := copyTo(t, from, archive, to.receiver(t, from.Cluster()), to.archive)
	must(t, err)
	for i, s := range again {
		if want := all[i]; s.Copied != 0 || s.Hash != want.Hash || s.Entries != want.Entries || s.Archived != want.Archived {
			t.Errorf("copied again %+v, want %+v", s, want)
		}
	}
}

func TestCopy_GivesNoRevisionAgain(t *testing.T) {
	t.Parallel()
	from, archive := source(t)
	before, err := from.ReadMembers(t.Context())
	must(t, err)
	to := newPlace()
	_, err = copyTo(t, from, archive, to.receiver(t, from.Cluster()), to.archive)
	must(t, err)
	s, err := to.open()
	must(t, err)
	session, err := s.Join(t.Context(), store.NodeInfo{Name: "n", Reads: before.Written}, time.Minute)
	must(t, err)
	o, err := s.Take(t.Context(), session, 0, store.Owner{})
	must(t, err)
	if o.Revision <= before.Revision+1_000_000 {
		t.Errorf("epoch %d, and the source goes on from %d", o.Revision, before.Revision)
	}
}

// errCut ends a copy.
var errCut = errors.New("cut")

// cutter counts the writes of a copy, and fails one of them, before or after it is made.
type cutter struct {
	at    int // 0 = none
	made  bool
	count int
}

func (c *cutter) write(write func() error) error {
	c.count++
	if c.at == 0 || c.count < c.at {
		return write()
	}
	if c.count == c.at && c.made {
		return errors.Join(write(), errCut)
	}
	return errCut
}

// cut is a receiver whose writes a cutter counts.
type cut struct {
	store.Receiver
	*cutter
}

func (c cut) Begin(ctx context.Context) error {
	return c.write(func() error { return c.Receiver.Begin(ctx) })
}

func (c cut) AddShard(ctx context.Context, shard int, s store.ReceivedShard, parts store.PartsOf) error {
	return c.write(func() error { return c.Receiver.AddShard(ctx, shard, s, parts) })
}

func (c cut) AddEntries(ctx context.Context, shard int, entries []store.Record) error {
	return c.write(func() error { return c.Receiver.AddEntries(ctx, shard, entries) })
}

func (c cut) Finish(ctx context.Context, revision int64, written store.Reads) error {
	return c.write(func() error { return c.Receiver.Finish(ctx, revision, written) })
}

// archives is store.Archive under a name that none of its methods has.
type archives = store.Archive

// archiveCut is an archive whose writes a cutter counts.
type archiveCut struct {
	archives
	*cutter
}

func (c *archiveCut) Archive(
	ctx context.Context, shard int, after store.ArchiveHead, entries []store.Record,
) (head store.ArchiveHead, err error) {
	err = c.write(func() (err error) {
		head, err = c.archives.Archive(ctx, shard, after, entries)
		return err
	})
	return head, err
}

// endless is a receiver whose copies do not end.
type endless struct{ store.Receiver }

func (endless) Finish(context.Context, int64, store.Reads) error { return errCut }

func TestCopy_ThatIsCutAtAnyWriteIsRefusedAndEndedByTheNextOne(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	from, archive := source(t)
	attempt := func(to *place, c *cutter) error {
		_, err := copyTo(t, from, archive, cut{to.receiver(t, from.Cluster()), c}, &archiveCut{to.archive, c})
		return err
	}
	whole := &cutter{}
	must(t, attempt(newPlace(), whole))
	if whole.count < 12 {
		t.Fatalf("a copy has %d writes", whole.count)
	}
	var all []cutter
	for n := 1; n <= whole.count; n++ {
		all = append(all, cutter{at: n}, cutter{at: n, made: true})
	}
	for _, c := range testkit.Some(all, 7) {
		to := newPlace()
		wantError(t, attempt(to, &c), errCut, "")
		begun, finished := c.at > 1 || c.made, c.at == whole.count && c.made
		if begun && !finished {
			if _, err := to.open(); !errors.Is(err, store.ErrUnfinished) {
				t.Errorf("cut at write %d of %d, it opens: %v", c.at, whole.count, err)
			}
		}
		if err := attempt(to, &cutter{}); err != nil {
			t.Errorf("cut at write %d of %d, made %v, the next copy fails: %v", c.at, whole.count, c.made, err)
			continue
		}
		s, err := to.open()
		must(t, err)
		wantSame(t, from, s, archive, to.archive)
	}
}

// In etcd the writes are transactions, of which a copy makes several for a shard.
func TestCopy_ThatIsCutAtAnyTransactionIsRefusedAndEndedByTheNextOne(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	from, archive := source(t)
	endpoint, raw := testcluster.StartEtcd(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	faults := testcluster.InstallFaults(client)
	attempt := func(name string, archived *memarchive.Archive, fates ...testcluster.Fate) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range fates {
			if fates[i].Drop {
				fates[i].Then = cancel
			}
		}
		to := inEtcd(t, client, name, from.Cluster())
		faults.Next(fates...)
		_, err := transfer.Copy(ctx, transfer.Config{From: from, FromArchive: archive, To: to, ToArchive: archived})
		return err
	}
	must(t, attempt("whole", memarchive.New()))
	sent := faults.Sent()
	var all []int
	for n := range sent {
		all = append(all, n)
	}
	for _, n := range testkit.Some(all, 13) {
		name, archived := fmt.Sprint("cut-", n), memarchive.New()
		fates := make([]testcluster.Fate, n+1)
		fates[n].Drop = true
		if err := attempt(name, archived, fates...); err == nil {
			t.Errorf("cut at transaction %d of %d, it ends", n, sent)
		}
		if n > 0 {
			_, err := etcdstore.Open(t.Context(), etcdstore.Config{Client: raw, Cluster: name, Existing: true, RequestTimeout: timeout})
			wantError(t, err, store.ErrUnfinished, "not finished: run copy again")
		}
		fates[n] = testcluster.Fate{Err: testcluster.ErrLost} // the next copy loses an answer
		if err := attempt(name, archived, fates...); err != nil {
			t.Errorf("cut at transaction %d of %d, the next copy fails: %v", n, sent, err)
			continue
		}
		wantSame(t, from, openEtcd(t, raw, name), archive, archived)
	}
}

func TestCopy_IsRefusedWhileNodesUseAStore(t *testing.T) {
	t.Parallel()
	_, client := testcluster.StartEtcd(t)
	s, err := etcdstore.Open(t.Context(), etcdstore.Config{Client: client, Shards: 2, RequestTimeout: timeout})
	must(t, err)
	session, err := s.Join(t.Context(), store.NodeInfo{Name: "web-1"}, time.Minute)
	must(t, err)
	to := newPlace()
	_, err = copyTo(t, s, nil, to.receiver(t, s.Cluster()), nil)
	wantError(t, err, transfer.ErrNodes, "web-1")
	if there, err := to.journal.ReadSnapshot(journal.Key{Shard: journal.Notes}); err != nil || len(there.Parts) != 0 {
		t.Errorf("something was written: %v", err)
	}
	must(t, s.Leave(t.Context(), session))
	_, err = copyTo(t, s, nil, to.receiver(t, s.Cluster()), nil)
	must(t, err)

	copied, err := to.open()
	must(t, err)
	must(t, toEtcd(t, client, "target", copied))
	target := openEtcd(t, client, "target")
	_, err = target.Join(t.Context(), store.NodeInfo{Name: "web-2"}, time.Minute)
	must(t, err)
	wantError(t, toEtcd(t, client, "target", copied), transfer.ErrNodes, "web-2")
}

func toEtcd(t *testing.T, client *clientv3.Client, name string, from transfer.Source) error {
	t.Helper()
	_, err := copyTo(t, from, nil, inEtcd(t, client, name, from.Cluster()), nil)
	return err
}

// busy is a source that a node has used when it is looked at again.
type busy struct {
	*filestore.Store
	looks int
}

func (b *busy) ReadMembers(ctx context.Context) (store.Membership, error) {
	m, err := b.Store.ReadMembers(ctx)
	if b.looks++; b.looks > 1 {
		m.Owners = map[int]store.Owner{1: {Node: "web-1-abcdefgh27", Revision: 7}}
	}
	return m, err
}

func TestCopy_IsNotFinishedWhereANodeHasUsedTheSourceMeanwhile(t *testing.T) {
	t.Parallel()
	from, archive := source(t)
	to := newPlace()
	_, err := copyTo(t, &busy{Store: from}, archive, to.receiver(t, from.Cluster()), to.archive)
	wantError(t, err, transfer.ErrNodes, "shard 1")
	_, err = to.open()
	wantError(t, err, store.ErrUnfinished, "")
}

// counted is a receiver to which nothing may be written.
type counted struct {
	store.Receiver
	t *testing.T
}

func (c counted) Begin(context.Context) error {
	c.t.Error("the copy begins")
	return errCut
}

func TestCopy_IntoWhatTheSourceHasNotIsRefusedAndNothingIsChanged(t *testing.T) {
	t.Parallel()
	from, archive := source(t)
	half := func(t *testing.T) *place {
		to := newPlace()
		_, err := copyTo(t, from, archive, endless{to.receiver(t, from.Cluster())}, to.archive)
		wantError(t, err, errCut, "")
		return to
	}
	t.Run("AnotherEntry", func(t *testing.T) {
		to := half(t)
		r := to.receiver(t, from.Cluster())
		must(t, r.Begin(t.Context()))
		must(t, r.AddEntries(t.Context(), 1, []store.Record{{
			Head: store.Head{Number: from.Last(1).Number + 1, Revision: 1 << 40},
			Data: []byte("another"),
		}}))
		_, err := copyTo(t, from, archive, counted{to.receiver(t, from.Cluster()), t}, to.archive)
		wantError(t, err, transfer.ErrDiffers, "shard 1")
	})
	t.Run("AnArchiveThatIsLonger", func(t *testing.T) {
		to := half(t)
		head, err := to.archive.Head(t.Context(), 1)
		must(t, err)
		next, err := from.Entry(t.Context(), 1, head.Entry+1)
		must(t, err)
		_, err = to.archive.Archive(t.Context(), 1, head, []store.Record{next})
		must(t, err)
		_, err = copyTo(t, from, archive, counted{to.receiver(t, from.Cluster()), t}, to.archive)
		wantError(t, err, transfer.ErrDiffers, "archive of shard 1")
	})
	t.Run("AnArchiveThatIsGone", func(t *testing.T) {
		to := newPlace()
		_, err := copyTo(t, from, archive, to.receiver(t, from.Cluster()), to.archive)
		must(t, err)
		_, err = copyTo(t, from, archive, counted{to.receiver(t, from.Cluster()), t}, memarchive.New())
		wantError(t, err, transfer.ErrDiffers, "finished before, and its archive ends with entry 0")
	})
	t.Run("ThatHasGoneOn", func(t *testing.T) {
		to := newPlace()
		_, err := copyTo(t, from, archive, to.receiver(t, from.Cluster()), to.archive)
		must(t, err)
		s, err := to.open()
		must(t, err)
		m, err := s.ReadMembers(t.Context())
		must(t, err)
		session, err := s.Join(t.Context(), store.NodeInfo{Name: "n", Reads: m.Written}, time.Minute)
		must(t, err)
		o, err := s.Take(t.Context(), session, 0, store.Owner{})
		must(t, err)
		_, err = s.Append(t.Context(), o, s.Last(0), []byte("next"))
		must(t, err)
		_, err = copyTo(t, from, archive, counted{to.receiver(t, from.Cluster()), t}, to.archive)
		wantError(t, err, transfer.ErrDiffers, "shard 0")
	})
}

// flipped is a source in which one bit of what is read is another one.
type flipped struct {
	*filestore.Store
	entry, part int // which one of shard 1, counted from 1; 0 = none
}

func flip(data []byte) []byte {
	data = bytes.Clone(data)
	data[len(data)/2] ^= 4
	return data
}

func (f *flipped) Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return flipNth(f.Store.Read(ctx, shard, from), f.entry, shard)
}

func flipNth(all iter.Seq2[store.Record, error], nth, shard int) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		n := 0
		for rec, err := range all {
			if n++; n == nth && shard == 1 {
				rec.Data = flip(rec.Data)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (f *flipped) Parts(ctx context.Context, shard int, s store.SnapshotInfo) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		n := 0
		for part, err := range f.Store.Parts(ctx, shard, s) {
			if n++; n == f.part && shard == 1 {
				part = flip(part)
			}
			if !yield(part, err) {
				return
			}
		}
	}
}

// flippedArchive is the same of an archive.
type flippedArchive struct {
	archives
	entry int
}

func (f *flippedArchive) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return flipNth(f.archives.ReadArchive(ctx, shard, from), f.entry, shard)
}

func TestCopy_OfAFlippedBitIsNamedAndNotFinished(t *testing.T) {
	t.Parallel()
	from, archive := source(t)
	for name, c := range map[string]struct {
		source  flipped
		archive int
		text    string
	}{
		"Entry":         {source: flipped{entry: 3}, text: "of shard 1"},
		"Snapshot":      {source: flipped{part: 1}, text: "shard 1"},
		"ArchivedEntry": {archive: 3, text: "entry 3 of shard 1"},
	} {
		t.Run(name, func(t *testing.T) {
			to := newPlace()
			c.source.Store = from
			_, err := copyTo(t, &c.source, &flippedArchive{archive, c.archive}, to.receiver(t, from.Cluster()), to.archive)
			wantError(t, err, events.ErrDamaged, c.text)
			_, err = to.open()
			wantError(t, err, store.ErrUnfinished, "")
		})
	}
}

func TestCopy_WithoutTheArchiveTakesAWord(t *testing.T) {
	t.Parallel()
	from, archive := source(t)
	to := newPlace()
	_, err := copyTo(t, from, nil, counted{to.receiver(t, from.Cluster()), t}, nil)
	wantError(t, err, transfer.ErrTrimmed, "the journal begins with entry")
	_, err = copyTo(t, from, archive, counted{to.receiver(t, from.Cluster()), t}, nil)
	wantError(t, err, store.ErrRefused, "no archive takes them")
	all, err := transfer.Copy(t.Context(), transfer.Config{From: from, To: to.receiver(t, from.Cluster()), Drop: true})
	must(t, err)
	for _, s := range all {
		if s.Archived != 0 || s.Entries == 0 || s.Tasks == 0 {
			t.Errorf("copied %+v", s)
		}
	}
}

// damagedArchive is an archive whose last entry is read back with another bit, or with another revision.
type damagedArchive struct {
	archives
	revision bool
}

func (a *damagedArchive) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		head, err := a.Head(ctx, shard)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for rec, err := range a.archives.ReadArchive(ctx, shard, from) {
			switch {
			case rec.Number != head.Entry:
			case a.revision:
				rec.Revision++
			default:
				rec.Data = flip(rec.Data)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// The last entries that are archived stand in the journal, too, and nobody needs them from the archive yet.
func TestCopy_IsNotFinishedWhereAnyArchivedEntryIsReadBackOtherwise(t *testing.T) {
	t.Parallel()
	from, archive := source(t)
	longer := memarchive.New()
	for shard := range from.Cluster().Shards {
		var head store.ArchiveHead
		add := func(rec store.Record, err error) {
			must(t, err)
			head, err = longer.Archive(t.Context(), shard, head, []store.Record{rec})
			must(t, err)
		}
		for rec, err := range archive.ReadArchive(t.Context(), shard, 1) {
			add(rec, err)
		}
		add(from.Entry(t.Context(), shard, head.Entry+1))
	}
	for _, revision := range []bool{false, true} {
		to := newPlace()
		_, err := copyTo(t, from, longer, to.receiver(t, from.Cluster()), &damagedArchive{to.archive, revision})
		wantError(t, err, events.ErrDamaged, "archive of shard 0")
		_, err = to.open()
		wantError(t, err, store.ErrUnfinished, "")
	}
}
