package filelogs

import (
	"errors"
	"slices"

	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
)

// bytes returns the bytes of all files. The caller holds mu.
func (l *Logs) bytes() (n int64) {
	for _, s := range l.segments {
		n += s.size
	}
	return n
}

// expire removes the segments that hold nothing but what is too old. Where it fails they stay until the next time. The
// caller holds mu.
func (l *Logs) expire() {
	before := now() - l.cfg.MaxAge.Milliseconds()
	if l.broken != nil || l.segments[0].newest >= before {
		return
	}
	if s := l.last(); s.newest < before && s.live > 0 {
		_ = l.rotate() // it is older than a share of the time
	}
	for len(l.segments) > 1 && l.segments[0].newest < before {
		if l.dropFirst() != nil {
			return
		}
	}
}

// makeRoom removes the oldest segments beyond the bounds, and what is not needed in the others. The caller holds mu.
func (l *Logs) makeRoom() error {
	over := func() bool { return l.bytes() > l.cfg.MaxBytes || l.batches > MaxBatches }
	for len(l.segments) > 1 && (l.segments[0].live == 0 || over()) {
		if over() {
			if done, err := l.compact(); done || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := l.dropFirst(); err != nil {
			return err
		}
	}
	_, err := l.compact()
	return err
}

// dropFirst removes the oldest segment. The caller holds mu.
func (l *Logs) dropFirst() error {
	s := l.segments[0]
	if err := l.layer.Remove(s.name); err != nil {
		return l.fail(err)
	}
	l.segments = slices.Clone(l.segments[1:])
	if s.live > 0 {
		l.index.each(func(b *stored) bool { return b.in != s })
		l.batches -= s.live
	}
	l.reading.Forget(s)
	if err := l.layer.SyncDir(); err != nil {
		return l.fail(err)
	}
	return nil
}

// compact writes one segment anew that is no more half needed, together with the one before where both fit into a half
// of a segment, and reports whether there was one. The last one stays as it is. The caller holds mu.
func (l *Logs) compact() (bool, error) {
	removed := false // batches stand in segments before, of which removals tell
	for i, s := range l.segments[:len(l.segments)-1] {
		needed := s.bytes
		if removed {
			needed += s.removals
		}
		if s.dead > 0 && needed*2 < s.size {
			return l.rewrite(i, removed)
		}
		removed = removed || s.dead > 0
	}
	return false, nil
}

// rewrite replaces the segment at i by what is needed of it, behind all of the one before where both are small. It
// reports false where there is no room for that. The caller holds mu.
func (l *Logs) rewrite(i int, removals bool) (bool, error) {
	from := l.segments[i : i+1]
	if i > 0 {
		before := l.segments[i-1]
		if before.size+l.segments[i].bytes < l.segmentBytes()/2 {
			from = l.segments[i-1 : i+1]
		}
	}
	into, moved, err := l.copied(from, removals)
	if err == nil {
		err = disk.Replace(l.layer, into.name, moved.content)
	}
	if disk.Full(err) {
		return false, nil // it is tried again when something else was removed
	}
	if err != nil && !disk.Replaced(err) {
		return false, l.fail(err)
	}
	l.replace(i+1-len(from), from, into, moved)
	if err == nil && len(from) == 2 {
		err = errors.Join(l.layer.Remove(from[1].name), l.layer.SyncDir())
	}
	if err != nil {
		return false, l.fail(err)
	}
	return true, nil
}

// replace takes a segment, whose file is there, for the segments at begin. The caller holds mu.
func (l *Logs) replace(begin int, from []*segment, into *segment, moved *copies) {
	l.index.each(func(b *stored) bool {
		if to, is := moved.to[b.place]; is {
			b.in, b.at, b.next = into, to[0], to[1]
		}
		return true
	})
	for _, s := range from {
		l.reading.Forget(s)
	}
	l.segments = slices.Concat(l.segments[:begin], []*segment{into}, l.segments[begin+len(from):])
}

// copies holds the content of a segment that takes the place of others, and where the batches are in it.
type copies struct {
	content []byte
	to      map[uint64][2]int64 // by place: the offsets of the record
}

// copied returns a segment with what is needed of some, in order. The caller holds mu.
func (l *Logs) copied(from []*segment, removals bool) (*segment, *copies, error) {
	into := &segment{
		number: from[0].number,
		name:   from[0].name,
		began:  from[0].began,
		newest: from[len(from)-1].newest,
	}
	there := map[uint64]*segment{}
	l.index.each(func(b *stored) bool {
		if slices.Contains(from, b.in) {
			there[b.place] = b.in
		}
		return true
	})
	c := &copies{to: map[uint64][2]int64{}}
	var err error
	if c.content, err = begun(into.number, into.began, l.cfg.Cluster); err != nil {
		return nil, nil, err
	}
	for n, s := range from {
		old, err := disk.ReadAll(l.layer, s.name)
		if err != nil {
			return nil, nil, err
		}
		_, at, err := frame.Read(old, 0)
		for err == nil && at < int64(len(old)) {
			var f frame.Frame
			if f, at, err = frame.Read(old, at); err != nil {
				break
			}
			batch := f.Data[0] == kindBatch
			// Of a small segment that another one is put behind, everything stays.
			if keep := batch && there[f.Number] == s || !batch && removals; !keep && n == len(from)-1 {
				continue
			}
			begin := int64(len(c.content))
			f.Durable = 0
			if c.content, err = frame.Append(c.content, 0, f); err != nil {
				break
			}
			end := int64(len(c.content))
			switch {
			case !batch:
				into.removals += end - begin
			case there[f.Number] == s:
				c.to[f.Number] = [2]int64{begin, end}
				into.live++
				into.bytes += end - begin
			default:
				into.dead++
			}
		}
		if err != nil {
			return nil, nil, s.damaged(at, err)
		}
	}
	into.size = int64(len(c.content))
	return into, c, nil
}
