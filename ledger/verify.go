package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/journal"
	"taskledger/store"
)

// Damage is a kind of damage that Verify and VerifyExport can find.
type Damage string

// The kinds of damage. Those that speak of an entry mean the one that Verification.At names.
const (
	DamageGarbled    Damage = "garbled"              // bytes were flipped: they contradict the entry's own hash, or make no sense
	DamageVersion    Damage = "unknown version"      // no damage that is known: another version of the program wrote it, in a form that this one does not read
	DamageMissing    Damage = "missing entry"        // it is neither in the journal nor in the archive, or not where it has to be
	DamageOrder      Damage = "out of order"         // another entry is stored in its place
	DamageChain      Damage = "broken chain"         // it does not continue the entry before
	DamageTransition Damage = "illegal transition"   // it holds an event that the state of its task or record does not allow
	DamageLoss       Damage = "false loss"           // it says of entries that they were lost, or which was the last before them, and others show that it is not so
	DamageSnapshot   Damage = "snapshot differs"     // a snapshot cannot be read, or is not the fold of the entries up to it
	DamageState      Damage = "state differs"        // what the owner serves is not the fold of the entries
	DamageArchive    Damage = "archive differs"      // the archive continues otherwise than the journal, or holds other bytes
	DamageCheckpoint Damage = "differs from history" // a kept checkpoint has another hash: this entry, or one before it, was replaced
)

// Verification is what Verify found out about a shard.
type Verification struct {
	Shard     int            `json:"shard"`
	From      uint64         `json:"from"`    // the first entry checked: 1 unless the beginning was dropped and a snapshot stands for it
	Entries   uint64         `json:"entries"` // number of the last one that was read and applied
	Events    uint64         `json:"events"`
	Tasks     int            `json:"tasks"`
	Hash      events.Hash    `json:"hash"`                // of the last entry
	Compared  bool           `json:"compared"`            // the owner answered, and its state was compared with the fold
	Snapshots int            `json:"snapshots"`           // number of snapshots that were compared with the fold, or that it began with
	Heads     int            `json:"heads"`               // number of heads of checkpoints that were compared
	ProvedTo  uint64         `json:"proved_to"`           // the last entry that a head was compared with; 0 = the checkpoints prove nothing
	Dropped   int            `json:"dropped,omitempty"`   // number of heads whose entries were dropped by rule, so that nothing is left to compare
	Unproved  string         `json:"unproved,omitempty"`  // what the checkpoints do not prove, in words; "" = no checkpoint was given, or all is proved
	Unknown   bool           `json:"unknown,omitempty"`   // whether what was before From was dropped by rule, or removed: no owner tells
	Archived  uint64         `json:"archived,omitempty"`  // number of archived entries that were compared with the journal
	Losses    []journal.Loss `json:"losses,omitempty"`    // entries that were given up or lost, as the journal records it: no damage
	Damage    Damage         `json:"damage,omitempty"`    // the first damage; "" = none
	At        uint64         `json:"damage_at,omitempty"` // number of its entry
	Problem   string         `json:"problem,omitempty"`   // the damage in words; "" = none
}

// damaged notes the first damage.
func (v *Verification) damaged(kind Damage, entry uint64, format string, args ...any) {
	if v.Damage == "" {
		v.Damage, v.At = kind, entry
		v.Problem = fmt.Sprintf("entry %d: %s: %s", entry, kind, fmt.Sprintf(format, args...))
	}
}

// VerifyOptions say what else to check; the zero value is nothing else.
type VerifyOptions struct {
	// Archive says that every entry must be in the archive or the journal, and alike in both; the Ledger must have
	// one. Against implies it for the shards whose owners do not drop entries, where the Ledger has an archive. Where no owner
	// answers, Against compares with the archive, too, and entries that are in neither make the Verification Unknown.
	Archive  bool
	Against  []Checkpoint                  // the entries that they name must have the hashes that they name, and have led to the states
	Progress func(shard int, entry uint64) // called for every entry that was applied; nil = none
}

// Verify reads all that is left of every shard, from the archive where the journal was trimmed, and checks that no entry
// is missing, that each continues the hash chain, that every transition is legal, that no loss is recorded which the entries contradict,
// and that the snapshots and the state of the owner equal the fold. It checks a shard up to the first damage. Damage is part of the result; an error means that the check could
// not be made.
//
// If the first entries were dropped, checking begins at the older snapshot, and From says so; of entries before it that are still there
// only the chain is checked. Each owner, one after the other, computes a digest of its state, and decides nothing meanwhile, for one
// to three microseconds a task; its session goes on.
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
		v, err := verifyShard(ctx, r, &served[shard], heads[shard], &o)
		if err != nil {
			return all, fmt.Errorf("verify shard %d: %w", shard, err)
		}
		v.tellUnproved(&o)
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

// verifyShard begins again, with a later snapshot, whenever the entries that it was to read next have been dropped since.
func verifyShard(ctx context.Context, r *Reader, served *Head, heads headsByEntry, o *VerifyOptions) (*verifier, error) {
	silent := served.Problem != ""
	archive := o.Archive || len(heads) > 0 && r.archive != nil && (silent || !served.Drops)
	for {
		v := &verifier{Verification: Verification{Shard: served.Shard}, served: served, heads: maps.Clone(heads), progress: o.Progress}
		if err := v.run(ctx, r, archive); err != nil || v.Damage != DamageMissing {
			v.Unknown = silent && !o.Archive && len(heads) > 0 && v.From > 1 && v.Damage == ""
			if archive && v.From > 1 && !v.Unknown {
				v.damaged(DamageMissing, 1, "neither journal nor archive has what was before entry %d: it was dropped, or removed", v.From)
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
	served    *Head
	folds     uint64       // the entry that the fold begins with
	heads     headsByEntry // of checkpoints; those compared are removed
	proved    uint64       // the entry whose state was last compared with that of a checkpoint; 0 = none
	form      string       // in which a checkpoint tells states, where this program computes them otherwise
	snapshots map[uint64]keptSnapshot
	state     *projection.Shard
	lost      *journal.Checker
	progress  func(int, uint64)
}

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

// unread tells what cannot be read because of its version, and an archive of another history, from what makes no sense.
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
	v.compare()
	if v.progress != nil {
		v.progress(v.Shard, e.Number)
	}
}

// compare compares the fold as it is now with the checkpoint, the snapshot and the owner's state of the same entry.
func (v *verifier) compare() {
	number := v.state.Number
	v.Entries, v.Hash, v.Tasks, v.Losses = number, v.state.Hash, v.state.Len(), v.state.Journal().Losses()
	head, named := v.compareHead(number, v.state.Hash)
	named = named && head.State != (events.Hash{}) && v.Damage == ""
	if named && head.Form != projection.DigestForm() {
		v.form, named = head.Form, false
	}
	served := v.served.Problem == "" && v.served.Entry == number
	snapshot, kept := v.snapshots[number]
	if !served && !kept && !named {
		return
	}
	digest := v.state.Digest(nil)
	if named {
		v.compareState(&head, digest)
	}
	if kept {
		v.Snapshots++
		if snapshot.hash != v.state.Hash || snapshot.digest != digest {
			v.damaged(DamageSnapshot, number, "it is not the fold of the entries up to it")
		}
	}
	if served {
		v.Compared = true
		if v.served.Hash != v.state.Hash || v.served.Digest != digest {
			v.damaged(DamageState, number, "the owner's state differs from the fold of the journal")
		}
	}
}

// compareHead compares an entry with the head of a checkpoint, if there is one.
func (v *verifier) compareHead(number uint64, hash events.Hash) (head CheckpointHead, named bool) {
	if head, named = v.heads[number]; !named {
		return head, false
	}
	delete(v.heads, number)
	v.Heads++
	if head.Hash != hash {
		v.damaged(DamageCheckpoint, number, replaced, hash, head.Hash)
	} else if v.Damage == "" {
		v.ProvedTo = max(v.ProvedTo, number)
	}
	return head, true
}

const replaced = "its hash is %s, the checkpoint has %s: this entry, or one before, was replaced"

// compareState compares the fold with the state in a checkpoint. Entries lead to one state: if they are those of the
// checkpoint, what the fold began with is not.
func (v *verifier) compareState(head *CheckpointHead, digest events.Hash) {
	switch {
	case head.State == digest:
		v.proved = head.Entry
	case v.folds > 1:
		v.damaged(DamageSnapshot, v.folds-1, "the state that it holds has become another one by entry %d than the checkpoint has", head.Entry)
	default:
		v.damaged(DamageCheckpoint, head.Entry, "the entries lead to another state than the checkpoint has, which the owner served then")
	}
}

// tellUnproved says what the checkpoints do not prove of a shard.
func (v *verifier) tellUnproved(o *VerifyOptions) {
	if len(o.Against) == 0 || v.Damage != "" || v.Entries == 0 {
		return
	}
	var all []string
	if v.ProvedTo == 0 {
		all = append(all, "no checkpoint names an entry that is left")
	}
	if v.Dropped > 0 {
		all = append(all, fmt.Sprintf("%d of the entries that they name were dropped before entry %d", v.Dropped, v.From))
	}
	if v.From > 1 {
		all = append(all, fmt.Sprintf("the entries before %d are not there", v.From))
	}
	if v.Unknown {
		all = append(all, "whether these were dropped by rule, or removed, is not known: no owner of the shard answers")
	}
	switch {
	case v.folds == 1 || v.proved != 0:
	case v.form != "":
		all = append(all, fmt.Sprintf("the state after entry %d is not compared: the checkpoint tells states in the form %s, this program in %s",
			v.folds-1, v.form, projection.DigestForm()))
	default:
		all = append(all, fmt.Sprintf("the state after entry %d, with which the fold begins, stands in no checkpoint of that entry or a later one",
			v.folds-1))
	}
	if v.ProvedTo != 0 && v.ProvedTo < v.Entries {
		all = append(all, fmt.Sprintf("the entries after %d came after the checkpoint", v.ProvedTo))
	}
	v.Unproved = strings.Join(all, "; ")
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

// compareArchive compares the entries that are both in the archive and in the journal, byte for byte.
func (v *verifier) compareArchive(ctx context.Context, r *Reader) error {
	first, err := r.First(ctx, v.Shard)
	if err != nil {
		return err
	}
	next, stop := iter.Pull2(r.journal.Read(ctx, v.Shard, first))
	defer func() { stop() }()
	at := first
	for archived, err := range r.archive.ReadArchive(ctx, v.Shard, first) {
		if errors.Is(err, store.ErrNoArchive) {
			return nil // every entry was read: the journal is whole
		}
		if err != nil {
			return v.archiveUnreadable(err, at)
		}
		if at = archived.Number + 1; archived.Number < first {
			continue
		}
		kept, err, ok := next()
		if errors.Is(err, store.ErrTrimmed) || !ok { // somewhere in the page
			kept, err = r.journal.Entry(ctx, v.Shard, archived.Number)
		}
		if errors.Is(err, store.ErrTrimmed) {
			trimmed, err := r.First(ctx, v.Shard)
			if err != nil {
				return err
			}
			if trimmed <= archived.Number {
				v.damaged(DamageMissing, archived.Number, "the archive has it, the journal has those before it")
				return nil
			}
			first = trimmed
			stop()
			next, stop = iter.Pull2(r.journal.Read(ctx, v.Shard, first))
			continue
		}
		if err != nil {
			return err
		}
		if v.differ(kept, archived); v.Damage != "" {
			return nil
		}
		v.Archived++
	}
	return nil
}

// differ finds out which of two forms of an entry that should be alike is damaged.
func (v *verifier) differ(journal, archived store.Record) {
	if bytes.Equal(journal.Data, archived.Data) {
		return
	}
	if _, err := events.Decode(journal.Data); err != nil {
		v.damaged(unread(err), journal.Number, "in the journal: %v", err)
	}
	if _, err := events.Decode(archived.Data); err != nil {
		v.damaged(unread(err), journal.Number, "in the archive: %v", err)
	}
	v.damaged(DamageArchive, journal.Number, "the archive continues otherwise: it holds another entry of that number than the journal")
}

func (v *verifier) archiveUnreadable(err error, entry uint64) error {
	switch {
	case errors.Is(err, store.ErrTrimmed):
		v.damaged(DamageMissing, entry, "in the archive: %v", err)
	case errors.Is(err, events.ErrDamaged):
		v.damaged(unread(err), entry, "in the archive: %v", err)
	default:
		return err
	}
	return nil
}

// keptSnapshot is what a snapshot holds.
type keptSnapshot struct{ hash, digest events.Hash }

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
