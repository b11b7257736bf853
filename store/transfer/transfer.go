// Package transfer copies a cluster from one store into another, of whatever kind, while no node uses either: journals
// with their numbers, hashes, bytes and revisions, snapshots, what waits to be given up, and the archive. Nodes
// leave theirs behind: sessions, owners and mailboxes.
//
// A copy that was stopped is marked in the store that takes it, which is refused to everybody else, and goes on when it
// is made again: what is there is compared with the source, and what is missing is added. Before the mark goes, the
// whole copy is read back, and its fold is compared with its snapshots.
//
// Numbers, ids and fencing tokens go on where the source ends. Revisions, and with them epochs, go on far above those
// of the source, so that one which the source gives after the copy was made is not given by the copy, too.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
)

var (
	// ErrNodes reports that nodes use a store.
	ErrNodes = errors.New("nodes use it: stop them, and wait until their sessions have ended")
	// ErrDiffers reports that the target holds what the source has not.
	ErrDiffers = errors.New("the target holds what the source has not")
	// ErrTrimmed reports a source without archive whose journals were trimmed.
	ErrTrimmed = errors.New("its first entries are in no archive that is named")
)

// Settling is the word that Config.Progress gets once when Copy waits for the archive, which may take minutes.
const Settling = "waiting until the servers have written what was archived"

// gap is added to the revisions of the source, beyond all that it gives in years.
const gap = 1_000_000_000

// Source is the store that is copied. Copy only reads it.
type Source interface {
	ledger.Journal
	ledger.Snapshots
	Cluster() store.Cluster
	Loss(ctx context.Context, shard int) (store.Loss, error)
	ReadMembers(ctx context.Context) (store.Membership, error)
}

// Config says what is copied, and where. From and To are required.
type Config struct {
	From Source
	// FromArchive holds what was trimmed from the journals; nil = the archive is not copied.
	FromArchive store.Archive
	To          store.Receiver
	// ToArchive takes the archive. It is required where FromArchive holds anything.
	ToArchive store.Archive
	// Drop accepts that entries are lost which were trimmed from the journals, and are not in FromArchive. Default:
	// ErrTrimmed.
	Drop bool
	// Restored says that nodes ran after the source was made, and that the cluster goes back to its time: the next owner
	// of each shard records a loss, and gives no id again that an item may have had.
	Restored bool
	// Progress is called for every entry that was compared, copied or checked, with a word for which; nil = none.
	Progress func(shard int, doing string)
}

// Shard tells what was copied of a shard.
type Shard struct {
	Shard     int    `json:"shard"`
	First     uint64 `json:"first"`     // entry that the journal begins with; 0 = it is empty
	Entries   uint64 `json:"entries"`   // in the journal
	Archived  uint64 `json:"archived"`  // entries in the archive
	Snapshots int    `json:"snapshots"` // that are kept
	Copied    uint64 `json:"copied"`    // entries of journal and archive that were missing, and were added
	Last      uint64 `json:"last"`      // number of the last entry
	Tasks     int    `json:"tasks"`
	Hash      string `json:"hash"` // of the chain, after the last entry
}

// Copy copies a cluster. It wraps ErrNodes while nodes use one of the stores, ErrDiffers, ErrTrimmed, events.ErrDamaged
// with the shard, and what the ports return. After an error nothing is finished, and Copy can be called again.
func Copy(ctx context.Context, cfg Config) ([]Shard, error) {
	c := &copying{
		Config: cfg,
		shards: make([]state, cfg.From.Cluster().Shards),
	}
	if c.Progress == nil {
		c.Progress = func(int, string) {}
	}
	if err := c.run(ctx); err != nil {
		return nil, err
	}
	all := make([]Shard, len(c.shards))
	for i := range c.shards {
		all[i] = c.shards[i].Shard
		all[i].Shard = i
	}
	return all, nil
}

// copying is one call of Copy.
type copying struct {
	Config
	shards   []state
	finished bool      // the target was finished before
	highest  int64     // revision that the source has given
	archived time.Time // when the last segment was acknowledged
	before   store.Membership
}

// state says how far a shard has come.
type state struct {
	Shard
	source  store.ReceivedShard
	last    uint64      // entry of the journal of the target; 0 = none from the source's first one on
	hash    events.Hash // of it
	archive archive
}

func (c *copying) run(ctx context.Context) (err error) {
	if c.before, err = unused(ctx, c.From); err != nil {
		return fmt.Errorf("copy from: %w", err)
	}
	c.highest = c.before.Revision
	if err := c.compareAll(ctx); err != nil {
		return err
	}
	if !c.finished {
		if err := c.addAll(ctx); err != nil {
			return err
		}
	}
	if err := c.unchanged(ctx); err != nil {
		return err
	}
	if err := c.verify(ctx); err != nil || c.finished {
		return err
	}
	return c.To.Finish(ctx, c.highest+gap, c.before.Written)
}

// unused returns the members of a store that no node uses.
func unused(ctx context.Context, s interface {
	ReadMembers(ctx context.Context) (store.Membership, error)
}) (store.Membership, error) {
	m, err := s.ReadMembers(ctx)
	if err != nil {
		return m, err
	}
	for id, n := range m.Nodes {
		return m, fmt.Errorf("%w: %s (%s) is one", ErrNodes, n.Name, id)
	}
	return m, nil
}

// unchanged returns an error where nodes have used the source since the copy began.
func (c *copying) unchanged(ctx context.Context) error {
	now, err := unused(ctx, c.From)
	if err != nil {
		return fmt.Errorf("copy from: %w", err)
	}
	for shard := range c.shards {
		if now.Owners[shard] != c.before.Owners[shard] {
			return fmt.Errorf("copy from: %w: one has taken shard %d meanwhile", ErrNodes, shard)
		}
	}
	c.highest = max(c.highest, now.Revision)
	return nil
}

// compareAll compares what is there with the source, and changes nothing.
func (c *copying) compareAll(ctx context.Context) error {
	there, finished, err := c.To.Copied(ctx)
	if err != nil {
		return fmt.Errorf("copy to: %w", err)
	}
	c.finished = finished
	if there != nil {
		if _, err := unused(ctx, there); err != nil {
			return fmt.Errorf("copy to: %w", err)
		}
	}
	for shard := range c.shards {
		at := &c.shards[shard]
		if err := c.look(ctx, shard, at); err != nil {
			return fmt.Errorf("copy from: shard %d: %w", shard, err)
		}
		if there != nil {
			if err := c.compare(ctx, shard, at, there); err != nil {
				return fmt.Errorf("copy to: shard %d: %w", shard, err)
			}
		}
		if err := c.compareArchive(ctx, shard, at); err != nil {
			return fmt.Errorf("copy the archive of shard %d: %w", shard, err)
		}
	}
	return nil
}

// look reads what the source keeps of a shard beside its entries.
func (c *copying) look(ctx context.Context, shard int, at *state) (err error) {
	if at.source.Pointer, err = c.From.Pointer(ctx, shard); err != nil {
		return err
	}
	if at.source.Loss, err = c.From.Loss(ctx, shard); err != nil {
		return err
	}
	if at.First, err = c.From.First(ctx, shard); err != nil {
		return err
	}
	if c.Restored && at.source.Loss.Revision == 0 {
		if at.source.Loss, err = c.mayHaveGoneOn(ctx, shard, at.First); err != nil {
			return err
		}
	}
	at.source.First, at.Snapshots = at.First, len(at.source.Pointer.Kept)
	c.highest = max(c.highest, at.source.Pointer.Revision, at.source.Loss.Revision)
	for _, s := range at.source.Pointer.Kept {
		c.highest = max(c.highest, s.Epoch)
	}
	return nil
}

// compare compares the entries of a shard that are there with those of the source.
func (c *copying) compare(ctx context.Context, shard int, at *state, there store.Store) error {
	if c.finished {
		if err := sameShard(ctx, shard, at, there); err != nil {
			return err
		}
	}
	next, stop := iter.Pull2(c.From.Read(ctx, shard, at.First))
	defer stop()
	for have, err := range there.Read(ctx, shard, max(at.First, 1)) {
		if err != nil {
			return err
		}
		want, err, ok := next()
		if err != nil {
			return fmt.Errorf("read the source: %w", err)
		}
		if !ok || !same(want, have) {
			return fmt.Errorf("%w: entry %d", ErrDiffers, have.Number)
		}
		e, err := decode(shard, want)
		if err != nil {
			return err
		}
		at.last, at.hash = have.Number, e.Hash
		at.Entries, at.Last = at.Entries+1, have.Number
		c.Progress(shard, "compared")
	}
	if _, err, more := next(); err != nil {
		return fmt.Errorf("read the source: %w", err)
	} else if more && c.finished {
		return fmt.Errorf("the copy was finished before, and the source has gone on: %w", ErrDiffers)
	}
	return nil
}

// sameShard returns an error unless a target that was finished keeps what the source does beside the entries.
func sameShard(ctx context.Context, shard int, at *state, there store.Store) error {
	first, err := there.First(ctx, shard)
	if err != nil {
		return err
	}
	pointer, err := there.Pointer(ctx, shard)
	if err != nil {
		return err
	}
	l, err := there.Loss(ctx, shard)
	if err != nil {
		return err
	}
	want := at.source.Loss
	if l.Revision != 0 && want.Revision != 0 {
		l.Revision = want.Revision // each store has its own
	}
	if first != at.First || l != want || !equal(pointer.Kept, at.source.Pointer.Kept) {
		return fmt.Errorf("the copy was finished before, and one of the two has gone on: %w", ErrDiffers)
	}
	return nil
}

// addAll adds what is missing.
func (c *copying) addAll(ctx context.Context) error {
	if err := c.To.Begin(ctx); err != nil {
		return fmt.Errorf("copy to: %w", err)
	}
	for shard := range c.shards {
		at := &c.shards[shard]
		if err := c.addArchive(ctx, shard, at); err != nil {
			return fmt.Errorf("copy the archive of shard %d: %w", shard, err)
		}
		if err := c.To.AddShard(ctx, shard, at.source, c.parts(ctx, shard)); err != nil {
			return err
		}
		if err := c.addEntries(ctx, shard, at); err != nil {
			return fmt.Errorf("copy the journal of shard %d: %w", shard, err)
		}
	}
	return c.settle(ctx)
}

// parts returns what yields the parts of a snapshot of a shard, and an error where they are not those that were stored.
func (c *copying) parts(ctx context.Context, shard int) store.PartsOf {
	return func(s store.SnapshotInfo) iter.Seq2[[]byte, error] {
		return checked(s, c.From.Parts(ctx, shard, s))
	}
}

// addEntries adds the entries of a journal that are missing.
func (c *copying) addEntries(ctx context.Context, shard int, at *state) error {
	var batch []store.Record
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := c.To.AddEntries(ctx, shard, batch)
		at.Copied += uint64(len(batch))
		batch, size = nil, 0
		return err
	}
	from := max(at.First, at.last+1)
	if at.First == 0 {
		from = 1
	}
	for rec, err := range c.From.Read(ctx, shard, from) {
		if err != nil {
			return err
		}
		e, err := decode(shard, rec)
		if err != nil {
			return err
		}
		if at.last != 0 && e.Prev != at.hash {
			return fmt.Errorf("%w: entry %d of shard %d does not follow the one before", events.ErrDamaged, rec.Number, shard)
		}
		if len(batch) == store.MaxReceivedEntries || size+len(rec.Data) > store.MaxReceivedBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		batch, size = append(batch, rec), size+len(rec.Data)
		at.last, at.hash = rec.Number, e.Hash
		at.Entries, at.Last = at.Entries+1, rec.Number
		c.highest = max(c.highest, rec.Revision)
		c.Progress(shard, "copied")
	}
	return flush()
}

// verify reads the copy back, folds it, and compares the fold with the snapshots.
func (c *copying) verify(ctx context.Context) error {
	there, _, err := c.To.Copied(ctx)
	if err != nil {
		return fmt.Errorf("read the copy back: %w", err)
	}
	cfg := ledger.Config{
		Cluster:   c.From.Cluster(),
		Journal:   there,
		Snapshots: there,
	}
	if c.ToArchive != nil {
		cfg.Archive = c.ToArchive
	}
	all, err := ledger.New(cfg).Verify(ctx, ledger.VerifyOptions{
		Progress: func(shard int, _ uint64) { c.Progress(shard, "checked") },
	})
	if err != nil {
		return fmt.Errorf("read the copy back: %w", err)
	}
	for _, v := range all {
		at := &c.shards[v.Shard]
		switch {
		case v.Problem != "":
			return fmt.Errorf("%w: shard %d of the copy, and so of the source: %s", events.ErrDamaged, v.Shard, v.Problem)
		case v.Entries != at.Last || at.last != 0 && v.Hash != at.hash:
			return fmt.Errorf("%w: shard %d of the copy ends with entry %d, hash %s, and the source with entry %d, hash %s",
				events.ErrDamaged, v.Shard, v.Entries, v.Hash, at.Last, at.hash)
		}
		at.Tasks, at.Hash = v.Tasks, v.Hash.String()
	}
	if c.finished { // the archives were compared
		return nil
	}
	if err := c.readArchives(ctx); err != nil {
		return fmt.Errorf("read the copy back: %w", err)
	}
	return nil
}
