package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/journal"
	"taskledger/store"
)

// VerifyOptions select further checks; the zero value selects none.
type VerifyOptions struct {
	// Archive says that every entry must be in the archive or the journal, and alike in both; the Ledger must have one.
	// Against implies it for the shards whose owners do not drop entries, where the Ledger has an archive. Where no
	// owner answers, Against compares with the archive, too, and entries that are in neither make the Verification
	// Unknown.
	Archive  bool
	Against  []Checkpoint                  // checkpoints that the hashes and the states must agree with
	Progress func(shard int, entry uint64) // called for every entry that was applied; nil = none
}

// Verify reads all that is left of every shard, from the archive where the journal was trimmed, and checks that no
// entry is missing, that each continues the hash chain, that every transition is legal, that no loss is recorded which
// the entries contradict, that each task is in the shard of its id, and that the snapshots and the state of the owner
// equal the fold. It checks a shard up to the first damage, or to its end where events of tasks of other shards are all
// that is wrong. Damage is part of the result; an error means that the check could not be made.
//
// If the first entries were dropped, checking begins at the older snapshot, and From says so; of entries before it that
// are still there only the chain is checked. Each owner, one after the other, computes a digest of its state, and
// decides nothing meanwhile, for one to three microseconds a task; its session goes on.
func (l *Ledger) Verify(ctx context.Context, o VerifyOptions) ([]Verification, error) {
	r, err := l.reader()
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	if o.Archive && r.archive == nil {
		return nil, &store.InvalidError{Field: "archive", Problem: "there is none to compare with"}
	}
	heads, err := headsOf(o.Against, l.cfg.Cluster)
	if err != nil {
		return nil, err
	}
	served, err := l.served(ctx)
	if err != nil {
		return nil, err
	}
	var all []Verification
	for shard := range l.cfg.Cluster.Shards {
		if served[shard].Problem == "" { // one at a time, because the owners on one node share its processors
			ask, cancel := context.WithTimeout(ctx, askOwnersFor)
			served[shard] = l.cfg.Owners.Digest(ask, shard)
			cancel()
		}
		v, err := l.verifyShard(ctx, r, &served[shard], heads[shard], &o)
		if err != nil {
			return all, fmt.Errorf("verify shard %d: %w", shard, err)
		}
		v.tellUnproved(&o)
		v.tellStrays()
		all = append(all, v.Verification)
	}
	return all, nil
}

// served asks which shards have an owner.
func (l *Ledger) served(ctx context.Context) ([]Head, error) {
	present, err := l.cfg.Owners.Present(ctx)
	if err != nil {
		return nil, fmt.Errorf("read membership: %w", err)
	}
	ask, cancel := context.WithTimeout(ctx, askOwnersFor)
	defer cancel()
	if !present {
		cancel()
	}
	return l.cfg.Owners.Heads(ask)
}

// verifyShard begins again, with a later snapshot, whenever the entries that it was to read next have been dropped
// since.
func (l *Ledger) verifyShard(
	ctx context.Context, r *Reader, served *Head, heads headsByEntry, o *VerifyOptions,
) (*verifier, error) {
	silent := served.Problem != ""
	archive := o.Archive || len(heads) > 0 && r.archive != nil && (silent || !served.Drops)
	for {
		v := &verifier{
			Verification: Verification{Shard: served.Shard},
			shards:       l.cfg.Cluster.Shards,
			served:       served,
			heads:        maps.Clone(heads),
			progress:     o.Progress,
		}
		if err := v.run(ctx, r, archive); err != nil || v.Damage != DamageMissing {
			v.Unknown = silent && !o.Archive && len(heads) > 0 && v.From > 1 && v.Damage == ""
			if archive && v.From > 1 && !v.Unknown {
				v.damaged(DamageMissing,
					1, "neither journal nor archive has what was before entry %d: it was dropped, or removed", v.From)
			}
			return v, err
		}
		state, err := r.beginning(ctx, v.Shard)
		if err != nil || state.Number < v.folds {
			return v, nil // missing for good
		}
	}
}

// verifier checks one shard.
type verifier struct {
	Verification
	shards    int // of the cluster
	served    *Head
	folds     uint64       // the entry that the fold begins with
	heads     headsByEntry // of checkpoints; those compared are removed
	proved    uint64       // the entry whose state was last compared with that of a checkpoint; 0 = none
	form      string       // in which a checkpoint tells states, where this program computes them otherwise
	snapshots map[uint64]keptSnapshot
	state     *projection.Shard
	lost      *journal.Checker
	strays    strays
	progress  func(int, uint64)
}

// keptSnapshot holds the hash and the digest of the state in a snapshot.
type keptSnapshot struct{ hash, digest events.Hash }

// run checks the shard. It returns an error if the check could not be made.
func (v *verifier) run(ctx context.Context, r *Reader, archive bool) error {
	if err := v.begin(ctx, r); err != nil || v.Damage != "" {
		return err
	}
	for rec, err := range r.upToGap(ctx, v.Shard, v.state.Number+1) {
		switch {
		case err == nil:
			v.apply(rec)
		case errors.Is(err, store.ErrTrimmed):
			v.damaged(DamageMissing, v.state.Number+1, "%v", err)
		default:
			if err = v.unreadable(err); err != nil {
				return err
			}
		}
		if v.Damage != "" {
			return nil
		}
	}
	v.end()
	if archive && v.Damage == "" {
		return v.compareArchive(ctx, r)
	}
	return nil
}

// unreadable turns an error that means damage into a finding at the next entry.
func (v *verifier) unreadable(err error) error {
	if errors.Is(err, events.ErrDamaged) {
		v.damaged(unread(err), v.state.Number+1, "%v", err)
		return nil
	}
	return err
}

// unread tells what cannot be read because of its version, and an archive of another history, from what is corrupt.
func unread(err error) Damage {
	if errors.Is(err, store.ErrConflict) {
		return DamageArchive
	}
	return map[bool]Damage{true: DamageVersion, false: DamageGarbled}[errors.Is(err, events.ErrVersion)]
}

// apply folds an entry, or notes its damage.
func (v *verifier) apply(rec store.Record) {
	e, err := events.Decode(rec.Data)
	if err != nil {
		v.damaged(unread(err), rec.Number, "%v", err)
		return
	}
	if e.Number != rec.Number || int(e.Shard) != v.Shard {
		v.damaged(DamageOrder, rec.Number, "entry %d of shard %d is stored in its place", e.Number, e.Shard)
		return
	}
	if err := v.state.Replay(e); errors.Is(err, projection.ErrChain) {
		v.damaged(DamageChain, e.Number, "%v", err)
		return
	} else if err != nil {
		v.damaged(DamageTransition, e.Number, "%v", err)
		return
	}
	if _, problem := v.lost.Read(e); problem != "" {
		v.damaged(DamageLoss, e.Number, "%s", problem)
		return
	}
	v.Events += uint64(len(e.Events))
	v.strays.read(e, v.shards)
	v.compare()
	if v.progress != nil {
		v.progress(v.Shard, e.Number)
	}
}

// end notes what is missing at the end.
func (v *verifier) end() {
	last := v.state.Number
	if v.served.Problem == "" && v.served.Entry > last {
		v.damaged(DamageMissing, last+1, "the owner has entries up to %d", v.served.Entry)
	}
	for number := range v.snapshots {
		if number > last {
			v.damaged(DamageMissing, last+1, "a snapshot is of entry %d", number)
		}
	}
	for number := range v.heads {
		if number > last {
			v.damaged(DamageMissing, last+1, "a checkpoint has entry %d", number)
		} else {
			v.Dropped++
		}
	}
}

// tellStrays notes strays where there is no other damage: they do not keep the rest from being checked.
func (v *verifier) tellStrays() {
	if s := &v.strays; s.count > 0 {
		v.damaged(DamageShard, s.entry, "%s is of shard %d of %d; events of tasks and items of other shards: %d",
			s.task, s.task.Shard(v.shards), v.shards, s.count)
	}
}

// begin reads the snapshots and chooses the state to begin with.
func (v *verifier) begin(ctx context.Context, r *Reader) error {
	v.state, v.From, v.snapshots = projection.NewShard(v.Shard), 1, map[uint64]keptSnapshot{}
	dropped, err := r.dropped(ctx, v.Shard)
	if err != nil {
		return v.unreadable(err)
	}
	kept, err := r.kept(ctx, v.Shard)
	if errors.Is(err, events.ErrDamaged) {
		v.damaged(DamageSnapshot, 0, "the pointer: %v", err)
		return nil
	}
	for _, s := range slices.Backward(kept) {
		state, err := r.Restore(ctx, v.Shard, s)
		switch {
		case errors.Is(err, store.ErrTrimmed) && !r.stillKept(ctx, v.Shard, s):
			continue // newer ones have taken its place
		case errors.Is(err, store.ErrTrimmed) || errors.Is(err, events.ErrDamaged):
			v.damaged(DamageSnapshot, s.Entry, "%v", err)
			return nil
		case err != nil:
			return err
		}
		v.snapshots[s.Entry] = keptSnapshot{state.Hash, state.Digest(nil)}
		if dropped {
			v.state, v.From, dropped = state, state.Number+1, false
		}
	}
	v.lost = journal.NewChecker(v.state.Number+1, v.state.Hash)
	v.folds = v.state.Number + 1
	v.compare()
	if v.folds > 1 && v.Damage == "" {
		return v.chain(ctx, r)
	}
	return err
}

// chain checks that the entries before the one that the fold begins with lead up to it.
func (v *verifier) chain(ctx context.Context, r *Reader) error {
	next, err := r.Begins(ctx, v.Shard)
	if err != nil || next >= v.folds {
		return err
	}
	v.From = next
	var prev *events.Entry
	for rec, err := range r.upToGap(ctx, v.Shard, next) {
		var e *events.Entry
		if err == nil {
			e, err = events.Decode(rec.Data)
		}
		switch {
		case errors.Is(err, store.ErrTrimmed):
			v.damaged(DamageMissing, next, "%v", err)
			return nil
		case errors.Is(err, events.ErrDamaged):
			v.damaged(unread(err), next, "%v", err)
			return nil
		case err != nil:
			return err
		case e.Number != next || int(e.Shard) != v.Shard:
			v.damaged(DamageOrder, next, "entry %d of shard %d is stored in its place", e.Number, e.Shard)
		case prev != nil && e.Prev != prev.Hash:
			v.damaged(DamageChain, next, "it follows hash %s, the entry before has %s", e.Prev, prev.Hash)
		case e.Number+1 == v.folds && e.Hash != v.state.Hash:
			v.damaged(DamageSnapshot, e.Number, "its hash is %s, the snapshot's %s", e.Hash, v.state.Hash)
		default:
			v.compareHead(e.Number, e.Hash)
		}
		if prev, next = e, next+1; v.Damage != "" || next == v.folds {
			return nil
		}
	}
	return nil
}
