package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	codec "taskledger/internal/wire"
	"taskledger/store"
	"taskledger/store/memarchive"
	"taskledger/task"
)

// past is a cluster on etcd with a past, whose journals a test archives, trims and damages.
type past struct {
	*testcluster.Journals
	t       *testing.T
	node    *engine.Node
	started chan struct{} // an attempt with a secret runs
	release chan struct{} // it may end
	archive *memarchive.Archive
	count   int // of spread's tasks
}

const pastShards = 2

// job returns 1, or, once the test lets it, the secret in its parameters.
var job = behaviors.Define[string, any]("job", nil)

func newPast(t *testing.T) *past {
	t.Helper()
	p := &past{Journals: testcluster.StartJournals(t, pastShards), t: t, started: make(chan struct{}), release: make(chan struct{}), archive: memarchive.New()}
	run := job.Bind(func(ctx context.Context, secret string) (any, error) {
		if secret == "" {
			return 1, nil
		}
		for _, c := range []chan struct{}{p.started, p.release} {
			select {
			case c <- struct{}{}:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		return secret, nil
	})
	p.node = testcluster.RunNode(t, engine.NodeConfig{Store: p.Store, Name: "n", TTL: 3 * time.Second, Behaviors: []task.Behavior{run}})
	return p
}

// do runs tasks one after the other; each makes entries of its own.
func (p *past) do(ids ...events.TaskID) {
	p.t.Helper()
	for _, id := range ids {
		p.want(p.submit(id, ""), 1.0)
	}
}

// begin runs a task until end is called, and so many entries lie between its events.
func (p *past) begin(id events.TaskID, secret string) (end func()) {
	p.t.Helper()
	f := p.submit(id, secret)
	p.receive(p.started)
	return func() {
		p.t.Helper()
		p.receive(p.release)
		p.want(f, secret)
	}
}

func (p *past) submit(id events.TaskID, secret string) *behaviors.Future[any] {
	p.t.Helper()
	f, err := job.SubmitWith(testcluster.Within(p.t), p.node, secret, task.SubmitOptions{ID: id})
	if err != nil {
		p.t.Fatalf("submit %s: %v", id, err)
	}
	return f
}

func (p *past) want(f *behaviors.Future[any], result any) {
	p.t.Helper()
	if got, err := f.Wait(testcluster.Within(p.t)); err != nil || got != result {
		p.t.Errorf("task %s: got %v, %v; want %v", f.ID(), got, err, result)
	}
}

func (p *past) receive(c chan struct{}) {
	p.t.Helper()
	select {
	case <-c:
	case <-testcluster.Within(p.t).Done():
		p.t.Fatal("the attempt has not come so far in time")
	}
}

// spread runs further tasks, which take turns between the shards.
func (p *past) spread(n int) (ids []events.TaskID) {
	p.t.Helper()
	for range n {
		p.count++
		id := events.TaskID(fmt.Sprint(testcluster.IDIn(p.count%pastShards, pastShards), "/n-", p.count))
		p.do(id)
		ids = append(ids, id)
	}
	return ids
}

// recordNoEvent has the owner append an entry without events: the record of what became of a batch.
func (p *past) recordNoEvent(shard int) {
	p.t.Helper()
	entries := func() uint64 {
		infos, err := p.node.Operations().Shards(testcluster.Within(p.t))
		if err != nil {
			p.t.Fatal(err)
		}
		return infos[shard].Entries
	}
	before := entries()
	var batch codec.Writer
	batch.Array(6)
	batch.Text("somebody")
	batch.Uint(0) // the lane of submits
	batch.Uint(2)
	batch.Int(time.Now().UnixMilli())
	batch.Text("")
	batch.Array(2)
	batch.Uint(16)
	batch.Bytes([]byte{0x91, 1}) // what becomes of batch 1
	if err := p.Store.Post(testcluster.Within(p.t), shard, "somebody", 0, batch.B); err != nil {
		p.t.Fatal(err)
	}
	testcluster.Await(p.t, "the entry without events", func() bool { return entries() > before })
}

// reader is a client that runs until the test ends. With archive nil it knows of none.
func (p *past) reader(archive store.ArchiveReader) *engine.Client {
	p.t.Helper()
	return p.run(engine.ClientConfig{Store: trimmed{p.Store}, Archive: archive})
}

func (p *past) run(cfg engine.ClientConfig) *engine.Client {
	p.t.Helper()
	return testcluster.RunClient(p.t, cfg)
}

// trimmed is a store whose journals a test trims, without snapshots.
type trimmed struct{ store.Store }

func (s trimmed) First(ctx context.Context, shard int) (uint64, error) {
	for number := range uint64(100) {
		if _, err := s.Entry(ctx, shard, number+1); !errors.Is(err, store.ErrTrimmed) {
			return number + 1, err
		}
	}
	return 0, nil
}

// keep copies a shard's journal to the archive, and trims all but its last entry.
func (p *past) keep(shard int) {
	p.t.Helper()
	all := p.Records(shard)
	setArchive(p.archive, shard, all)
	for _, rec := range all[:len(all)-1] {
		p.Remove(shard, rec.Number)
	}
}

// archiveOf returns an archive of one shard.
func archiveOf(shard int, all []store.Record) *memarchive.Archive {
	a := memarchive.New()
	setArchive(a, shard, all)
	return a
}

// setArchive makes the archive of a shard what the records say, whether they belong there or not.
func setArchive(a *memarchive.Archive, shard int, all []store.Record) {
	a.Alter(shard, func([]memarchive.Segment) []memarchive.Segment { return []memarchive.Segment{{Entries: all}} })
}
