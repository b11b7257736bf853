package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"taskledger/events"
	"taskledger/store"
)

// archive says how far the archive of a shard has come.
type archive struct {
	first, end uint64            // entries of the source; 0 = it has none
	head       store.ArchiveHead // of the target
	hash       events.Hash       // of the last entry of the target
	sum        sum               // of the entries of the source that the target is to have
}

// compareArchive compares what the archive of the target holds with that of the source, and changes nothing.
func (c *copying) compareArchive(ctx context.Context, shard int, at *state) error {
	a := &at.archive
	if c.FromArchive != nil {
		head, err := c.FromArchive.Head(ctx, shard)
		if err != nil && !errors.Is(err, store.ErrNoArchive) {
			return fmt.Errorf("read its end: %w", err)
		}
		if a.end = head.Entry; a.end != 0 {
			if a.first, err = begins(ctx, c.FromArchive, shard, a.end); err != nil {
				return fmt.Errorf("find its beginning: %w", err)
			}
		}
	}
	if a.end+1 < at.First && !c.Drop {
		return fmt.Errorf("the journal begins with entry %d, and the archive ends with entry %d: %w",
			at.First, a.end, ErrTrimmed)
	}
	if c.ToArchive == nil {
		return a.archivable()
	}
	head, err := c.ToArchive.Head(ctx, shard)
	if err != nil && !errors.Is(err, store.ErrNoArchive) {
		return fmt.Errorf("read the end of the target's: %w", err)
	}
	a.head = head
	if c.finished && head.Entry != a.end {
		return fmt.Errorf(
			"the copy was finished before, and its archive ends with entry %d, that of the source with entry %d: %w",
			head.Entry,
			a.end,
			ErrDiffers,
		)
	}
	if head.Entry == 0 {
		return nil
	}
	c.archived = time.Now() // perhaps just before, by a copy that was interrupted
	if a.end == 0 || head.Entry > a.end {
		return fmt.Errorf("%w: entries up to %d are archived", ErrDiffers, head.Entry)
	}
	next, stop := iter.Pull2(c.FromArchive.ReadArchive(ctx, shard, a.first))
	defer stop()
	for have, err := range c.ToArchive.ReadArchive(ctx, shard, a.first) {
		if err != nil {
			return fmt.Errorf("read the target's: %w", err)
		}
		want, err, ok := next()
		if err != nil {
			return err
		}
		if !ok || !same(want, have) {
			return fmt.Errorf("%w: archived entry %d", ErrDiffers, have.Number)
		}
		e, err := decode(shard, want)
		if err != nil {
			return err
		}
		a.hash = e.Hash
		a.sum.add(want)
		at.Archived++
		c.Progress(shard, "compared")
	}
	return nil
}

// begins returns the first entry of an archive that ends with an entry: from there on all are there.
func begins(ctx context.Context, a store.ArchiveReader, shard int, end uint64) (uint64, error) {
	low, high := uint64(1), end // entries before low are not there, that of high is
	for low < high {
		middle := low + (high-low)/2
		if low == 1 {
			middle = 1 // the usual case
		}
		there, err := holds(ctx, a, shard, middle)
		if err != nil {
			return 0, err
		}
		if there {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high, nil
}

func holds(ctx context.Context, a store.ArchiveReader, shard int, entry uint64) (bool, error) {
	for _, err := range a.ReadArchive(ctx, shard, entry) {
		if errors.Is(err, store.ErrTrimmed) && !errors.Is(err, events.ErrDamaged) {
			return false, nil
		}
		return err == nil, err
	}
	return false, nil
}

// archivable returns an error where anything is archived, and no archive takes it.
func (a *archive) archivable() error {
	if a.end != 0 {
		return fmt.Errorf("%w: entries up to %d are archived, and no archive takes them", store.ErrRefused, a.end)
	}
	return nil
}

// addArchive adds what is missing in the archive of the target.
func (c *copying) addArchive(ctx context.Context, shard int, at *state) error {
	a := &at.archive
	if a.end == 0 || a.head.Entry == a.end {
		return nil
	}
	next := max(a.first, a.head.Entry+1)
	if a.head == (store.ArchiveHead{}) {
		a.head.Entry = a.first - 1 // it begins late
	}
	var segment []store.Record
	size := 0
	flush := func() error {
		head, err := c.ToArchive.Archive(ctx, shard, a.head, segment)
		if err != nil {
			return err
		}
		c.archived, a.head = time.Now(), head
		at.Copied += uint64(len(segment))
		at.Archived += uint64(len(segment))
		segment, size = nil, 0
		return nil
	}
	for rec, err := range c.FromArchive.ReadArchive(ctx, shard, next) {
		if err != nil {
			return err
		}
		e, err := decode(shard, rec)
		if err != nil {
			return err
		}
		if rec.Number != next || a.hash != (events.Hash{}) && e.Prev != a.hash {
			return fmt.Errorf("%w: archived entry %d of shard %d does not follow the one before",
				events.ErrDamaged, rec.Number, shard)
		}
		if len(segment) > 0 && size+len(rec.Data) > store.MaxSegmentBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		segment, size = append(segment, rec), size+len(rec.Data)
		next, a.hash = next+1, e.Hash
		a.sum.add(rec)
		c.highest = max(c.highest, rec.Revision)
		c.Progress(shard, "archived")
	}
	if len(segment) > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	if a.head.Entry != a.end {
		return fmt.Errorf("%w: the archive of shard %d ends with entry %d, and was to end with %d",
			events.ErrDamaged, shard, a.head.Entry, a.end)
	}
	return nil
}

// settle waits until what was archived counts as durable, and looks whether it is still there.
func (c *copying) settle(ctx context.Context) error {
	if c.archived.IsZero() {
		return nil
	}
	if left := c.ToArchive.DurableAfter() - time.Since(c.archived); left > 0 {
		c.Progress(0, Settling)
		timer := time.NewTimer(left)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for shard := range c.shards {
		a := &c.shards[shard].archive
		if a.end == 0 {
			continue
		}
		if head, err := c.ToArchive.Head(ctx, shard); err != nil || head != a.head {
			return fmt.Errorf("the archive of shard %d, read back, ends with entry %d of %d: %w",
				shard, head.Entry, a.end, errors.Join(store.ErrConflict, err))
		}
	}
	return nil
}

// readArchives reads the archive of the target back, also what the journal holds, too.
func (c *copying) readArchives(ctx context.Context) error {
	for shard := range c.shards {
		a := &c.shards[shard].archive
		if a.end == 0 {
			continue
		}
		var read sum
		for rec, err := range c.ToArchive.ReadArchive(ctx, shard, a.first) {
			if err != nil {
				return fmt.Errorf("archive of shard %d: %w", shard, err)
			}
			read.add(rec)
			c.Progress(shard, "checked")
		}
		if !read.equal(&a.sum) {
			return fmt.Errorf("%w: the archive of shard %d of the copy is not as it was written", events.ErrDamaged, shard)
		}
	}
	return nil
}
