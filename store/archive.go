package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"taskledger/events"
)

// ArchiveHead is the end of a shard's archive. The zero value is the end of an empty one.
type ArchiveHead struct {
	Entry    uint64 // the last one archived
	Sequence uint64 // where the archive keeps the segment that ends with it
	// Begins is the Sequence of the segment after which the archive began anew; 0 = it never did. What begins anew
	// is archived after a head whose Begins is its Sequence, that of the end of the archive, and whose Entry is the
	// last one before: from there on the entries that were archived before count no more. Where the archive ended
	// before that entry, those between are missing.
	Begins uint64
}

// MaxSegmentBytes bounds the data of the entries of one segment of the archive, so that it fits a message of 1 MiB.
// An entry never has more.
const MaxSegmentBytes = 896 << 10

// ErrConflict reports that the archive of a shard does not hold or end with what its writer supposed: there was
// another writer.
var ErrConflict = errors.New("archive continues otherwise")

// CheckSegment wraps ErrRefused for what cannot be a segment of the archive: no entries, and more than
// MaxSegmentBytes of them.
func CheckSegment(entries []Record) error {
	if len(entries) == 0 {
		return fmt.Errorf("%w: no entries", ErrRefused)
	}
	size := 0
	for i := range entries {
		size += len(entries[i].Data)
	}
	if size > MaxSegmentBytes {
		return fmt.Errorf("%w: %d bytes of entries exceed the limit of %d", ErrRefused, size, MaxSegmentBytes)
	}
	return nil
}

// Archiver appends entries to the archive, where they stay when the journal is trimmed.
type Archiver interface {
	// Head reads the end of a shard's archive.
	Head(ctx context.Context, shard int) (ArchiveHead, error)
	// Archive appends consecutive entries as one segment and returns when they are acknowledged as durable. Sending
	// them again, after an error of unknown outcome, stores them once. It wraps ErrConflict if the archive does not
	// end with after, or something else than these entries follows it; ErrRefused for what CheckSegment refuses;
	// and events.ErrDamaged for what is no entry of the shard.
	Archive(ctx context.Context, shard int, after ArchiveHead, entries []Record) (ArchiveHead, error)
	// Confirm reads the segment at head back and compares it with entries, at least one. It wraps ErrConflict when
	// they differ.
	Confirm(ctx context.Context, shard int, head ArchiveHead, entries []Record) error
	// DurableAfter returns how long after its acknowledgement a segment counts as durable. Before that the servers
	// may not have written it to disk, and its entries stay in the journal.
	DurableAfter() time.Duration
}

// ErrNoArchive reports that there is no archive to read: none was ever begun, or what would keep it is not up.
var ErrNoArchive = errors.New("there is no archive")

// ArchiveReader reads what was archived. Where there is no archive its methods yield ErrNoArchive or nothing. They
// yield the error of their context after its end, though perhaps not before the entries of a segment that has been
// read.
type ArchiveReader interface {
	// ReadArchive yields the archived entries from number from up to the last one at the time of the call, in
	// order, with the revisions they had in the journal. An entry before the first one archived yields ErrTrimmed,
	// one that is missing among them events.ErrDamaged.
	ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[Record, error]
	// FindArchived yields, newest first, the archived entries with numbers up to last that may hold events of the
	// task. It ends with events.ErrDamaged where others are missing among them.
	FindArchived(ctx context.Context, shard int, task events.TaskID, last uint64) iter.Seq2[Record, error]
}

// Archive joins the ports that a node needs to trim its journals; archivetest holds any implementation to it.
type Archive interface {
	Archiver
	ArchiveReader
}

// ArchiveCondition says how an archive is set up, and what is left of it.
type ArchiveCondition struct {
	// Problem says by which setting the archive may lose what it has acknowledged, or what it has lost; "" = nothing.
	Problem string
	// Empty says that the archive holds nothing, as before its first segment.
	Empty bool
}

// Inspecting is an Archive that can look at what keeps it, whoever changed that.
type Inspecting interface {
	// Inspect looks at the archive as a whole. To do so is cheap.
	Inspect(ctx context.Context) (ArchiveCondition, error)
}

// Claiming is an Archive that can tell of which cluster it is, so that no other one writes to it or reads it.
type Claiming interface {
	// Claim has an archive that tells no cluster tell this one, of which the caller has found entries in it. It
	// wraps ErrConflict for the archive of another one. That an archive cannot tell its cluster is no error: the
	// implementation says so in its log. To claim again is cheap.
	Claim(ctx context.Context) error
}
