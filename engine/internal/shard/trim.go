package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/signal"
	"taskledger/events"
	"taskledger/store"
)

const (
	// trimEvery is the time between two looks at what has settled in the archive.
	trimEvery = 5 * time.Second
	// trimRetry is the pause after a failure.
	trimRetry = 2 * time.Second
	// behindAfter bounds how long the archive may take until it holds what it is to hold: then it is behind.
	behindAfter = time.Minute
	// segmentsAtOnce bounds the segments that are archived before the journal is trimmed: one that has grown long gets
	// short bit by bit.
	segmentsAtOnce = 16
)

// trims keeps a shard's journal short, beside its owner: entries that even the older snapshot covers are archived,
// read back, and then removed. When it cannot, the journal grows and the problem is shown.
type trims struct {
	cfg       *Config
	ownership store.Ownership
	log       *slog.Logger
	snapshots *snapshots
	end       *atomic.Uint64 // last entry of the journal
	wake      signal.Signal

	problem  atomic.Pointer[string] // nil: none
	first    atomic.Uint64          // entry that the journal begins with; 0 = not known yet
	archived atomic.Uint64          // last entry that was read back from the archive, as far as known
	late     atomic.Uint64          // entry that the archive begins with, where what was before is lost; 0 = it begins with the first
	behind   atomic.Uint64          // entries that the archive was to hold and has not held for behindAfter

	head       store.ArchiveHead
	intact     int64          // revision of the pointer whose snapshots were read back
	known      bool           // head was read
	lost       []uint64       // entries after which the store lost the rest of the journal, as that records it
	confirming []acknowledged // not yet read back
	confirmed  uint64         // last entry that was read back
	lag        lag
}

// lag tells for how long the archive has not reached what it is to hold: under a load that goes on there is always
// something left, and that is no lag.
type lag struct {
	until uint64 // it is to hold the entries before
	since time.Time
}

// behind returns how many of the entries before until the archive does not hold, whose last entry is done, once it has
// not held those before an earlier one for behindAfter.
func (l *lag) behind(until, done uint64, now time.Time) uint64 {
	switch {
	case until <= done+1:
		*l = lag{}
	case l.until <= done+1:
		*l = lag{until, now}
	case now.Sub(l.since) >= behindAfter:
		return until - 1 - done
	}
	return 0
}

// measure notes whether the archive is behind.
func (t *trims) measure(now time.Time) {
	kept, first := t.snapshots.current().Kept, t.first.Load()
	if len(kept) < 2 || first == 0 || !t.cfg.Loader.Archives {
		return
	}
	t.behind.Store(t.lag.behind(kept[1].Entry, t.archivedTo(first), now))
}

// acknowledged is a segment that the archive has acknowledged. First is 0 for what was archived before this owner
// came.
type acknowledged struct {
	first   uint64
	head    store.ArchiveHead
	entries []store.Record // nil: they are read from the journal again
	at      time.Time
}

func newTrims(s *snapshots, end *atomic.Uint64) *trims {
	return &trims{
		cfg:       s.cfg,
		ownership: s.ownership,
		log:       s.log,
		snapshots: s,
		end:       end,
		wake:      s.trims,
	}
}

// unarchived returns how many entries were not read back from the archive, as far as that is known; 0 where nothing is
// archived.
func (t *trims) unarchived() uint64 {
	first, last := t.first.Load(), t.end.Load()
	if first == 0 || !t.cfg.Loader.Archives {
		return 0
	}
	return last - min(last, t.archivedTo(first))
}

// archivedTo returns the last entry of which all before it are archived, in a journal that begins with an entry.
func (t *trims) archivedTo(first uint64) uint64 { return max(t.archived.Load(), first-1) }

// run archives and trims until ctx ends.
func (t *trims) run(ctx context.Context) {
	if !t.cfg.Loader.Archives && !t.cfg.Drops {
		return
	}
	t.wake.Notify()
	for {
		pause := trimEvery
		if err := t.step(ctx); err != nil && ctx.Err() == nil {
			t.report(err)
			pause = trimRetry
		} else if err == nil {
			t.problem.Store(nil)
		}
		t.measure(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-time.After(pause):
		}
	}
}

// report shows a problem, and logs it when it is new.
func (t *trims) report(err error) {
	text := err.Error()
	if old := t.problem.Swap(&text); old == nil || *old != text {
		t.log.Warn("the journal is not trimmed", "err", err)
	}
}

// step does what can be done now.
func (t *trims) step(ctx context.Context) error {
	pointer := t.snapshots.current()
	if len(pointer.Kept) < 2 {
		return nil
	}
	until := pointer.Kept[1].Entry
	if t.first.Load() == 0 {
		first, err := t.cfg.Loader.Trimmer.First(ctx, t.shard())
		if err != nil {
			return fmt.Errorf("find the first entry: %w", err)
		}
		t.first.Store(first)
	}
	if archive := t.cfg.Loader.Archive; archive != nil {
		if err := t.confirm(ctx, archive, until); err != nil {
			return err
		}
		until = min(until, t.confirmed+1)
		pointer = t.snapshots.current() // under load newer ones have come meanwhile, which cover no less
	}
	if err := t.relyOn(ctx, pointer); errors.Is(err, errReplaced) {
		return nil
	} else if err != nil {
		return err
	}
	if t.first.Load() >= until {
		return nil
	}
	err := t.cfg.Loader.Trimmer.Trim(ctx, t.ownership, pointer, t.first.Load(), until)
	if err != nil {
		t.first.Store(0) // some of it may have been trimmed
	}
	if errors.Is(err, store.ErrFenced) && t.snapshots.current().Revision != pointer.Revision {
		t.wake.Notify() // a newer snapshot came between
		return nil
	}
	if err != nil {
		return fmt.Errorf("trim: %w", err)
	}
	t.first.Store(until)
	return nil
}

func (t *trims) shard() int { return t.ownership.Shard }

// errReplaced reports that a newer snapshot has taken the place of one that was being read.
var errReplaced = errors.New("a newer snapshot came between")

// relyOn reads both snapshots back, once: what is trimmed stands in them alone. A damaged one is left out from now on.
func (t *trims) relyOn(ctx context.Context, pointer store.SnapshotPointer) error {
	if t.intact == pointer.Revision {
		return nil
	}
	for _, s := range pointer.Kept {
		err := t.cfg.Loader.Reader.Intact(ctx, t.shard(), s)
		switch {
		case err == nil:
			continue
		case t.snapshots.current().Revision != pointer.Revision:
			t.wake.Notify() // a newer snapshot came between
			return errReplaced
		case errors.Is(err, events.ErrDamaged), errors.Is(err, store.ErrTrimmed):
			t.snapshots.leaveOut(s)
		}
		return err
	}
	t.intact = pointer.Revision
	return nil
}

// confirm archives the entries before until, and reads back what has been archived for long enough to be durable.
func (t *trims) confirm(ctx context.Context, archive Archive, until uint64) error {
	if !t.known {
		head, err := archive.Head(ctx, t.shard())
		if err != nil {
			return fmt.Errorf("read the end of the archive: %w", err)
		}
		if err := t.fits(ctx, archive, &head); err != nil { // before anything is added to another history
			return err
		}
		t.archived.Store(min(head.Entry, max(t.first.Load(), 1)-1)) // what is trimmed was read back
		if first := t.first.Load(); head == (store.ArchiveHead{}) && first > 1 {
			head.Entry = first - 1
			t.beginsLate(first)
		} else if first > 1 {
			begins, err := t.cfg.Loader.Reader.Begins(ctx, t.shard())
			if err != nil {
				return fmt.Errorf("find the beginning of the archive: %w", err)
			}
			t.beginsLate(begins)
		}
		t.head, t.known = head, true
		t.confirming = append(t.confirming[:0], acknowledged{head: head, at: time.Now()})
	}
	err := t.archive(ctx, archive, until)
	if err == nil {
		err = t.readConfirmable(ctx, archive)
	}
	if errors.Is(err, store.ErrConflict) { // somebody else has written, or the archive has lost some: look again
		t.known, t.confirmed = false, 0
	}
	return err
}

// errShort reports an archive that ends before the journal begins: what was trimmed between is in neither.
var errShort = errors.New("the archive has lost its end")

// fits wraps store.ErrConflict if the archive does not end with what the journal has, and errShort if it ends
// before that. Where a loss is why, or was given up since, the head is that of an archive which begins anew with
// what the journal has.
func (t *trims) fits(ctx context.Context, archive Archive, head *store.ArchiveHead) error {
	same, err := t.meets(ctx, archive, head.Entry)
	if same {
		return claim(ctx, archive)
	}
	if errors.Is(err, errShort) {
		// While the archive is short nothing is trimmed, so what is given up then ends behind the journal's first
		// entry.
		if !slices.ContainsFunc(t.lost, func(end uint64) bool { return end >= t.first.Load() }) {
			return fmt.Errorf("%w; remedy: %s", err, t.remedy("restore a later backup of the archive, or, "+
				"with all nodes stopped, give up what is in neither: taskledger repair --restored"))
		}
		t.beginAnew(head)
		return nil
	}
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	explained, unread := t.cfg.Loader.explained(ctx, t.shard(), t.lost)
	// What was given up later than the archive ends was given up with its end before the operator's eyes.
	if unread == nil && !explained && slices.ContainsFunc(t.lost, func(end uint64) bool { return end >= head.Entry }) {
		explained, unread = t.cfg.Loader.related(ctx, t.shard())
	}
	if unread != nil {
		return unread
	}
	if !explained {
		return fmt.Errorf("%w; remedy: %s", err, t.remedy("restore the archive of the same backup, or, "+
			"with all nodes stopped, give up what came after it: taskledger repair --restored"))
	}
	t.beginAnew(head)
	return nil
}

// CopyRemedy is the one thing to do about damage of a store in files.
const CopyRemedy = "restore the whole directory, its archive included, from one copy"

// remedy returns the remedy for a store of the kind that there is.
func (t *trims) remedy(inEtcd string) string {
	if store.InFiles(t.cfg.Loader.Journal) {
		return CopyRemedy
	}
	return inEtcd
}

// beginAnew makes the head that of an archive which begins anew with the journal's first entry.
func (t *trims) beginAnew(head *store.ArchiveHead) {
	ended := head.Entry
	*head = store.ArchiveHead{Entry: max(t.first.Load(), 1) - 1, Sequence: head.Sequence, Begins: head.Sequence}
	t.log.Warn("the archive does not end with what the journal has, which was given up: it begins anew",
		"ended", ended, "entry", head.Entry+1)
}

// meets compares the last entry of the archive with the journal, or with what follows it there where it was
// trimmed. It wraps store.ErrConflict if they are of two histories, and errShort if they do not meet; same says
// that they are of one, which is not known where nothing can be compared.
func (t *trims) meets(ctx context.Context, archive Archive, end uint64) (same bool, err error) {
	first, last := t.first.Load(), t.end.Load()
	switch {
	case end > last:
		return false, fmt.Errorf(
			"%w: it ends with entry %d, the journal with %d: it is another cluster's, or the store was restored",
			store.ErrConflict,
			end,
			last,
		)
	case end == 0:
		return false, nil
	case end+1 < first:
		return false, fmt.Errorf("%w: it ends with entry %d, and the journal begins with entry %d", errShort, end, first)
	case end >= first:
		err = t.compare(ctx, archive, end, end)
	case end < last:
		err = t.continues(ctx, end)
	default:
		return false, nil
	}
	return err == nil, err
}

// continues wraps store.ErrConflict if the journal does not go on where the archive ends.
func (t *trims) continues(ctx context.Context, end uint64) error {
	before, err := t.cfg.Loader.archived(ctx, t.shard(), end)
	if err != nil {
		return fmt.Errorf("read the archive back: %w", err)
	}
	next, err := t.cfg.Loader.journalled(ctx, t.shard(), end+1)
	if err != nil {
		return err
	}
	if before == nil || next == nil || next.Prev != before.Hash {
		return fmt.Errorf("%w: entry %d of the journal does not follow its last one", store.ErrConflict, end+1)
	}
	return nil
}

// claim has the archive, in which the shard has found its entries, tell of which cluster it is, where it tells none.
func claim(ctx context.Context, archive Archive) error {
	if of, can := archive.(store.Claiming); can {
		return of.Claim(ctx)
	}
	return nil
}

// beginsLate notes what the archive begins with.
func (t *trims) beginsLate(first uint64) {
	if first <= 1 {
		t.late.Store(0)
	} else if t.late.Swap(first) != first {
		t.log.Warn("the archive begins late: what was trimmed before is not in it", "entry", first)
	}
}

// readConfirmable reads back the segments whose time has come.
func (t *trims) readConfirmable(ctx context.Context, archive Archive) error {
	for len(t.confirming) > 0 && time.Since(t.confirming[0].at) >= archive.DurableAfter() {
		oldest := &t.confirming[0]
		if err := t.readBack(ctx, archive, oldest); err != nil {
			return err
		}
		t.confirmed = oldest.head.Entry
		if oldest.head.Sequence != 0 { // else it stands for what was never archived
			t.archived.Store(t.confirmed)
		}
		*oldest = acknowledged{}
		t.confirming = t.confirming[1:]
	}
	return nil
}

// archive packs the entries before until into segments.
func (t *trims) archive(ctx context.Context, archive Archive, until uint64) error {
	if t.head.Entry+1 >= until {
		return nil
	}
	var segment []store.Record
	size, segments := 0, 0
	flush := func() error {
		head, err := archive.Archive(ctx, t.shard(), t.head, segment)
		if err != nil {
			return fmt.Errorf("archive entries %d to %d: %w", segment[0].Number, segment[len(segment)-1].Number, err)
		}
		t.cfg.Archiver.Archived()
		done := acknowledged{first: segment[0].Number, head: head, at: time.Now()}
		if archive.DurableAfter() == 0 {
			done.entries = segment
		}
		t.head, segment, size = head, nil, 0
		t.confirming = append(t.confirming, done)
		if archive.DurableAfter() > 0 {
			return nil
		}
		return t.readConfirmable(ctx, archive)
	}
	for rec, err := range t.cfg.Loader.Journal.Read(ctx, t.shard(), t.head.Entry+1) {
		if errors.Is(err, store.ErrTrimmed) {
			return fmt.Errorf("the archive ends with entry %d and the journal begins later: %w", t.head.Entry, err)
		}
		if err != nil {
			return err
		}
		if rec.Number >= until {
			break
		}
		if len(segment) > 0 && size+len(rec.Data) > store.MaxSegmentBytes {
			if err := flush(); err != nil {
				return err
			}
			if segments++; segments == segmentsAtOnce {
				t.wake.Notify()
				return nil
			}
		}
		segment, size = append(segment, rec), size+len(rec.Data)
	}
	if len(segment) == 0 {
		return nil
	}
	return flush()
}

// readBack compares what the archive holds with the journal.
func (t *trims) readBack(ctx context.Context, archive Archive, s *acknowledged) error {
	if s.first == 0 {
		return t.compare(ctx, archive, t.first.Load(), s.head.Entry)
	}
	entries := s.entries
	if entries == nil {
		var err error
		if entries, err = t.read(ctx, s.first, s.head.Entry); err != nil {
			return err
		}
	}
	if err := archive.Confirm(ctx, t.shard(), s.head, entries); err != nil {
		return fmt.Errorf("read the archive back: %w", err)
	}
	return nil
}

// read reads entries of the journal.
func (t *trims) read(ctx context.Context, first, last uint64) (entries []store.Record, err error) {
	for rec, err := range t.cfg.Loader.Journal.Read(ctx, t.shard(), first) {
		if err != nil {
			return nil, err
		}
		if entries = append(entries, rec); rec.Number == last {
			break
		}
	}
	return entries, nil
}

// compare compares the archive with the journal, from entry first to last; what the journal does not hold is left out.
func (t *trims) compare(ctx context.Context, archive Archive, first, last uint64) error {
	if first = max(first, t.first.Load()); last < first {
		return nil
	}
	next, stop := iter.Pull2(archive.ReadArchive(ctx, t.shard(), first))
	defer stop()
	for rec, err := range t.cfg.Loader.Journal.Read(ctx, t.shard(), first) {
		if err != nil {
			return err
		}
		archived, err, ok := next()
		if err == nil && (!ok || archived.Head != rec.Head || !bytes.Equal(archived.Data, rec.Data)) {
			err = fmt.Errorf("%w: entry %d differs from the journal's", store.ErrConflict, rec.Number)
		}
		if err != nil {
			return fmt.Errorf("read the archive back: %w", err)
		}
		if rec.Number >= last {
			break
		}
	}
	return nil
}
