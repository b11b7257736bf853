package filestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"taskledger/events"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/journal"
	"taskledger/store"
)

// Receiver takes the copy of a cluster into a journaler. It implements store.Receiver.
type Receiver struct {
	of       string
	cluster  store.Cluster
	store    *Store // what is there; nil = nothing
	finished bool   // the cluster is there
	begun    bool
	journal  journal.Journaler // nil: nothing is there, and reopen makes it
	reopen   func() (journal.Journaler, error)
	close    func() error
}

var _ store.Receiver = (*Receiver)(nil)

// ReceiveIn takes a copy into a journaler, which the caller closes after the Receiver. of names for people what is
// copied. It wraps store.ErrTaken where anything else is there than a copy of this cluster.
func ReceiveIn(j journal.Journaler, c store.Cluster, of string) (*Receiver, error) {
	r := &Receiver{
		of:      of,
		cluster: c,
		journal: j,
		reopen:  func() (journal.Journaler, error) { return j, nil },
		close:   func() error { return nil },
	}
	if err := r.look(); err != nil {
		return nil, fmt.Errorf("look what is there: %w", err)
	}
	return r, nil
}

// Receive looks at the place of a cluster that is to be copied into the files of a directory, which need not be there,
// and changes nothing. of names for people what is copied. It wraps store.ErrTaken where anything else is there than
// a copy of this cluster, filejournal.ErrInUse while somebody uses the directory, and what else filejournal.Open wraps.
// The caller closes it.
func Receive(dir string, c store.Cluster, of string, files filejournal.Options) (*Receiver, error) {
	r := &Receiver{of: of, cluster: c, close: func() error { return nil }}
	r.reopen = func() (journal.Journaler, error) {
		if err := r.Close(); err != nil {
			return nil, err
		}
		j, err := filejournal.Open(dir, files)
		if err != nil {
			return nil, err
		}
		r.close = j.Close
		return j, nil
	}
	err := r.lookInto(dir, files)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("look what is in %s: %w", dir, err), r.Close())
	}
	return r, nil
}

// Close ends the use of a directory.
func (r *Receiver) Close() error {
	end := r.close
	r.close = func() error { return nil }
	return end()
}

// lookInto looks at what is in a directory.
func (r *Receiver) lookInto(dir string, files filejournal.Options) error {
	there, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	other := ""
	for _, e := range there {
		switch e.Name() {
		case "format":
			return r.lookAt(dir, files)
		case "lock", "format.new": // a copy may have been killed before it had written the first file
		default:
			other = e.Name()
		}
	}
	if other != "" {
		return fmt.Errorf("%w: %s, and no store: name an empty directory", store.ErrTaken, other)
	}
	return nil
}

// lookAt looks at the journal in a directory.
func (r *Receiver) lookAt(dir string, files filejournal.Options) error {
	j, err := filejournal.OpenToRead(dir)
	if err != nil {
		return err
	}
	r.journal, r.close = j, j.Close
	if err := r.look(); err != nil {
		return err
	}
	if want := files.Durability; want != "" && want != j.Durability() {
		return fmt.Errorf("%w: it was created %s, and %s is asked for", filejournal.ErrDurability, j.Durability(), want)
	}
	return nil
}

// look finds out what the journaler holds.
func (r *Receiver) look() error {
	n, err := r.read()
	if err != nil {
		return err
	}
	if n == nil {
		return r.empty()
	}
	same := n.ID == r.cluster.ID && n.Shards == r.cluster.Shards && bytes.Equal(n.Key, r.cluster.Key)
	switch {
	case !same && n.Format == copyingFormat:
		return fmt.Errorf("%w: %w", store.ErrTaken, unfinished(n.ID, n.Copy))
	case !same:
		return fmt.Errorf("%w: it holds cluster %s, which is another one", store.ErrTaken, n.ID)
	}
	r.finished = n.Format != copyingFormat
	r.store = makeStore(r.journal, n, defaultQuota)
	r.store.broken = ErrReadOnly
	for shard := range n.Shards {
		if err := r.load(shard); err != nil {
			return err
		}
	}
	return nil
}

// read reads the notes of a store, or of one that is being copied; nil = there are none.
func (r *Receiver) read() (*notes, error) {
	stored, err := r.journal.ReadSnapshot(notesKey)
	if err != nil || len(stored.Parts) == 0 {
		return nil, err
	}
	n := &notes{}
	if err := json.Unmarshal(stored.Parts[0], n); err == nil && n.Format == copyingFormat && n.Version == notesVersion {
		if n.Shards < 1 || n.Shards > store.MaxShards {
			return nil, fmt.Errorf("%w: notes of a copy of %d shards", events.ErrDamaged, n.Shards)
		}
		return n, nil
	}
	return readNotes(r.journal)
}

// empty returns an error unless the journaler holds nothing.
func (r *Receiver) empty() error {
	kept, err := anythingIn(r.journal)
	if err == nil && kept != "" {
		err = fmt.Errorf("%w: there is %s, of no store", store.ErrTaken, kept)
	}
	return err
}

// load finds the end of the journal of a shard, of which no entry need be there.
func (r *Receiver) load(number int) error {
	r.store.shards[number] = &shard{parts: map[partKey][]byte{}}
	notes := r.store.notes.of(number)
	for range r.journal.Read(number, notes.held()) {
		return r.store.load(number)
	}
	return nil
}

// Copied implements store.Receiver.
func (r *Receiver) Copied(context.Context) (store.Store, bool, error) {
	if r.store == nil {
		return nil, false, nil
	}
	return r.store, r.finished, nil
}

// Begin implements store.Receiver.
func (r *Receiver) Begin(context.Context) error {
	if err := r.begin(); err != nil {
		return fmt.Errorf("begin the copy: %w", err)
	}
	return nil
}

func (r *Receiver) begin() (err error) {
	if r.finished {
		return fmt.Errorf("%w: the cluster is there", store.ErrTaken)
	}
	if r.journal, err = r.reopen(); err != nil {
		return err
	}
	r.store = nil
	if err := r.look(); err != nil { // somebody may have been there meanwhile
		return err
	}
	if r.finished {
		return fmt.Errorf("%w: the cluster is there", store.ErrTaken)
	}
	if r.store == nil {
		n := &notes{
			Format:  copyingFormat,
			Version: notesVersion,
			ID:      r.cluster.ID,
			Shards:  r.cluster.Shards,
			Key:     r.cluster.Key,
			Copy:    r.of,
		}
		if err := r.write(n); err != nil {
			return err
		}
		if err := r.look(); err != nil {
			return err
		}
	}
	r.begun = true
	lossy, is := r.journal.(journal.Lossy)
	if is && lossy.Lost() != "" { // what is missing is copied anew
		return lossy.Told()
	}
	return nil
}

// write writes the notes of the copy, and makes what was written before durable.
func (r *Receiver) write(n *notes) error { return full(writeNotes(r.journal, n)) }

// full adds store.ErrFull to the error of a journaler that has no room.
func full(err error) error {
	if errors.Is(err, journal.ErrFull) {
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	return err
}

// check returns an error unless a shard of a copy that was begun can be written.
func (r *Receiver) check(shard int) error {
	if !r.begun || r.finished {
		return fmt.Errorf("%w: no copy was begun", store.ErrTaken)
	}
	return r.store.checkShard(shard)
}

// AddShard implements store.Receiver. The parts of a snapshot are held in memory until all are there.
func (r *Receiver) AddShard(ctx context.Context, shard int, is store.ReceivedShard, parts store.PartsOf) error {
	if err := r.addShard(ctx, shard, is, parts); err != nil {
		return fmt.Errorf("copy what is kept of shard %d: %w", shard, err)
	}
	return nil
}

func (r *Receiver) addShard(ctx context.Context, shard int, is store.ReceivedShard, parts store.PartsOf) error {
	if err := errors.Join(ctx.Err(), r.check(shard)); err != nil {
		return err
	}
	kept := is.Pointer.Kept
	if err := checkKept(kept); err != nil {
		return err
	}
	if len(kept) > journal.Slots {
		return fmt.Errorf("%w: %d snapshots", store.ErrRefused, len(kept))
	}
	of := shardNotes{}
	if is.First > 1 {
		of.First = is.First
	}
	if len(kept) > 0 {
		of.Pointer = pointer{Revision: is.Pointer.Revision, Kept: kept}
	}
	if is.Loss.Revision != 0 {
		of.Loss = &loss{
			Entry:    is.Loss.Entry,
			Hash:     is.Loss.Hash,
			Reason:   is.Loss.Reason,
			Revision: is.Loss.Revision,
		}
	}
	for slot, s := range kept {
		state := journal.Snapshot{First: of.held()}
		for part, err := range parts(s) {
			if err != nil {
				return fmt.Errorf("snapshot %d: %w", s.Entry, err)
			}
			state.Parts = append(state.Parts, part)
		}
		if err := full(r.journal.WriteSnapshot(journal.Key{Shard: shard, Slot: slot}, state)); err != nil {
			return err
		}
		of.Pointer.Slots = append(of.Pointer.Slots, slot)
	}
	if of.First > 0 && len(kept) == 0 { // the journaler has to know which entries may be missing
		err := full(r.journal.WriteSnapshot(journal.Key{Shard: shard}, journal.Snapshot{First: of.First}))
		if err != nil {
			return err
		}
	}
	next := r.store.notes.with(shard, func(n *shardNotes) { *n = of })
	if err := r.write(next); err != nil {
		return err
	}
	r.store.notes = next
	return r.load(shard)
}

// AddEntries implements store.Receiver.
func (r *Receiver) AddEntries(ctx context.Context, shard int, entries []store.Record) error {
	if err := r.addEntries(ctx, shard, entries); err != nil {
		return fmt.Errorf("copy entries of shard %d: %w", shard, err)
	}
	return nil
}

func (r *Receiver) addEntries(ctx context.Context, shard int, entries []store.Record) error {
	if err := errors.Join(ctx.Err(), r.check(shard)); err != nil {
		return err
	}
	first, last := r.store.held(shard)
	next := max(first, last.Number+1)
	var all []journal.Entry
	for _, e := range entries {
		if e.Number < next && e.Number >= first {
			there, err := r.store.entry(shard, e.Number)
			if err == nil && (there.Head != e.Head || !bytes.Equal(there.Data, e.Data)) {
				err = fmt.Errorf("%w: entry %d is another one", store.ErrTaken, e.Number)
			}
			if err != nil {
				return err
			}
			continue
		}
		if e.Number != next || e.Revision <= last.Revision {
			return fmt.Errorf("%w: entry %d of revision %d, where entry %d after revision %d is due",
				store.ErrRefused, e.Number, e.Revision, next, last.Revision)
		}
		if err := checkValue(e.Data); err != nil {
			return err
		}
		all = append(all, journal.Entry{Shard: shard, Number: e.Number, Revision: e.Revision, Data: e.Data})
		next, last = next+1, e.Head
	}
	if err := full(r.append(all)); err != nil {
		r.begun = false // some of them may be there: whoever begins again finds out
		return err
	}
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	for _, e := range all {
		r.store.shards[shard].holds(store.Head{Number: e.Number, Revision: e.Revision}, len(e.Data))
	}
	return nil
}

// append appends entries, by one call where the journaler has one for several.
func (r *Receiver) append(all []journal.Entry) error {
	if j, is := r.journal.(interface{ AppendAll([]journal.Entry) error }); is {
		return j.AppendAll(all)
	}
	for _, e := range all {
		if err := r.journal.Append(e); err != nil {
			return err
		}
	}
	return nil
}

// Finish implements store.Receiver.
func (r *Receiver) Finish(ctx context.Context, revision int64, written store.Reads) error {
	err := errors.Join(ctx.Err(), r.check(0))
	if err == nil && revision <= 0 {
		err = fmt.Errorf("%w: revision %d", store.ErrRefused, revision)
	}
	if err == nil {
		n := *r.store.notes
		n.Format, n.Copy = notesFormat, ""
		n.Revisions, n.Written = revision, storedReads(written)
		err = r.write(&n)
	}
	if err != nil {
		return fmt.Errorf("finish the copy: %w", err)
	}
	r.finished = true
	return nil
}
