package ledger

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"taskledger/events"
	"taskledger/store"
)

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
	v.damaged(DamageArchive,
		journal.Number, "the archive continues otherwise: it holds another entry of that number than the journal")
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
