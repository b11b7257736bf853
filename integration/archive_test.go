package integration_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/ledger"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/task"
)

// tight is a store that says that it is small: a tail of 1 MiB makes a snapshot due.
type tight struct{ store.Store }

func (tight) Usage(context.Context) (store.Usage, error) {
	return store.Usage{InUse: 1, Size: 1, Quota: 16 << 20, Revision: 1}, nil
}

// bulky is parameters of 32 KiB that begin with the name of the task, and hardly compress.
func bulky(name string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	random := rand.New(rand.NewPCG(h.Sum64(), 0))
	text := make([]byte, 16<<10)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	return name + " " + hex.EncodeToString(text)
}

// megabytes is a load of a few MiB a second, more than enough.
var megabytes = load{atOnce: 2, pause: 30 * time.Millisecond, params: bulky}

// bulkyTally is a tally of tasks with such parameters.
func bulkyTally() *tally {
	return defineTally(&behaviors.Rules[string, string]{TaskID: func(p string) events.TaskID {
		name, _, _ := strings.Cut(p, " ")
		return events.TaskID(name)
	}})
}

func archiveOf(t *testing.T, bus store.Bus) store.Archive {
	t.Helper()
	a, err := bus.(*natsbus.Bus).Archive(natsbus.ArchiveConfig{DurableAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// archives makes a node that archives what snapshots cover.
func archives(t *testing.T) func(*engine.NodeConfig) {
	return func(cfg *engine.NodeConfig) { cfg.Store, cfg.Archive = tight{cfg.Store}, archiveOf(t, cfg.Bus) }
}

// keeps makes a node that keeps the journal whole, drops one that forgets what snapshots cover.
func keeps(cfg *engine.NodeConfig) { cfg.Store = tight{cfg.Store} }
func drops(cfg *engine.NodeConfig) { cfg.Store, cfg.Trimming = tight{cfg.Store}, engine.TrimAll }

// archiveReader starts a client that reads the archive, too.
func archiveReader(t *testing.T, c *testcluster.Cluster) *testcluster.Client {
	t.Helper()
	return c.StartClient("reader", func(cfg *engine.ClientConfig) { cfg.Archive = archiveOf(t, cfg.Bus) })
}

func trimmedBeyond(entry uint64) func(engine.ShardInfo) bool {
	return func(s engine.ShardInfo) bool { return s.First > entry && s.Degraded == "" }
}

// wantWhole asserts that every entry there ever was is in the journal or the archive, and that all is as it has to be.
// While etcd does not answer in time, as on a machine whose disk is busy, it asks again; an archive that is away is a
// failure.
func wantWhole(t *testing.T, at *engine.Client) {
	t.Helper()
	var all []ledger.Verification
	testcluster.Await(t, "owners whose states are compared", func() bool {
		var err error
		all, err = at.Ledger().Verify(within(t, soon), ledger.VerifyOptions{Archive: true})
		if errors.Is(err, store.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded) {
			t.Log(err)
			return false
		}
		ok(t, err)
		return !slices.ContainsFunc(all, func(v ledger.Verification) bool { return v.Problem == "" && !v.Compared })
	})
	for _, v := range all {
		if v.Problem != "" || v.From != 1 {
			t.Errorf("shard %d from entry %d: %s", v.Shard, v.From, v.Problem)
		}
	}
}

func TestArchive_JetStreamStoppedAndStartedAgainWorkGoesOnAndNothingIsLost(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c := testcluster.New(t, testcluster.Options{JetStream: true, Shards: 1})
	l := bulkyTally()
	a := c.StartNode("a", archives(t), l.run())
	f := startFlowOf(t, l, megabytes, a)
	testcluster.AwaitShards(t, a.Client, "a trimmed journal", trimmedBeyond(1))
	c.NATS.Stop()
	wantAway(t, a.Client)
	before := testcluster.AwaitShards(t, a.Client, "a shard that says that it is not trimmed", func(s engine.ShardInfo) bool {
		return strings.Contains(s.Degraded, "not trimmed")
	})[0]
	f.await(t, 20)
	c.NATS.Start()
	testcluster.AwaitShards(t, a.Client, "a trimmed journal", trimmedBeyond(before.First))
	l.wantOnce(t, a.Client, f.end())
	wantWhole(t, a.Client)
}

// wantAway asserts that what is in an archive that is away does not count as gone.
func wantAway(t *testing.T, at *engine.Client) {
	t.Helper()
	if all, err := at.Ledger().Verify(within(t, soon), ledger.VerifyOptions{}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("verified %+v, %v; want ErrUnavailable", all, err)
	}
}

// NATS answers, and knows no JetStream: a server that is not up yet looks so, and like one that never kept anything.
func TestArchive_JetStreamThatIsNotUpIsNoEmptyArchive(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c := testcluster.New(t, testcluster.Options{JetStream: true, Shards: 1})
	l := bulkyTally()
	a := c.StartNode("a", archives(t), l.run())
	f := startFlowOf(t, l, megabytes, a)
	testcluster.AwaitShards(t, a.Client, "a trimmed journal", trimmedBeyond(10))
	l.wantOnce(t, a.Client, f.end())

	dir := c.NATS.Store
	restartNATS := func(dir string) {
		c.NATS.Stop()
		c.NATS.Store = dir
		c.NATS.Start()
	}
	restartNATS("")
	testcluster.Await(t, "NATS without JetStream", func() bool {
		_, err := a.Ledger().Verify(within(t, soon), ledger.VerifyOptions{})
		return errors.Is(err, store.ErrUnavailable) && errors.Is(err, natsbus.ErrNoJetStream)
	})
	const early = "task-0-0" // its parameters are in the archive alone
	ok(t, second(a.Operations().Retry(within(t, soon), early)))
	awaitListed(t, a.Client, early, "waits for its parameters", func(got task.Task) bool {
		if got.Status == task.Failure {
			t.Fatalf("the task has failed: %+v", got.Error)
		}
		return got.Status == task.Running && !got.OnNode()
	})
	restartNATS(dir)
	result, err := a.Attach(early).Wait(within(t, soon))
	if err != nil || !bytes.HasSuffix(result, []byte(` ran 2"`)) {
		t.Errorf("resolved with %.100s, %v", result, err)
	}
	wantWhole(t, a.Client)
}

// awaitListed polls a task as its owner holds it in memory, until it is as wanted.
func awaitListed(t *testing.T, at *engine.Client, id events.TaskID, what string, holds func(task.Task) bool) {
	t.Helper()
	testcluster.Await(t, "task "+string(id)+" "+what, func() bool {
		for task, err := range at.List(within(t, soon), task.Filter{Affinity: id.Affinity()}) {
			if err == nil && task.ID == id {
				return holds(task)
			}
		}
		return false
	})
}

func TestArchive_UnderLoadThatNeverEndsTheJournalIsTrimmed(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c := testcluster.New(t, testcluster.Options{JetStream: true, Shards: 1})
	l := bulkyTally()
	a := c.StartNode("a", archives(t), l.run())
	f := startFlowOf(t, l, load{atOnce: 8, params: bulky}, a)
	first := uint64(1)
	for range 3 {
		first = testcluster.AwaitShards(t, a.Client, "a trimmed journal", trimmedBeyond(first))[0].First
	}
	l.wantOnce(t, a.Client, f.end())
}

func TestArchive_FullJetStreamWorkGoesOnUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c := testcluster.New(t, testcluster.Options{JetStream: true, Shards: 1})
	c.NATS.Stop()
	c.NATS.MaxStore = 2 << 20
	c.NATS.Start()
	l := bulkyTally()
	a := c.StartNode("a", archives(t), l.run())
	f := startFlowOf(t, l, megabytes, a)
	full := testcluster.AwaitShards(t, a.Client, "a full archive", func(s engine.ShardInfo) bool {
		return strings.Contains(s.Degraded, "not trimmed") && strings.Contains(s.Degraded, store.ErrFull.Error())
	})[0]
	f.await(t, 100)
	if now, err := a.Operations().Shards(within(t, soon)); err != nil || now[0].Archived != full.Archived || now[0].First > full.Archived+1 {
		t.Errorf("%+v, %v: was %+v when the archive became full", now, err, full)
	}
	c.NATS.Stop()
	c.NATS.MaxStore = 0
	c.NATS.Start()
	testcluster.AwaitShards(t, a.Client, "a trimmed journal", trimmedBeyond(full.Archived))
	l.wantOnce(t, a.Client, f.end())
	wantWhole(t, a.Client)
}

func TestArchive_WithoutJetStreamTheJournalStaysWhole(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	l := bulkyTally()
	a := c.StartNode("a", archives(t), l.run())
	f := startFlowOf(t, l, megabytes, a)
	s := testcluster.AwaitShards(t, a.Client, "a shard that says what is missing", func(s engine.ShardInfo) bool {
		return strings.Contains(s.Degraded, "nats-server -js")
	})[0]
	f.await(t, 100)
	if s.First > 1 || s.Archived != 0 {
		t.Errorf("shard %+v, want a whole journal", s)
	}
	l.wantOnce(t, a.Client, f.end())
	wantWhole(t, a.Client)
}

func TestArchive_KeepAndDropNeedNoNATS(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]struct {
		configure func(*engine.NodeConfig)
		is        func(engine.ShardInfo) bool
		from      func(uint64) bool
	}{
		"keep": {keeps, func(s engine.ShardInfo) bool { return s.First <= 1 && s.Snapshot > 0 }, func(from uint64) bool { return from == 1 }},
		"drop": {drops, func(s engine.ShardInfo) bool { return s.First > 1 }, func(from uint64) bool { return from > 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.Busy(t)
			c := testcluster.New(t, testcluster.Options{JetStream: true, Shards: 1})
			l := bulkyTally()
			a := c.StartNode("a", mode.configure, l.run())
			f := startFlowOf(t, l, megabytes, a)
			f.await(t, 20)
			c.NATS.Stop()
			s := testcluster.AwaitShards(t, a.Client, name, mode.is)[0]
			if s.Degraded != "" || s.Archived != 0 {
				t.Errorf("shard %+v", s)
			}
			l.wantOnce(t, a.Client, f.end())
			all, err := a.Ledger().Verify(within(t, soon), ledger.VerifyOptions{})
			if err != nil || all[0].Problem != "" || !mode.from(all[0].From) {
				t.Errorf("verified %+v, %v", all, err)
			}
			c.NATS.Start()
		})
	}
}

// What was trimmed before an archive began is in none, which every owner says from then on.
func TestArchive_ThatBeginsLateIsShown(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c := testcluster.New(t, testcluster.Options{JetStream: true, Shards: 1})
	l := bulkyTally()
	run := func(name string, configure func(*engine.NodeConfig), holds func(engine.ShardInfo) bool) {
		n := c.StartNode(name, configure, l.run())
		f := startFlowOf(t, l, load{atOnce: megabytes.atOnce, pause: megabytes.pause, params: func(task string) string { return bulky(name + task) }}, n)
		testcluster.AwaitShards(t, n.Client, "a shard of "+name, holds)
		f.end()
		n.Stop()
	}
	late := func(s engine.ShardInfo) bool {
		return strings.Contains(s.Degraded, "the archive begins late, with entry ")
	}
	run("a", drops, func(s engine.ShardInfo) bool { return s.First > 1 })
	run("b", archives(t), func(s engine.ShardInfo) bool { return s.Archived > 0 && late(s) })
	run("c", archives(t), late)
}

func TestArchive_NodesRestartedInTurnUnderLoadLeaveItWhole(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c := testcluster.New(t, testcluster.Options{JetStream: true, Shards: 4})
	l := bulkyTally()
	nodes := c.StartNodes(archives(t), l.on, "a", "b", "c")
	reader := archiveReader(t, c)
	f := startFlowOf(t, l, megabytes, reader)
	for i, n := range nodes {
		f.await(t, 100)
		n.Stop()
		nodes[i] = c.StartNode(n.Name+"-again", archives(t), l.run())
	}
	testcluster.AwaitShards(t, reader.Client, "trimmed journals", trimmedBeyond(1))
	l.wantOnce(t, reader.Client, f.end())
	wantWhole(t, reader.Client)
}

// altered is a segment with a byte flipped in the middle, where an entry is.
func altered(m *nats.Msg) *nats.Msg {
	data := bytes.Clone(m.Data)
	data[len(data)/2] ^= 1
	return &nats.Msg{Subject: m.Subject, Header: m.Header, Data: data}
}

// firstOf is the first entry of a segment.
func firstOf(t *testing.T, m *nats.Msg) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(m.Header.Get("Taskledger-First"), 10, 64)
	ok(t, err)
	return n
}

func TestVerify_NamesShardEntryAndKindOfDamageInTheArchive(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c := testcluster.New(t, testcluster.Options{JetStream: true, Shards: 1})
	l := bulkyTally()
	a := c.StartNode("a", archives(t), l.run())
	f := startFlowOf(t, l, megabytes, a)
	testcluster.AwaitShards(t, a.Client, "an archive of some segments", func(s engine.ShardInfo) bool { return s.First > 110 })
	l.wantOnce(t, a.Client, f.end())
	wantWhole(t, a.Client)
	in := c.NATS.Stream()
	good := in.Segments()
	if len(good) < 4 {
		t.Fatalf("%d segments", len(good))
	}
	first, second := firstOf(t, good[1]), firstOf(t, good[2])
	at := 1 // of the segments between the others, the one with most entries
	entries := func(i int) uint64 { return firstOf(t, good[i+1]) - firstOf(t, good[i]) }
	for i := range good[2 : len(good)-1] {
		if entries(i+2) > entries(at) {
			at = i + 2
		}
	}
	if entries(at) < 2 {
		t.Fatal("no segment holds two entries")
	}
	among := firstOf(t, good[at])
	edited := func(change func([]store.Record) []store.Record) []*nats.Msg {
		return slices.Concat(good[:at], []*nats.Msg{in.Edited(good[at], change)}, good[at+1:])
	}
	garbage := &nats.Msg{Subject: good[0].Subject, Data: []byte("garbage")}
	for name, damage := range map[string]struct {
		segments []*nats.Msg
		kind     ledger.Damage
		at       uint64 // 0 = somewhere in the segment
	}{
		"first removed":   {good[1:], ledger.DamageMissing, 1},
		"middle removed":  {slices.Concat(good[:1], good[2:]), ledger.DamageMissing, first},
		"last removed":    {good[:len(good)-1], ledger.DamageMissing, firstOf(t, good[len(good)-1])},
		"all removed":     {nil, ledger.DamageMissing, 1},
		"first flipped":   {slices.Concat([]*nats.Msg{altered(good[0])}, good[1:]), ledger.DamageGarbled, 0},
		"middle flipped":  {slices.Concat(good[:1], []*nats.Msg{altered(good[1])}, good[2:]), ledger.DamageGarbled, 0},
		"first replaced":  {slices.Concat([]*nats.Msg{garbage}, good[1:]), ledger.DamageGarbled, 1},
		"middle replaced": {slices.Concat(good[:1], []*nats.Msg{garbage}, good[2:]), ledger.DamageGarbled, first},
		"one added":       {slices.Concat(good[:2], good[1:]), ledger.DamageGarbled, second},
		"swapped":         {slices.Concat(good[:1], []*nats.Msg{good[2], good[1]}, good[3:]), ledger.DamageMissing, 0},
		"an entry flipped": {edited(func(all []store.Record) []store.Record {
			all[1].Data[len(all[1].Data)/2] ^= 1
			return all
		}), ledger.DamageGarbled, among + 1},
		"an entry removed": {edited(func(all []store.Record) []store.Record { return slices.Delete(all, 1, 2) }), ledger.DamageMissing, among + 1},
		"two entries swapped": {edited(func(all []store.Record) []store.Record {
			all[0], all[1] = all[1], all[0]
			return all
		}), ledger.DamageGarbled, among},
		"two entries' bytes swapped": {edited(func(all []store.Record) []store.Record {
			all[0].Data, all[1].Data = all[1].Data, all[0].Data
			return all
		}), ledger.DamageOrder, among},
	} {
		in.Replace(damage.segments)
		all, err := a.Ledger().Verify(within(t, soon), ledger.VerifyOptions{Archive: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if all[0].Damage != damage.kind || damage.at != 0 && all[0].At != damage.at || !strings.Contains(all[0].Problem, fmt.Sprintf("entry %d", all[0].At)) {
			t.Errorf("%s: verified %+v, want %s at entry %d", name, all[0], damage.kind, damage.at)
		}
	}
	in.Replace(good)
	wantWhole(t, a.Client)
}
