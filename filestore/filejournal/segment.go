package filejournal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
	"taskledger/filestore/journal"
)

const (
	// opening is the shard of the first record of a segment, whose number is the segment's.
	opening = -2
	// openingData tells people what the file is. Lines with a shard and the number of its next entry follow it.
	openingData = "taskledger journal segment\n"
)

// segment is a file of the log.
type segment struct {
	number uint64
	name   string
	file   disk.File // of the last one, to be written to
	syncs  disk.Syncing
	size   int64
	first  int64 // bytes of the first record
	live   int64 // bytes of the other records that are still needed
}

// begun returns the first record of a segment, which tells the next entries of the shards.
func begun(number uint64, ends map[int]uint64) ([]byte, error) {
	text := openingData
	for _, shard := range slices.Sorted(maps.Keys(ends)) {
		text += fmt.Sprintln(shard, ends[shard])
	}
	return frame.Append(nil, 0, frame.Frame{Shard: opening, Number: number, Data: []byte(text)})
}

// readBegun reads the data of the first record of a segment. In one of before they were told there are no ends.
func readBegun(data []byte) (ends map[int]uint64, err error) {
	lines, is := strings.CutPrefix(string(data), openingData)
	if !is {
		return nil, &frame.BrokenError{Problem: "its first record is none of a segment"}
	}
	ends = map[int]uint64{}
	for line := range strings.Lines(lines) {
		var shard int
		var next uint64
		if _, err := fmt.Sscanf(line, "%d %d\n", &shard, &next); err != nil {
			return nil, &frame.BrokenError{Problem: fmt.Sprintf("it begins with %q: %v", line, err)}
		}
		ends[shard] = next
	}
	return ends, nil
}

// create makes the file of a segment, durably, at a time at which these are the next entries of the shards.
func create(l disk.Layer, number uint64, ends map[int]uint64) (*segment, error) {
	s := &segment{number: number, name: segmentName(number)}
	first, err := begun(number, ends)
	if err != nil {
		return nil, err
	}
	f, _, err := l.Open(s.name, disk.Anew)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(first)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = l.SyncDir()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), l.Remove(s.name))
	}
	s.file, s.size, s.first = f, int64(len(first)), int64(len(first))
	return s, nil
}

// found is a record of a segment that was read.
type found struct {
	frame.Frame
	at, next int64
}

// scan reads all records of a segment, the first one, which ends at next, for begun. It returns where they end and,
// where that is not the end of the file, why.
func scan(
	content []byte, number uint64, begun func(ends map[int]uint64, next int64) error, each func(found) error,
) (end int64, err error) {
	first, next, err := frame.Read(content, 0)
	if err != nil {
		return 0, err
	}
	if first.Shard != opening || first.Number != number {
		return 0, &frame.BrokenError{Problem: fmt.Sprintf("it begins as segment %d", first.Number)}
	}
	ends, err := readBegun(first.Data)
	if err == nil {
		err = begun(ends, next)
	}
	if err != nil {
		return 0, err
	}
	for at := next; at < int64(len(content)); at = next {
		var f frame.Frame
		if f, next, err = frame.Read(content, at); err != nil {
			return at, err
		}
		if err := each(found{f, at, next}); err != nil {
			return at, err
		}
	}
	return next, nil
}

// torn reports whether what follows an offset may be cut: it was being written at a crash, and nothing tells that it
// had been synced.
func torn(content []byte, at int64, why error) bool {
	b, is := errors.AsType[*frame.BrokenError](why)
	return is && b.Torn && frame.DurableAfter(content, at) <= at
}

// lacksSector reports whether a broken record has a sector that was never written.
func lacksSector(why error) bool {
	b, is := errors.AsType[*frame.BrokenError](why)
	return is && b.Zeros
}

// place is where an entry lies.
type place struct {
	in       *segment
	at, next int64
}

// line holds the places of the entries of a shard: of first, first+1, ...
type line struct {
	first  uint64 // of the places; where there are none, that of the next entry
	needed uint64 // entries before it may go
	places []place

	revisions []int64 // of the entries at the places, as they were read; nil once the journal has begun
}

// next returns the number of the entry that comes next.
func (l *line) next() uint64 {
	if l == nil {
		return 1
	}
	return max(l.needed, l.first+uint64(len(l.places)), 1)
}

// add notes the place of the next entry, whose number is given.
func (l *line) add(number uint64, at place) {
	if len(l.places) == 0 {
		l.first = number
	}
	l.places = append(l.places, at)
	at.in.live += at.next - at.at
}

// drop forgets the entries before number.
func (l *line) drop(number uint64) {
	l.needed = max(l.needed, number)
	if number <= l.first {
		return
	}
	n := min(number-l.first, uint64(len(l.places)))
	for _, at := range l.places[:n] {
		at.in.live -= at.next - at.at
	}
	l.first += n
	l.places = append([]place(nil), l.places[n:]...)
}

// from returns the places of the entries from number on.
func (l *line) from(number uint64) []place {
	if l == nil || number < l.first || number-l.first >= uint64(len(l.places)) {
		return nil
	}
	return l.places[number-l.first:]
}

// entryOf makes an entry of a record.
func entryOf(f frame.Frame) journal.Entry {
	return journal.Entry{
		Shard:    f.Shard,
		Number:   f.Number,
		Revision: f.Revision,
		Data:     f.Data,
	}
}
