package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/connect"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// bulk is parameters of 60 KiB: of 300 tasks with them a journal is long enough for two snapshots, and is trimmed.
var bulk = []byte(`{"bulk":"` + strings.Repeat("x", 60<<10) + `"}`)

const bulkTasks = 320

// caller is a client of the node that runs on the default directory in dir, in the process of the test.
func caller(t *testing.T, dir string) (c *engine.Client, stop func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	link, err := connect.In(t.Context(), filepath.Join(dir, "taskledger-data"), connect.Addresses{Existing: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return callerOver(t, link)
}

// callerOver is a client over a link, which it closes.
func callerOver(t *testing.T, link *connect.Link) (c *engine.Client, stop func()) {
	t.Helper()
	c, err := engine.NewClient(engine.ClientConfig{Store: link.Store, Bus: link.Bus, Archive: link.Archive})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		end()
		<-ended
		_ = link.Close()
	})
	t.Cleanup(stop)
	return c, stop
}

// load runs tasks of bulky parameters, of ids that begin alike, until n have ended or ctx has. It returns the ids of
// those whose submit was acknowledged.
func load(ctx context.Context, c *engine.Client, prefix string, n int) (acknowledged []events.TaskID, failed error) {
	var mu sync.Mutex
	var next atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n) && ctx.Err() == nil; i = next.Add(1) {
				f, err := c.Submit(ctx, builtin.Noop(), bulk, task.SubmitOptions{ID: events.TaskID(prefix + strconv.FormatInt(i, 10))})
				if err == nil {
					mu.Lock()
					acknowledged = append(acknowledged, f.ID())
					mu.Unlock()
					_, err = f.Wait(ctx)
				}
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	return acknowledged, failed
}

// mustLoad is load of which every task succeeds.
func mustLoad(t *testing.T, dir, prefix string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*timeout)
	defer cancel()
	c, stop := caller(t, dir)
	defer stop()
	if got, err := load(ctx, c, prefix, n); err != nil || len(got) != n {
		t.Fatalf("%d of %d tasks were acknowledged, %v", len(got), n, err)
	}
}

// mustLoadAt is mustLoad by a client of servers at addresses.
func mustLoadAt(t *testing.T, etcd, nats string) {
	t.Helper()
	link, err := connect.At(t.Context(), connect.Addresses{Etcd: []string{etcd}, NATS: []string{nats}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c, stop := callerOver(t, link)
	defer stop()
	ctx, cancel := context.WithTimeout(t.Context(), 3*timeout)
	defer cancel()
	if _, err := load(ctx, c, "bulk-", bulkTasks); err != nil {
		t.Fatal(err)
	}
}

// shard holds the row of shard 0 in the output of the command shards.
type shard struct {
	Entries, First, Snapshot, Archived uint64
	Degraded                           string
}

func shardOf(t *testing.T, dir string, access ...string) (s shard) {
	t.Helper()
	line, _, _ := strings.Cut(must(t, dir, append([]string{"shards", "-o", "json"}, access...)...), "\n")
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return s
}

// trimmed waits until the journal of shard 0 begins after an entry, and returns where it does.
func trimmed(t *testing.T, dir string, after uint64) (s shard) {
	t.Helper()
	eventually(t, fmt.Sprintf("the journal begins after entry %d", after), func() bool {
		s = shardOf(t, dir)
		return s.First > after
	})
	return s
}

// wantClean asserts that verification finds nothing, in entries from the first to at least the last given.
func wantClean(t *testing.T, dir string, last uint64, args ...string) {
	t.Helper()
	for _, v := range objects(t, must(t, dir, append([]string{"verify", "-o", "json"}, args...)...)) {
		if v["problem"] != nil || v["from"] != 1.0 || v["entries"].(float64) < float64(last) {
			t.Errorf("verified %v, want entries from 1 to %d and no problem", v, last)
		}
	}
}

func TestArchive_TakesWhatSnapshotsCoverAndNothingIsForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--shards", "1", "--ttl", "3s")
	must(t, dir, "submit", "noop", "--id", "first", "--wait")
	must(t, dir, "delete", "first")
	mustLoad(t, dir, "bulk-", bulkTasks)
	s := trimmed(t, dir, 1)
	if s.Archived < s.First-1 || s.Snapshot < s.First || s.Degraded != "" {
		t.Errorf("shard %+v: what is not in the journal is in the archive, and before the snapshot", s)
	}
	var head, text string
	eventually(t, "the table shows the same, while the journal is being trimmed on", func() bool {
		s = shardOf(t, dir)
		head, text, _ = strings.Cut(must(t, dir, "shards"), "\n")
		return strings.Contains(strings.Join(strings.Fields(text), " "), fmt.Sprint(s.First, " ", s.Snapshot, " ", s.Archived))
	})
	if want := []string{"ENTRIES", "FIRST", "SNAPSHOT", "ARCHIVED"}; !strings.Contains(strings.Join(strings.Fields(head), " "), strings.Join(want, " ")) {
		t.Errorf("columns %s, want %s among them", head, want)
	}
	whole := func() {
		wantClean(t, dir, s.Entries, "--with-archive")
		history := must(t, dir, "history", "first")
		for _, kind := range []string{"Created", "Started", "Succeeded", "Deleted"} {
			if !strings.Contains(history, kind) {
				t.Errorf("history of what was deleted and trimmed lacks %s: %s", kind, history)
			}
		}
		if got := replayed(t, dir); got["Created"] != bulkTasks+1 || got["Succeeded"] != bulkTasks+1 || got["Deleted"] != 1 {
			t.Errorf("replayed %v", got)
		}
	}
	whole()
	n.stop(t)
	serve(t, dir, "--ttl", "3s")
	whole()
	mustLoad(t, dir, "more-", bulkTasks)
	wantClean(t, dir, trimmed(t, dir, s.First).Entries, "--with-archive")
}

// replayed counts the events of the whole ledger by their kind. The first is the ledger's first.
func replayed(t *testing.T, dir string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for line := range strings.Lines(must(t, dir, "replay")) {
		var e struct{ Position, Kind string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%.100s: %v", line, err)
		}
		if len(count) == 0 && e.Position != "0.1.0" {
			t.Errorf("replay begins at %s", e.Position)
		}
		count[e.Kind]++
	}
	return count
}

func TestArchive_NodeKilledWhileItArchivesLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var acknowledged []events.TaskID
	var first uint64
	n := serve(t, dir, "--shards", "1", "--ttl", "3s")
	for life := range 3 {
		c, stop := caller(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		loaded := make(chan []events.TaskID)
		go func() {
			got, _ := load(ctx, c, fmt.Sprint("life-", life, "-"), 10*bulkTasks)
			loaded <- got
		}()
		first = trimmed(t, dir, first).First
		n.signal(syscall.SIGKILL)
		n.wait(t)
		cancel()
		acknowledged = append(acknowledged, <-loaded...)
		stop()
		n = serve(t, dir, "--ttl", "3s")
	}
	c, _ := caller(t, dir)
	for _, id := range acknowledged {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		if _, err := c.Attach(id).Wait(ctx); err != nil {
			t.Errorf("acknowledged task %s: %v", id, err)
		}
		cancel()
	}
	wantClean(t, dir, shardOf(t, dir).Entries, "--with-archive")
	if got := replayed(t, dir); got["Created"] < len(acknowledged) || got["Succeeded"] != got["Created"] {
		t.Errorf("%d tasks were acknowledged, replayed %v", len(acknowledged), got)
	}
}

func TestArchive_KeepKeepsTheJournalAndDropForgets(t *testing.T) {
	t.Parallel()
	t.Run("keep", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		serve(t, dir, "--shards", "1", "--archive", "keep")
		mustLoad(t, dir, "bulk-", bulkTasks)
		eventually(t, "a snapshot", func() bool { return shardOf(t, dir).Snapshot > 0 })
		wantClean(t, dir, 1)
		s := shardOf(t, dir)
		if got := replayed(t, dir)["Succeeded"]; got != bulkTasks || s.First > 1 || s.Archived != 0 || s.Degraded != "" {
			t.Errorf("%d successes, shard %+v", got, s)
		}
	})
	t.Run("drop", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		n := serve(t, dir, "--shards", "1", "--archive", "drop", "--ttl", "3s")
		must(t, dir, "submit", "noop", "--id", "first", "--wait")
		mustLoad(t, dir, "bulk-", bulkTasks)
		s := trimmed(t, dir, 1)
		if s.Archived != 0 || s.Degraded != "" {
			t.Errorf("shard %+v", s)
		}
		for _, args := range [][]string{{"history", "first", "-o", "json"}, {"state", "first", "--seq", "1"}, {"export", "--task", "first"}} {
			if r := run(t, dir, args...); r.code != 6 || r.out != "" || strings.Count(r.err, "\n") != 1 {
				t.Errorf("%q of what was dropped: %+v", args, r)
			}
		}
		for _, args := range [][]string{{"replay"}, {"replay", "--record", "settings"}, {"replay", "--since", "2026-01-01T00:00:00Z"}} {
			if r := run(t, dir, args...); r.code != 6 || r.out != "" || !strings.Contains(r.err, "dropped; begin at ") {
				t.Errorf("%q of what was dropped: %+v", args, r)
			}
		}
		eventually(t, "a replay from the time that is named", func() bool { // entries are dropped on meanwhile
			_, since, _ := strings.Cut(run(t, dir, "replay").err, "begin at ")
			since, _, _ = strings.Cut(since, " or later")
			return run(t, dir, "replay", "--since", since).code == 0
		})
		if got := field(t, dir, "first", "status"); got != "SUCCESS" {
			t.Errorf("status %v of a task whose history was dropped", got)
		}
		n.signal(syscall.SIGKILL)
		n.wait(t)
		serve(t, dir, "--archive", "drop")
		for _, v := range objects(t, must(t, dir, "verify", "-o", "json")) {
			if v["problem"] != nil || v["from"].(float64) < float64(s.First) {
				t.Errorf("verified %v, want what is left to be clean", v)
			}
		}
		if got := objects(t, must(t, dir, "list", "--status", "SUCCESS", "--limit", "1000", "-o", "json")); len(got) != bulkTasks+1 {
			t.Errorf("%d tasks of before are known, want %d", len(got), bulkTasks+1)
		}
	})
}

func TestArchive_WithoutJetStreamIsRefusedOrSaidOpenly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	etcd, _ := testcluster.StartEtcd(t)
	plain, able := testcluster.StartNATS(t), testcluster.StartJetStream(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--archive jetstream: there is no NATS", []string{"--etcd", etcd, "--archive", "jetstream"}},
		{"--archive elsewhere: want jetstream, files, keep or drop", []string{"--etcd", etcd, "--archive", "elsewhere"}},
		{"--archive elsewhere: want jetstream, files, keep or drop", []string{"--archive", "elsewhere"}},
		{"--archive-replicas: 9, want 1 to 5", []string{"--etcd", etcd, "--nats", able.URL, "--archive-replicas", "9"}},
	} {
		r := run(t, dir, append([]string{"serve"}, c.args...)...)
		if r.code != 2 || r.out != "" || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, c.want) {
			t.Errorf("%q: %+v, want %q", c.args, r, c.want)
		}
	}
	for name, c := range map[string]struct {
		args []string
		said string // on standard error; "" = nothing
	}{
		"no NATS":                   {nil, "no NATS"},
		"NATS without JetStream":    {[]string{"--nats", plain.URL}, "nats-server -js"},
		"NATS that is away":         {[]string{"--nats", "nats://127.0.0.1:1"}, "until there is an archive"},
		"keep, without JetStream":   {[]string{"--nats", plain.URL, "--archive", "keep"}, ""},
		"drop, without NATS":        {[]string{"--archive", "drop"}, ""},
		"NATS with JetStream":       {[]string{"--nats", able.URL}, ""},
		"JetStream, without saying": {[]string{"--nats", able.URL, "--archive", "jetstream"}, ""},
	} {
		n := serve(t, dir, append([]string{"--etcd", etcd, "--ttl", "3s"}, c.args...)...)
		n.stop(t)
		said := slices.DeleteFunc(strings.Split(n.stderr.String(), "\n"), func(line string) bool { return !strings.Contains(line, "grows") })
		if c.said == "" && len(said) > 0 || c.said != "" && (len(said) != 1 || !strings.Contains(said[0], c.said) || !strings.Contains(said[0], "--archive keep or drop")) {
			t.Errorf("%s: said %q, want one line with %q", name, said, c.said)
		}
	}
}

// A node may be started before its NATS has JetStream to offer: it says so, and archives as soon as it can.
func TestArchive_BeginsWhenNATSHasJetStream(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	etcd, _ := testcluster.StartEtcd(t)
	nats := testcluster.StartNATS(t)
	access := []string{"--etcd", etcd, "--nats", nats.URL}
	n := serve(t, dir, append([]string{"--shards", "1", "--ttl", "3s", "--archive-settle", "0s"}, access...)...)
	mustLoadAt(t, etcd, nats.URL)
	eventually(t, "the shard says that it is not trimmed, and why", func() bool {
		s := shardOf(t, dir, access...)
		return s.First <= 1 && strings.Contains(s.Degraded, "not trimmed") && strings.Contains(s.Degraded, "nats-server -js")
	})
	nats.Stop()
	nats.Store = t.TempDir()
	nats.Start()
	var s shard
	eventually(t, "a trimmed journal", func() bool {
		s = shardOf(t, dir, access...)
		return s.First > 1
	})
	if s.Archived < s.First-1 || s.Degraded != "" {
		t.Errorf("shard %+v, want what is not in the journal in the archive", s)
	}
	must(t, dir, append([]string{"verify", "--with-archive"}, access...)...)
	n.stop(t)
	if said, _, _ := strings.Cut(n.stderr.String(), "\n"); !strings.Contains(said, "until there is an archive") {
		t.Errorf("at its start the node says %q", said)
	}
}

// wantDamage asserts that verification finds the damage, in shard 0, and names it in words.
func wantDamage(t *testing.T, what, dir string, args []string, kinds ...string) {
	t.Helper()
	r := run(t, dir, append([]string{"verify", "--with-archive", "-o", "json"}, args...)...)
	first, _, _ := strings.Cut(r.out, "\n")
	var v struct {
		Shard    int
		Damage   string
		DamageAt uint64 `json:"damage_at"`
		Problem  string
	}
	if err := json.Unmarshal([]byte(first), &v); err != nil || r.code != 1 {
		t.Errorf("%s: code %d: %s%s", what, r.code, r.out, r.err)
		return
	}
	if v.Shard != 0 || !slices.Contains(kinds, v.Damage) || v.DamageAt == 0 || !strings.Contains(v.Problem, fmt.Sprintf("entry %d: %s", v.DamageAt, v.Damage)) {
		t.Errorf("%s: verified %s, want %v", what, first, kinds)
	}
	if table := run(t, dir, append([]string{"verify", "--with-archive"}, args...)...); table.code != 1 || !strings.Contains(table.out, v.Problem[:20]) {
		t.Errorf("%s: code %d: %s", what, table.code, table.out)
	}
}

func TestVerify_NamesShardEntryAndKindOfDamageInEtcd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	endpoint, etcd := testcluster.StartEtcd(t)
	access := []string{"--etcd", endpoint, "--nats", testcluster.StartJetStream(t).URL}
	serve(t, dir, append([]string{"--shards", "1", "--ttl", "3s"}, access...)...)
	for i := range 4 {
		must(t, dir, append([]string{"submit", "noop", "--wait", "--id", fmt.Sprint("task-", i)}, access...)...)
	}
	const first, second = "taskledger/journal/0/0000000000000002", "taskledger/journal/0/0000000000000003"
	value := func(key string) string {
		resp, err := etcd.Get(t.Context(), key)
		if err != nil || len(resp.Kvs) != 1 {
			t.Fatalf("%s: %v", key, err)
		}
		return string(resp.Kvs[0].Value)
	}
	put := func(key, value string) {
		var err error
		if value == "" {
			_, err = etcd.Delete(t.Context(), key)
		} else {
			_, err = etcd.Put(t.Context(), key, value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	two, three := value(first), value(second)
	flipped := []byte(two)
	flipped[len(two)/2] ^= 1
	for _, c := range []struct{ name, two, three, kind string }{ // what stands in the place of the entries 2 and 3
		{"flipped", string(flipped), three, "garbled"},
		{"cut short", two[:len(two)-1], three, "garbled"},
		{"removed", "", three, "missing entry"},
		{"swapped", three, two, "out of order"},
	} {
		put(first, c.two)
		put(second, c.three)
		wantDamage(t, c.name, dir, access, c.kind)
	}
	put(first, two)
	put(second, three)
	wantClean(t, dir, 4, append([]string{"--with-archive"}, access...)...)
}

func TestVerify_NamesShardEntryAndKindOfDamageInTheFilesOfTheArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--shards", "1", "--ttl", "3s")
	mustLoad(t, dir, "bulk-", bulkTasks)
	trimmed(t, dir, 1)
	n.stop(t)
	blocks, err := filepath.Glob(filepath.Join(dir, "taskledger-data/nats/jetstream/*/streams/*/msgs/*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("blocks of the stream: %v, %v", blocks, err)
	}
	block, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	block[len(block)/2] ^= 1
	if err := os.WriteFile(blocks[0], block, 0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, "--ttl", "3s")
	wantDamage(t, "flipped", dir, nil, "garbled", "missing entry")
	must(t, dir, "submit", "noop", "--wait")
}

func TestVerify_WhileTheArchiveIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	endpoint, _ := testcluster.StartEtcd(t)
	nats := testcluster.StartJetStream(t)
	access := []string{"--etcd", endpoint, "--nats", nats.URL}
	serve(t, dir, append([]string{"--shards", "1", "--ttl", "3s"}, access...)...)
	must(t, dir, append([]string{"submit", "noop", "--wait"}, access...)...)
	nats.Stop()
	if r := run(t, dir, append([]string{"verify", "--with-archive"}, access...)...); r.code != 4 || !strings.Contains(r.err, "no answer from NATS") {
		t.Errorf("%+v", r)
	}
	must(t, dir, append([]string{"verify"}, access...)...)
}

// Somebody who may write everything, in etcd and in NATS, makes another history whose chain is as it has to be, as if
// no snapshot had been taken. Only who kept a signed checkpoint can tell.
func TestVerify_AForgedArchiveDiffersFromASignedCheckpoint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	endpoint, etcd := testcluster.StartEtcd(t)
	nats := testcluster.StartJetStream(t)
	access := []string{"--etcd", endpoint, "--nats", nats.URL}
	n := serve(t, dir, append([]string{"--shards", "1", "--ttl", "3s", "--archive-settle", "0s"}, access...)...)
	mustLoadAt(t, endpoint, nats.URL)
	eventually(t, "a trimmed journal", func() bool { return shardOf(t, dir, access...).First > 1 })
	key, kept := filepath.Join(dir, "key"), filepath.Join(dir, "kept")
	trusted := must(t, dir, "checkpoint", "new-key", key)
	signed := must(t, dir, append([]string{"checkpoint", "--signing-key", key}, access...)...)
	if err := os.WriteFile(kept, []byte(signed+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.stop(t)
	against := append([]string{"verify", "--with-archive", "--checkpoint", kept, "--trust", trusted}, access...)
	must(t, dir, against...)
	in := nats.Stream()
	segments := in.Segments()
	in.Shorten()
	n = serve(t, dir, append([]string{"--ttl", "3s"}, access...)...)
	eventually(t, "the node tells that the stream was shortened by its settings", func() bool {
		return strings.Contains(shardOf(t, dir, access...).Degraded, "it removes messages after 1s")
	})
	unarchived := append([]string{"verify", "--checkpoint", kept, "--trust", trusted}, access...)
	if r := run(t, dir, unarchived...); r.code != 1 || !strings.Contains(r.out, "missing entry") {
		t.Errorf("of a stream that was shortened by its settings, against the checkpoint: %+v", r)
	}
	n.stop(t)

	prev := events.Hash{}
	last := uint64(0)
	forge := func(data []byte) []byte {
		e, err := events.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		last, e.Prev = e.Number, prev
		for i := range e.Events {
			if done, ok := e.Events[i].Body.(*events.Succeeded); ok {
				done.Result = events.JSON([]byte("1000000"))
			}
		}
		data = testcluster.Sealed(t, e)
		prev = e.Hash
		return data
	}
	forged := map[uint64][]byte{}
	for i := range segments {
		segments[i] = in.Edited(segments[i], func(all []store.Record) []store.Record {
			for j := range all {
				all[j].Data = forge(all[j].Data)
				forged[all[j].Number] = all[j].Data
			}
			return all
		})
	}
	in.Replace(segments)
	journal, err := etcd.Get(t.Context(), "taskledger/journal/0/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range journal.Kvs {
		number, err := strconv.ParseUint(filepath.Base(string(kv.Key)), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if forged[number] == nil {
			forged[number] = forge(kv.Value)
		}
	}
	for number, data := range forged {
		if _, err := etcd.Put(t.Context(), fmt.Sprintf("taskledger/journal/0/%016x", number), string(data)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := etcd.Delete(t.Context(), "taskledger/snapshot/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}

	must(t, dir, append([]string{"verify", "--with-archive"}, access...)...)
	if r := run(t, dir, against...); r.code != 1 || !strings.Contains(r.out, fmt.Sprintf("entry %d: differs from history", last)) {
		t.Errorf("against the checkpoint: %+v", r)
	}
}
