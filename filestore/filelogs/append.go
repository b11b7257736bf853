package filelogs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
	"taskledger/store"
	"taskledger/tasklog"
)

// Append implements tasklog.Store.
func (l *Logs) Append(
	ctx context.Context, of tasklog.Attempt, after tasklog.End, b tasklog.Batch,
) (tasklog.End, error) {
	err := ctx.Err()
	if err == nil {
		err = tasklog.CheckAppend(of, after, b)
	}
	var end tasklog.End
	if err == nil {
		end, err = l.append(of, after, b)
	}
	if err != nil {
		return tasklog.End{}, fmt.Errorf("append line %d: %w", b.First, err)
	}
	return end, nil
}

func (l *Logs) append(of tasklog.Attempt, after tasklog.End, b tasklog.Batch) (tasklog.End, error) {
	l.mu.Lock()
	if err := l.ready(); err != nil {
		l.mu.Unlock()
		return tasklog.End{}, err
	}
	l.expire()
	var at stored
	var err error
	if all := l.index.of(of); len(all) > 0 && all[len(all)-1].place != after.Place {
		at, err = all[len(all)-1], nil
		there, is, unread := l.read(of, at)
		switch {
		case unread != nil:
			err = unread
		case !is || there.First != b.First || !slices.Equal(there.Lines, b.Lines):
			err = tasklog.ErrTaken
		}
	} else if at, err = l.put(of.Shard, encodeBatch(of, b)); err == nil {
		at = placed(at.in, at.place, at.at, at.next, b)
		l.add(of, at)
		err = l.makeRoom()
	}
	l.mu.Unlock()
	if err == nil {
		err = l.syncTo(at)
	}
	if err != nil {
		return tasklog.End{}, err
	}
	return tasklog.End{Line: b.Last(), Place: at.place}, nil
}

// put writes a record behind the others, and returns where it is. The caller holds mu.
func (l *Logs) put(shard uint16, data []byte) (at stored, err error) {
	if l.broken != nil {
		return at, l.broken
	}
	if err := l.rotate(); err != nil {
		return at, err
	}
	s := l.last()
	f := frame.Frame{
		Shard:    int(shard),
		Number:   l.place + 1,
		Revision: now(),
		Durable:  l.durable,
		Data:     data,
	}
	record, err := frame.Append(nil, s.size, f)
	if err != nil {
		return at, err
	}
	if _, err := s.file.Write(record); err != nil {
		cut := s.file.Truncate(s.size)
		switch {
		case cut != nil:
			return at, l.fail(errors.Join(err, cut))
		case disk.Full(err):
			return at, fmt.Errorf("%w: %w", store.ErrFull, err)
		}
		return at, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	at = stored{
		in:    s,
		place: f.Number,
		at:    s.size,
		next:  s.size + int64(len(record)),
	}
	l.place, s.size, s.newest = f.Number, at.next, max(s.newest, f.Revision)
	return at, nil
}

// rotate begins another segment where the last one has its share. That is synced, so it ends where it ends for good.
// The caller holds mu.
func (l *Logs) rotate() error {
	s := l.last()
	old := now()-s.began >= l.cfg.MaxAge.Milliseconds()/shares
	if s.size < l.segmentBytes() && (!old || s.live+s.dead == 0) {
		return nil
	}
	if err := s.syncs.Sync(s.file); err != nil {
		return l.fail(err)
	}
	l.durable = s.size
	next, err := l.create(s.number + 1)
	if disk.Full(err) {
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	if err != nil {
		return l.fail(err)
	}
	s.syncs.End()
	l.segments, l.durable = append(l.segments, next), next.size
	if err := s.close(); err != nil {
		return l.fail(err)
	}
	return nil
}

// syncTo returns when a record is synced. Those that come while others sync share the next sync.
func (l *Logs) syncTo(at stored) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	in := l.last()
	end, file := in.size, in.file // nil once another one has begun
	done, err := in != at.in || l.durable >= at.next, l.broken
	l.mu.Unlock()
	if done || err != nil {
		return err
	}
	err = in.syncs.Sync(file)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		return l.fail(err)
	}
	if in != l.last() { // it was synced when the next one began
		return l.broken
	}
	l.durable = max(l.durable, end)
	return nil
}
