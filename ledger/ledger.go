package ledger

import (
	"context"
	"fmt"
	"iter"
	"time"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// Journal reads the journals of the shards, and finds where each begins. Its methods do what those of store.Journal and
// store.Trimmer do.
type Journal interface {
	// First returns the number of the first entry that the journal holds; 0 = none.
	First(ctx context.Context, shard int) (uint64, error)
	Read(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error]
	Backward(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error]
	Entry(ctx context.Context, shard int, number uint64) (store.Record, error)
	Follow(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error]
}

// Snapshots reads the snapshots of the shards, as the methods of store.Snapshots do.
type Snapshots interface {
	Pointer(ctx context.Context, shard int) (store.SnapshotPointer, error)
	Parts(ctx context.Context, shard int, s store.SnapshotInfo) iter.Seq2[[]byte, error]
}

// Owners asks the owners of the shards. An answer saves a search, or is compared with the journal; history itself is
// never taken from it.
type Owners interface {
	// Task returns a task as its owner has it. The error is task.ErrNotFound if the owner does not know the task,
	// another one if no owner answers.
	Task(ctx context.Context, id events.TaskID) (projection.Task, error)
	// Present reports whether any node that owns shards is present; without one nobody answers.
	Present(ctx context.Context) (bool, error)
	// Heads returns what the owner of each shard has committed, ordered by shard, without digests.
	Heads(ctx context.Context) ([]Head, error)
	// Digest returns what the owner of a shard has committed, with the digest of its state. The owner decides nothing
	// meanwhile, for one to three microseconds a task.
	Digest(ctx context.Context, shard int) Head
}

// Head is the end of a shard's journal as its owner has committed it.
type Head struct {
	Shard   int
	Entry   uint64      // number of the last entry; 0 = none
	Hash    events.Hash // chain hash of that
	Digest  events.Hash // of the state after it, as projection.Shard.Digest returns it
	Drops   bool        // the owner removes entries that snapshots cover and archives none
	Problem string      // why the shard is not served; "" = it is served, and the other fields count
}

// askOwnersFor bounds the wait for an owner with a question that can be answered without one.
const askOwnersFor = 3 * time.Second

// Config names the ports from which a Ledger reads. Cluster and Journal are enough for histories, states, exports and
// Verify of what the journals hold; a port that is nil knows nothing.
type Config struct {
	Cluster   store.Cluster
	Journal   Journal             // nil: every call returns store.ErrUnavailable
	Snapshots Snapshots           // nil: there are none
	Archive   store.ArchiveReader // nil: what was trimmed cannot be read
	// Archived says that entries are trimmed only once the archive has them. If there is no archive to be seen, it is
	// then away for the moment, and reads of what it should hold fail with store.ErrUnavailable instead of
	// store.ErrTrimmed.
	Archived bool
	Owners   Owners // nil: nobody answers; Checkpoint then fails with store.ErrUnavailable
	// Revision returns the present revision of the store. Replay ends there, and Follow yields what was committed
	// before it in the order of the whole cluster. nil: both fail with store.ErrUnavailable.
	Revision func(context.Context) (int64, error)
	// Milestones let states of long lives be folded from near the event that is asked for: those of one cluster, which its
	// ledgers may share. nil: each state is folded from the first event.
	Milestones *Milestones
}

// Ledger reads what happened in a cluster. Its methods may be called concurrently. It holds nothing between calls but
// Config.Milestones, and starts nothing that outlives them.
type Ledger struct{ cfg Config }

// New returns the ledger of a cluster. It reads nothing yet.
func New(cfg Config) *Ledger {
	if cfg.Snapshots == nil {
		cfg.Snapshots = noSnapshots{}
	}
	if cfg.Owners == nil {
		cfg.Owners = nobody{cfg.Cluster.Shards}
	}
	if cfg.Revision == nil {
		cfg.Revision = func(context.Context) (int64, error) {
			return 0, fmt.Errorf("%w: the ledger has no Config.Revision", store.ErrUnavailable)
		}
	}
	return &Ledger{cfg}
}

// noSnapshots stands for Config.Snapshots where that is nil.
type noSnapshots struct{}

func (noSnapshots) Pointer(context.Context, int) (p store.SnapshotPointer, err error) { return p, nil }

func (noSnapshots) Parts(context.Context, int, store.SnapshotInfo) iter.Seq2[[]byte, error] {
	return func(func([]byte, error) bool) {}
}

// nobody answers for the owners of a ledger without Config.Owners.
type nobody struct{ shards int }

const noOwners = "the ledger has no Config.Owners"

func (nobody) Task(context.Context, events.TaskID) (t projection.Task, err error) {
	return t, fmt.Errorf("%w: %s", store.ErrUnavailable, noOwners)
}

func (nobody) Present(context.Context) (bool, error) { return false, nil }

func (n nobody) Heads(ctx context.Context) (all []Head, err error) {
	for shard := range n.shards {
		all = append(all, n.Digest(ctx, shard))
	}
	return all, nil
}

func (nobody) Digest(_ context.Context, shard int) Head { return Head{Shard: shard, Problem: noOwners} }

// reader returns what reads the journals, or why nothing does.
func (l *Ledger) reader() (*Reader, error) {
	if l.cfg.Journal == nil {
		return nil, fmt.Errorf("%w: there is no store to read", store.ErrUnavailable)
	}
	return NewReader(l.cfg.Journal, l.cfg.Snapshots, l.cfg.Archive, l.cfg.Archived), nil
}
