package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/projection"
	"taskledger/store"
)

// past is a cluster on etcd whose journals a test archives, trims and damages.
type past struct {
	t       *testing.T
	write   func(key, value string) // to etcd; "" removes the key
	store   *etcdstore.Store
	node    *engine.Node
	job     *job
	archive memoryArchive
	count   int // of spread's tasks
}

const pastShards = 2

func newPast(t *testing.T) *past {
	t.Helper()
	_, etcd := testcluster.StartEtcd(t)
	store, err := etcdstore.Open(within(t), etcdstore.Config{Client: etcd, Shards: pastShards})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	p := &past{t: t, store: store, job: newJob(engine.Policy{}), archive: memoryArchive{}}
	p.write = func(key, value string) {
		t.Helper()
		var err error
		if value == "" {
			_, err = etcd.Delete(within(t), key)
		} else {
			_, err = etcd.Put(within(t), key, value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.node = runNode(t, engine.NodeConfig{Store: store, Name: "n", TTL: 3 * time.Second, Behaviors: []engine.Behavior{p.job}})
	return p
}

// do runs tasks one after the other; each makes entries of its own.
func (p *past) do(ids ...events.TaskID) {
	p.t.Helper()
	for _, id := range ids {
		f := p.job.submit(p.t, p.node, id)
		p.job.next(p.t).succeed("1")
		want(p.t, f, "1")
	}
}

// reader is a client that runs until the test ends. With archive nil it knows of none.
func (p *past) reader(archive store.ArchiveReader) *engine.Client {
	p.t.Helper()
	return p.run(engine.ClientConfig{Store: trimmed{p.store}, Archive: archive})
}

func (p *past) run(cfg engine.ClientConfig) *engine.Client {
	p.t.Helper()
	return runClient(p.t, cfg)
}

// runClient runs a client until the test ends.
func runClient(t *testing.T, cfg engine.ClientConfig) *engine.Client {
	t.Helper()
	c, err := engine.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("client: %v", err)
		}
	})
	return c
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
	p.archive[shard] = p.records(shard)
	for _, rec := range p.archive[shard][:len(p.archive[shard])-1] {
		p.write(entryKey(shard, rec.Number), "")
	}
}

func (p *past) records(shard int) (all []store.Record) {
	p.t.Helper()
	for rec, err := range p.store.Read(within(p.t), shard, 1) {
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, rec)
	}
	return all
}

func entryKey(shard int, number uint64) string {
	return fmt.Sprintf("taskledger/journal/%d/%016x", shard, number)
}

// memoryArchive holds the records of shards.
type memoryArchive map[int][]store.Record

func (m memoryArchive) ReadArchive(_ context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for i, rec := range m[shard] {
			if i == 0 && rec.Number > from {
				yield(store.Record{}, store.ErrTrimmed)
				return
			}
			if i > 0 && rec.Number != m[shard][i-1].Number+1 {
				yield(store.Record{}, fmt.Errorf("%w: gap", events.ErrDamaged))
				return
			}
			if rec.Number >= from && !yield(rec, nil) {
				return
			}
		}
	}
}

func (m memoryArchive) FindArchived(_ context.Context, shard int, _ events.TaskID) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for _, rec := range slices.Backward(m[shard]) {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func kindsOf(seq iter.Seq2[events.Event, error]) (string, error) {
	var kinds []string
	for ev, err := range seq {
		if err != nil {
			return strings.Join(kinds, " "), err
		}
		kinds = append(kinds, ev.Kind().String())
	}
	return strings.Join(kinds, " "), nil
}

func TestHistory_OfADeletedTaskComesFromJournalAndArchive(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	id := idIn(0, pastShards)
	p.do(id)
	if err := p.node.Delete(within(t), id); err != nil {
		t.Fatal(err)
	}
	const whole = "Created Started Succeeded Deleted"
	wantHistory(t, p.node.Client, id, whole)
	p.do(id + "/2")
	if got, err := kindsOf(p.reader(nil).Ledger().History(within(t), id)); got != whole || err != nil {
		t.Errorf("by another client: %s, %v", got, err)
	}
	p.keep(0)
	if got, err := kindsOf(p.reader(p.archive).Ledger().History(within(t), id)); got != whole || err != nil {
		t.Errorf("from the archive: %s, %v", got, err)
	}
	if got, err := kindsOf(p.reader(nil).Ledger().History(within(t), id)); got != "" || !errors.Is(err, engine.ErrNotFound) || !strings.Contains(err.Error(), "dropped") {
		t.Errorf("without the archive: %s, %v", got, err)
	}
	if got, err := kindsOf(p.reader(nil).Ledger().History(within(t), id+"/2")); got != "Succeeded" || !errors.Is(err, store.ErrTrimmed) {
		t.Errorf("of what is left: %s, %v; want the last event and ErrTrimmed", got, err)
	}
	if got, err := kindsOf(p.reader(p.archive).Ledger().History(within(t), "nobody")); got != "" || !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("of no task: %s, %v", got, err)
	}
}

// A second life must not hide the first from the past.
func TestState_AtATimeAndAfterAnEvent(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	id := idIn(0, pastShards)
	p.do(id)
	var first []events.Event
	for ev, err := range p.node.Ledger().History(within(t), id) {
		if err != nil {
			t.Fatal(err)
		}
		first = append(first, ev)
	}
	testcluster.Await(t, "a later millisecond", func() bool { return time.Now().After(first[2].At.Time().Add(5 * time.Millisecond)) })
	if err := p.node.Delete(within(t), id); err != nil {
		t.Fatal(err)
	}
	deleted := time.Now()
	testcluster.Await(t, "a later millisecond", func() bool { return time.Since(deleted) > 5*time.Millisecond })
	p.do(id)
	for _, r := range []*engine.Client{p.node.Client, p.reader(nil)} {
		if task, err := r.Ledger().StateAt(within(t), id, first[2].At.Time()); err != nil || task.Status != projection.Success || string(task.Result) != "\x011" ||
			task.Created != first[0].Position.Ref {
			t.Errorf("at the end of the first life: %+v, %v", task, err)
		}
		if _, err := r.Ledger().StateAt(within(t), id, first[0].At.Time().Add(-time.Millisecond)); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("before its creation: %v", err)
		}
		if _, err := r.Ledger().StateAt(within(t), id, deleted.Add(2*time.Millisecond)); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("between its lives: %v", err)
		}
		if task, err := r.Ledger().StateAt(within(t), id, time.Time{}); err != nil || task.Status != projection.Success || task.Created == first[0].Position.Ref {
			t.Errorf("now: %+v, %v", task, err)
		}
		for seq, status := range []projection.Status{projection.Created, projection.Running, projection.Success} {
			task, err := r.Ledger().StateAfter(within(t), id, uint64(seq+1))
			if err != nil || task.Status != status || task.Seq != uint64(seq+1) {
				t.Errorf("after event %d: %+v, %v", seq+1, task, err)
			}
		}
		for _, seq := range []uint64{0, 4} {
			if _, err := r.Ledger().StateAfter(within(t), id, seq); !errors.Is(err, engine.ErrNotFound) {
				t.Errorf("after event %d: %v", seq, err)
			}
		}
	}
}
