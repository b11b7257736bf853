package local_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine/local"
	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/journal"
	"taskledger/internal/testkit"
	"taskledger/item"
	"taskledger/ledger"
	"taskledger/taskstore"
)

// store opens a task store of a node.
func store(t *testing.T, n *local.Node) *taskstore.Store {
	t.Helper()
	s, err := taskstore.Open(n.Stores(), "default", taskstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t *testing.T, s *taskstore.Store, n int) []item.Item {
	t.Helper()
	var u item.Update
	for i := range n {
		u.Adds = append(u.Adds, item.Add{Group: "group", Data: fmt.Append(nil, i)})
	}
	made, err := s.Update(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func count(t *testing.T, s *taskstore.Store) (n int) {
	t.Helper()
	for _, err := range s.Group(t.Context(), "group", taskstore.List{Owned: true}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func closed(t *testing.T, n *local.Node) {
	t.Helper()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
}

func durabilities() []filejournal.Durability {
	return []filejournal.Durability{filejournal.Strict, filejournal.Opportunistic}
}

func on(dir string, d filejournal.Durability) local.Config {
	return local.Config{Dir: dir, Files: filejournal.Options{Durability: d}}
}

func TestFiles_AfterFiveAddsAndAReopeningTheNextIDIsSix(t *testing.T) {
	for _, d := range durabilities() {
		dir := t.TempDir()
		n := start(t, on(dir, d))
		made := add(t, store(t, n), 5)
		closed(t, n)
		n = start(t, on(dir, d))
		next := add(t, store(t, n), 1)[0].ID
		if first := made[0].ID; next != first+5 || made[4].ID != first+4 {
			t.Errorf("%s: the first id is %d, and the sixth %d", d, first, next)
		}
		if got := count(t, store(t, n)); got != 6 {
			t.Errorf("%s: %d items are there, want 6", d, got)
		}
	}
}

func TestFiles_AThousandItemsAreThereAfterASnapshotAndAReopening(t *testing.T) {
	for _, d := range durabilities() {
		dir := t.TempDir()
		open := func() (*local.Node, *snapshotted) {
			j, err := filejournal.Open(dir, filejournal.Options{Durability: d})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = j.Close() })
			s := &snapshotted{Journal: j, wrote: make(chan struct{}, 1)}
			small := filestore.Config{Quota: 64 << 20} // so that snapshots are due early
			return start(t, local.Config{Journal: s, Store: small}), s
		}
		n, j := open()
		s := store(t, n)
		for range 10 {
			add(t, s, 100)
		}
		fat(t, s)
		<-j.wrote
		closed(t, n)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		n, _ = open()
		if got := count(t, store(t, n)); got != 1000 {
			t.Errorf("%s: %d items are there, want 1,000", d, got)
		}
		if losses := verified(t, n); len(losses) > 0 {
			t.Errorf("%s: verify tells of the losses %q", d, losses)
		}
	}
}

// snapshotted is a journal that tells when a shard has a snapshot.
type snapshotted struct {
	*filejournal.Journal
	wrote chan struct{} // holds one then
}

func (s *snapshotted) WriteSnapshot(k journal.Key, value journal.Snapshot) error {
	err := s.Journal.WriteSnapshot(k, value)
	if err == nil && k.Shard != journal.Notes {
		select {
		case s.wrote <- struct{}{}:
		default:
		}
	}
	return err
}

// fat adds and removes items until the entries of the store's shard are due for a snapshot.
func fat(t *testing.T, s *taskstore.Store) {
	t.Helper()
	for range 8 {
		made, err := s.Update(t.Context(), item.Update{Adds: []item.Add{{Group: "fat", Data: make([]byte, 200<<10)}}})
		if err == nil {
			_, err = s.Update(t.Context(), item.Update{Deletes: []int64{made[0].ID}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// verified verifies all shards, and returns the reasons of the losses that it tells of.
func verified(t *testing.T, n *local.Node) (losses []string) {
	t.Helper()
	report, err := n.Ledger().Verify(t.Context(), ledger.VerifyOptions{})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	for _, v := range report {
		if v.Problem != "" || !v.Compared {
			t.Errorf("shard %d: compared %v, %s", v.Shard, v.Compared, v.Problem)
		}
		for _, l := range v.Losses {
			losses = append(losses, l.Reason)
		}
	}
	return losses
}

// The machine of a test may be busy: ten times a second bounds the four reopenings.
func TestFiles_ServeAgainAtOnceHoweverOftenTheyAreReopened(t *testing.T) {
	for _, d := range durabilities() {
		dir := t.TempDir()
		began := time.Now()
		for i := range 4 {
			n := start(t, on(dir, d))
			s := store(t, n)
			add(t, s, 1)
			if got := count(t, s); got != i+1 {
				t.Errorf("%s: %d items are there, want %d", d, got, i+1)
			}
			closed(t, n)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: four reopenings took %s, want a second, and ten at most", d, took)
		}
	}
}

func TestFiles_EightWritersLoseNothingInOpportunisticMode(t *testing.T) {
	n := start(t, on(t.TempDir(), filejournal.Opportunistic))
	s := store(t, n)
	var writing sync.WaitGroup
	var made atomic.Int64
	writes := func(n int) bool { return n < 100 }
	if end := time.Now().Add(10 * time.Second); testkit.Whole() {
		writes = func(int) bool { return time.Now().Before(end) }
	}
	for range 8 {
		writing.Go(func() {
			for n := 0; writes(n); n++ {
				if _, err := s.Update(t.Context(), item.Update{Adds: []item.Add{{Group: "group"}}}); err != nil {
					t.Error(err)
					return
				}
				made.Add(1)
			}
		})
	}
	writing.Wait()
	if got := count(t, s); int64(got) != made.Load() {
		t.Errorf("%d items are there, and %d were made", got, made.Load())
	}
	verified(t, n)
}

// image copies the files of a directory as a crash leaves them: a node runs on it.
func image(t *testing.T, dir string) string {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return copied
}

func lastSegment(t *testing.T, dir string) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "log-*"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("segments %v: %v", logs, err)
	}
	return slices.Max(logs)
}

func TestFiles_ATornTailIsCutAndWhatWasAnsweredIsThere(t *testing.T) {
	for _, d := range durabilities() {
		dir := t.TempDir()
		n := start(t, on(dir, d))
		add(t, store(t, n), 7)
		crashed := image(t, dir)
		tail, err := os.OpenFile(lastSegment(t, crashed), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tail.Write([]byte("1JLT a record that was being written"))
		if err := errors.Join(err, tail.Close()); err != nil {
			t.Fatal(err)
		}
		n = start(t, on(crashed, d))
		if got := count(t, store(t, n)); got != 7 {
			t.Errorf("%s: %d items are there, want 7", d, got)
		}
		verified(t, n)
	}
}

// otherBoot makes an image look as if the machine had been started since.
func otherBoot(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, "run")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var run map[string]any
	if err := json.Unmarshal(data, &run); err != nil {
		t.Fatal(err)
	}
	run["boot"] = "another"
	delete(run, "sum") // a file of before there was one
	if data, err = json.Marshal(run); err == nil {
		err = os.WriteFile(name, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpportunistic_AfterACrashOfTheMachineNoIDIsGivenTwiceAndVerifyTellsOfTheLoss(t *testing.T) {
	dir := t.TempDir()
	n := start(t, on(dir, filejournal.Opportunistic))
	s := store(t, n)
	add(t, s, 5)
	synced := image(t, dir)
	late := add(t, s, 5)
	otherBoot(t, synced)
	closed(t, n)
	n = start(t, on(synced, ""))
	s = store(t, n)
	next := add(t, s, 1)[0].ID
	if next <= late[4].ID {
		t.Errorf("id %d is given, and %d was given before", next, late[4].ID)
	}
	if got := count(t, s); got != 6 {
		t.Errorf("%d items are there, want 6", got)
	}
	closed(t, n)
	n = start(t, on(synced, ""))
	if got := add(t, store(t, n), 1)[0].ID; got != next+1 {
		t.Errorf("id %d follows id %d after a clean end", got, next)
	}
	losses := verified(t, n)
	if len(losses) == 0 || !strings.Contains(losses[0], "the machine stopped") {
		t.Errorf("verify tells of the losses %q", losses)
	}
}

func TestStrict_ACrashOfTheMachineLosesNothing(t *testing.T) {
	dir := t.TempDir()
	n := start(t, on(dir, filejournal.Strict))
	made := add(t, store(t, n), 5)
	crashed := image(t, dir)
	otherBoot(t, crashed)
	n = start(t, on(crashed, ""))
	if next := add(t, store(t, n), 1)[0].ID; next != made[4].ID+1 {
		t.Errorf("id %d follows id %d", next, made[4].ID)
	}
	if losses := verified(t, n); len(losses) > 0 {
		t.Errorf("verify tells of the losses %q", losses)
	}
}

func TestFiles_InUseAreRefusedByName(t *testing.T) {
	dir := t.TempDir()
	start(t, on(dir, ""))
	_, err := local.StartWith(t.Context(), on(dir, ""))
	if !errors.Is(err, filejournal.ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second node on the directory: %v", err)
	}
}
