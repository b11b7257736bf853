package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/memjournal"
	"taskledger/internal/testkit"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/store/memarchive"
	"taskledger/store/membus"
	"taskledger/store/transfer"
	"taskledger/task"
)

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(made.dir)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const (
	timeout = time.Minute
	tasks   = 340
)

// made is the cluster that is copied: a node has archived and trimmed in each of its two shards.
var made struct {
	once sync.Once
	dir  string
	err  error
}

// source opens a copy of the cluster that is made once.
func source(t *testing.T) (*filestore.Store, *filearchive.Archive) {
	t.Helper()
	made.once.Do(func() { made.dir, made.err = makeCluster() })
	if made.err != nil {
		t.Fatal(made.err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(made.dir)); err != nil {
		t.Fatal(err)
	}
	return openDir(t, dir)
}

// openDir opens a directory to copy it.
func openDir(t *testing.T, dir string) (*filestore.Store, *filearchive.Archive) {
	t.Helper()
	s, err := filestore.OpenToCopy(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	a, err := filearchive.OpenToRead(filepath.Join(dir, "archive"), s.Cluster().ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(a.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, a
}

func makeCluster() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "transfer-"); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s, err := filestore.Open(dir, filestore.Config{Shards: 2}, filejournal.Options{})
	if err != nil {
		return dir, err
	}
	a, err := filearchive.Open(filepath.Join(dir, "archive"), s.Cluster().ID)
	if err == nil {
		err = errors.Join(serve(ctx, s, a), a.Close())
	}
	return dir, errors.Join(err, s.Close())
}

// serve runs a node until all tasks have ended and each shard is trimmed.
func serve(ctx context.Context, s *filestore.Store, a *filearchive.Archive) error {
	bus := membus.New()
	n, err := engine.NewNode(engine.NodeConfig{
		Store:     s,
		Archive:   a,
		Bus:       bus,
		Name:      "n",
		Behaviors: []task.Behavior{builtin.Noop()},
		Log:       slog.New(slog.DiscardHandler),
		Slots:     16,
	})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- n.Run(run) }()
	err = runTasks(ctx, n)
	for trimmed := false; !trimmed && err == nil; { // until each shard is trimmed
		trimmed = true
		for shard := range s.Cluster().Shards {
			first, failed := s.First(ctx, shard)
			trimmed, err = trimmed && first > 1, errors.Join(err, failed)
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	return errors.Join(err, <-ended, bus.Close())
}

func taskID(i int) events.TaskID { return events.TaskID(fmt.Sprint("task-", i)) }

func runTasks(ctx context.Context, n *engine.Node) error {
	params := []byte(`{"bulk":"` + strings.Repeat("x", 60<<10) + `"}`)
	errs := make(chan error, 8)
	for w := range cap(errs) {
		go func() {
			var err error
			for i := w; i < tasks && err == nil; i += cap(errs) {
				var f *engine.Future
				if f, err = n.Submit(ctx, builtin.Noop(), params, task.SubmitOptions{ID: taskID(i)}); err == nil {
					_, err = f.Wait(ctx)
				}
			}
			errs <- err
		}()
	}
	var all []error
	for range cap(errs) {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// place is a target in memory.
type place struct {
	journal *memjournal.Journal
	archive *memarchive.Archive
}

func newPlace() *place { return &place{new(memjournal.Journal), memarchive.New()} }

func (p *place) receiver(t *testing.T, c store.Cluster) *filestore.Receiver {
	t.Helper()
	r, err := filestore.ReceiveIn(p.journal, c, "a test")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// open opens the store that was copied there.
func (p *place) open() (*filestore.Store, error) { return filestore.New(p.journal, filestore.Config{}) }

// exports returns what is exported of every shard, and of every task; outside of a proof of a few.
func exports(t *testing.T, s transfer.Source, a store.ArchiveReader) map[string][]byte {
	t.Helper()
	l := ledger.New(ledger.Config{
		Cluster:   s.Cluster(),
		Journal:   s,
		Snapshots: s,
		Archive:   a,
		Archived:  true,
	})
	all := map[string][]byte{}
	export := func(what string, write func(io.Writer) error) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatalf("export %s: %v", what, err)
		}
		all[what] = b.Bytes()
	}
	for _, i := range testkit.Some(slices.Collect(some(tasks)), 20) {
		export(string(taskID(i)), func(w io.Writer) error { return l.ExportTask(t.Context(), taskID(i), w, nil) })
	}
	for shard := range s.Cluster().Shards {
		export(fmt.Sprint("shard ", shard), func(w io.Writer) error { return l.ExportShard(t.Context(), shard, w, nil) })
	}
	return all
}

func some(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// wantSame asserts that two stores hold the same entries with the same revisions, in journal and archive.
func wantSame(t *testing.T, a, b transfer.Source, archiveA, archiveB store.ArchiveReader) {
	t.Helper()
	for shard := range a.Cluster().Shards {
		first, err := a.First(t.Context(), shard)
		if err != nil {
			t.Fatal(err)
		}
		wantSameRecords(t, fmt.Sprint("journal ", shard), a.Read(t.Context(), shard, first), b.Read(t.Context(), shard, first))
		if archiveA != nil {
			wantSameRecords(t, fmt.Sprint("archive ", shard), archiveA.ReadArchive(t.Context(), shard, 1), archiveB.ReadArchive(t.Context(), shard, 1))
		}
	}
}

func wantSameRecords(t *testing.T, what string, a, b iter.Seq2[store.Record, error]) {
	t.Helper()
	next, stop := iter.Pull2(b)
	defer stop()
	n := 0
	for want, err := range a {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got, err, ok := next()
		if err != nil || !ok || got.Head != want.Head || !bytes.Equal(got.Data, want.Data) {
			t.Fatalf("%s: entry %+v, %v, want %+v", what, got.Head, err, want.Head)
		}
		n++
	}
	if _, _, more := next(); more || n == 0 {
		t.Errorf("%s: %d entries, and more: %v", what, n, more)
	}
}
