package syncfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/syncfile"
	"taskledger/collections"
	"taskledger/collections/apply"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/taskstore/taskstoretest/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster has schedules that one asks for at a time.
type cluster struct {
	mu   sync.Mutex
	all  map[string]schedule.Schedule
	last schedule.Version
	away int // so many times nobody tells which nodes there are
}

func (c *cluster) SetWith(
	_ context.Context, name string, d schedule.Definition, _ schedule.Setting,
) (schedule.Version, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.all[name] = schedule.Schedule{Name: name, Definition: d, Version: c.last}
	return c.last, true, nil
}

func (c *cluster) Get(_ context.Context, name string) (schedule.Schedule, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, there := c.all[name]
	if !there {
		return s, schedule.ErrNotFound
	}
	return s, nil
}

func (c *cluster) List(context.Context, schedule.Filter, string, int) ([]schedule.Schedule, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.all)), false, nil
}

func (c *cluster) Delete(_ context.Context, name string, _ schedule.Version) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, name)
	return nil
}

func (c *cluster) Nodes(context.Context) ([]store.NodeInfo, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away > 0 {
		c.away--
		return nil, store.ErrUnavailable
	}
	return []store.NodeInfo{{ID: "a-1", Name: "a", Slots: 1, Behaviors: []string{collections.Behavior}}}, nil
}

func (c *cluster) Ask(context.Context, string, string, []byte) ([]byte, error) {
	return []byte("[]"), nil
}

func (c *cluster) names() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(c.all)), " ")
}

// keeping is a node with a file of collections.
type keeping struct {
	*testing.T
	cluster
	stores *model.Cluster
	path   string
	again  chan os.Signal
	minute chan time.Time
	lines  chan string // of the log
}

// Write takes a line of the log.
func (k *keeping) Write(line []byte) (int, error) {
	k.lines <- string(bytes.TrimSpace(line))
	return len(line), nil
}

func newKeeping(t *testing.T) *keeping {
	return &keeping{
		T:       t,
		cluster: cluster{all: map[string]schedule.Schedule{}},
		stores:  model.New(rand.New(rand.NewPCG(1, 2))),
		path:    filepath.Join(t.TempDir(), "sync.yaml"),
		again:   make(chan os.Signal),
		minute:  make(chan time.Time),
		lines:   make(chan string, 100),
	}
}

// write writes a file of collections of the source s.
func (k *keeping) write(names ...string) {
	k.Helper()
	text := "sources: {s: {driver: noop, collections: ["
	for _, name := range names {
		text += fmt.Sprintf("{name: %s}, ", name)
	}
	k.raw(text + "]}}")
}

func (k *keeping) raw(text string) {
	k.Helper()
	if err := os.WriteFile(k.path, []byte(text), 0o600); err != nil {
		k.Fatal(err)
	}
}

// start reads the file, and keeps the cluster so until the test ends.
func (k *keeping) start() (stop func()) {
	k.Helper()
	file, warnings, err := syncfile.Read(k.Context(), k.path)
	if err != nil {
		k.Fatal(err)
	}
	applier := &syncfile.Applier{
		Path:     k.path,
		Applier:  &apply.Applier{Schedules: &k.cluster, Nodes: &k.cluster, Stores: k.stores, By: "node a"},
		File:     file,
		Warnings: warnings,
		Again:    k.again,
		Log:      slog.New(slog.NewTextHandler(k, nil)),
		After:    func(time.Duration) <-chan time.Time { return k.minute },
	}
	ctx, cancel := context.WithCancel(k.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		applier.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	k.Cleanup(stop)
	return stop
}

// says waits for the next line of the log, which must have all words.
func (k *keeping) says(words ...string) {
	k.Helper()
	line := <-k.lines
	for _, word := range words {
		if !strings.Contains(line, word) {
			k.Errorf("%s: no %q", line, word)
		}
	}
}

func (k *keeping) has(names string) {
	k.Helper()
	if got := k.names(); got != names {
		k.Errorf("collections %q, want %q", got, names)
	}
}

func TestApplier_AppliesAFileAtStartAndAtAHangUp(t *testing.T) {
	k := newKeeping(t)
	k.write("a", "b")
	k.start()
	k.says("INFO", "was applied", "added=2")
	k.has("s_a s_b")
	k.write("b", "c")
	k.again <- syscall.SIGHUP
	k.says("INFO", "was applied", "added=1", "removed=1")
	k.has("s_b s_c")
	k.again <- syscall.SIGHUP
	k.says("INFO", "applied last")
	k.raw("sources: [\n")
	k.again <- syscall.SIGHUP
	k.says("ERROR", "what was stays", "sync.yaml:2:1")
	k.has("s_b s_c")
}

// Whoever takes a file back, and has it read again, is told by which command it is applied.
func TestApplier_AFileThatIsTakenBackAndReadAgainNamesTheCommandThatAppliesIt(t *testing.T) {
	k := newKeeping(t)
	k.write("a")
	k.start()
	k.says("INFO", "was applied", "added=1")
	k.write("a", "b")
	k.again <- syscall.SIGHUP
	k.says("INFO", "was applied")
	k.write("a")
	k.again <- syscall.SIGHUP
	k.says("WARN", "turns nothing back; sync apply FILE does", k.path)
	k.has("s_a s_b")
}

// What an operator has changed by hand since is not turned back by a start.
func TestApplier_TheNewestFileIsNotCompared(t *testing.T) {
	k := newKeeping(t)
	k.write("a", "b")
	stop := k.start()
	k.says("INFO", "was applied", "added=2")
	stop()
	if err := k.Delete(t.Context(), "s_a", 0); err != nil {
		t.Fatal(err)
	}
	k.start()
	k.says("INFO", "applied last: nothing is compared")
	k.again <- syscall.SIGHUP
	k.says("INFO", "applied last: nothing is compared")
	k.has("s_b")
}

// A node that comes back with a file of last week says so, and turns nothing back.
func TestApplier_AnOlderFileTurnsNothingBack(t *testing.T) {
	k := newKeeping(t)
	k.write("a")
	stop := k.start()
	k.says("INFO", "was applied", "added=1")
	k.write("b")
	k.again <- syscall.SIGHUP
	k.says("WARN", "none of the collections that are there: the only one is removed")
	k.says("INFO", "was applied")
	stop()
	k.write("a")
	stop = k.start()
	k.says("WARN", "turns nothing back; sync apply FILE does", "applied=", "newest=", "newest_file=sync.yaml",
		"newest_by=")
	k.has("s_b")
	stop()
	k.write("b")
	k.start()
	k.says("INFO", "applied last")
}

func TestApplier_TriesAgainEveryMinuteAndComplainsOnce(t *testing.T) {
	k := newKeeping(t)
	k.away = 3
	k.write("a")
	k.start()
	k.says("ERROR", "tried again every minute")
	for range 3 {
		k.minute <- time.Time{}
	}
	k.says("INFO", "was applied", "added=1")
	k.has("s_a")
}

func TestApplier_WarnsOfWhatTheFileIsTakenInSpiteOf(t *testing.T) {
	k := newKeeping(t)
	k.raw("sources: {s: {collections: [{name: a}]}}")
	k.start()
	k.says("WARN", "runs do nothing")
	k.says("INFO", "was applied")
}

func TestApplier_WarnsOfAFileThatRemovesAll(t *testing.T) {
	k := newKeeping(t)
	k.write("a", "b")
	k.start()
	k.says("INFO", "was applied", "added=2")
	k.raw("sources: {}")
	k.again <- syscall.SIGHUP
	k.says("WARN", "no collections: all 2 are removed")
	k.says("INFO", "was applied", "removed=2")
}

func TestRead_RefusesABadFileAsWrongUsage(t *testing.T) {
	k := newKeeping(t)
	k.raw("sources: {s: {}}")
	for path, want := range map[string]string{
		k.path:       "--sync: " + k.path + ":1:14: sources.s.collections: missing",
		k.path + "x": "no such file",
		"-":          "want a file",
	} {
		_, _, err := syncfile.Read(t.Context(), path)
		if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	k.raw("# " + strings.Repeat("x", collections.MaxBytes))
	if _, _, err := syncfile.Read(t.Context(), k.path); exitcode.Of(err) != exitcode.Usage {
		t.Error(errors.Unwrap(err), err)
	}
}
