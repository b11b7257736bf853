package filejournal

import (
	"fmt"

	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
)

// sparse is the share of a segment, one of so many of its bytes, below which what is needed of it is written anew. The
// first record is needed, too: of many shards it is long, and what is left would be as sparse as before.
const sparse = 4

// compact makes room: of the segments but the last one it removes those that hold nothing needed, and then rewrites
// those that hold little, which takes some room. A rewritten segment keeps its name, and thus the order of its entries.
func (j *Journal) compact() error {
	j.compacting.Lock()
	defer j.compacting.Unlock()
	j.index.RLock()
	var dead, thin []*segment
	for _, s := range j.segments[:len(j.segments)-1] {
		switch {
		case s.live == 0:
			dead = append(dead, s)
		case s.first+s.live < s.size/sparse:
			thin = append(thin, s)
		}
	}
	j.index.RUnlock()
	for _, s := range dead {
		if err := j.layer.Remove(s.name); err != nil {
			return err
		}
		j.forget(s)
	}
	if len(dead) > 0 {
		if err := j.layer.SyncDir(); err != nil {
			return err
		}
	}
	for _, s := range thin {
		if err := j.rewrite(s); err != nil {
			return fmt.Errorf("rewrite %s: %w", s.name, err)
		}
	}
	return nil
}

// forget takes a segment out of the index. It is not the last one, so nobody writes to it.
func (j *Journal) forget(s *segment) {
	j.index.Lock()
	defer j.index.Unlock()
	for i := range j.segments {
		if j.segments[i] == s {
			j.segments = append(j.segments[:i:i], j.segments[i+1:]...)
			break
		}
	}
	j.reading.forget(s)
}

// moved is a record that is still needed, in the old and the new file of a segment.
type moved struct {
	shard    int
	number   uint64
	at, next int64
}

// rewrite replaces a segment with the records of it that are needed.
func (j *Journal) rewrite(s *segment) error {
	content, err := disk.ReadAll(j.layer, s.name)
	if err != nil {
		return err
	}
	var file []byte
	var kept []moved
	began := func(ends map[int]uint64, _ int64) error {
		file, err = begun(s.number, ends)
		return err
	}
	end, err := scan(content, s.number, began, func(f found) error {
		if !j.needs(s, f) {
			return nil
		}
		at := int64(len(file))
		f.Durable = 0
		file, err = frame.Append(file, 0, f.Frame)
		kept = append(kept, moved{
			shard:  f.Shard,
			number: f.Number,
			at:     at,
			next:   int64(len(file)),
		})
		return err
	})
	if err != nil {
		return &DamagedError{s.name, end, err.Error()}
	}
	return disk.ReplaceIn(j.layer, s.name, func(rename func() error) error {
		j.index.Lock()
		defer j.index.Unlock()
		if err := rename(); err != nil {
			return err
		}
		j.move(s, int64(len(file)), kept)
		return nil
	}, file)
}

// move notes where the records of a segment are that was replaced. The caller holds index: nobody looks for them
// meanwhile.
func (j *Journal) move(s *segment, size int64, kept []moved) {
	j.reading.forget(s)
	s.size, s.live = size, 0
	for _, m := range kept {
		if places := j.lines[m.shard].from(m.number); len(places) > 0 {
			places[0].at, places[0].next = m.at, m.next
			s.live += m.next - m.at
		}
	}
}

// needs reports whether a record of a segment is still needed.
func (j *Journal) needs(s *segment, f found) bool {
	j.index.RLock()
	defer j.index.RUnlock()
	places := j.lines[f.Shard].from(f.Number)
	return len(places) > 0 && places[0].in == s && places[0].at == f.at
}
