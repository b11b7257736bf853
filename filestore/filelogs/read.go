package filelogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"taskledger/events"
	"taskledger/filestore/internal/disk"
	"taskledger/filestore/internal/frame"
	"taskledger/store"
	"taskledger/tasklog"
)

// Read implements tasklog.Reader.
func (l *Logs) Read(ctx context.Context, of tasklog.Attempt, r tasklog.Range) (tasklog.Stretch, error) {
	l.mu.Lock()
	err := errors.Join(ctx.Err(), l.ready())
	if err == nil {
		l.expire()
	}
	l.mu.Unlock()
	if err != nil {
		return tasklog.Stretch{}, fmt.Errorf("read the log of attempt %d: %w", of.Number, err)
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := l.index.of(of)
	if len(all) == 0 {
		return tasklog.Stretch{Oldest: l.oldest()}, nil
	}
	got := tasklog.Stretch{Last: all[len(all)-1].last}
	begin := sort.Search(len(all), func(i int) bool { return all[i].last >= r.From && all[i].until >= r.Since })
	if begin > 0 {
		got.Before = all[begin-1].last
	}
	bytes, read := 0, 0
	for _, at := range all[begin:] {
		if r.Until != 0 && at.since > r.Until {
			break
		}
		if bytes >= cmp.Or(r.Bytes, tasklog.DefaultBytes) || read == tasklog.MaxStretchBatches {
			got.More = len(got.Batches) > 0
			break
		}
		b, is, err := l.read(of, at)
		if err != nil {
			return tasklog.Stretch{}, fmt.Errorf("read the log of attempt %d: %w", of.Number, err)
		}
		if is {
			bytes += b.Bytes()
			got.Batches = append(got.Batches, b)
			read++
		}
	}
	return got, nil
}

// read reads a batch; false where it is not there as it was. It wraps store.ErrUnavailable where its file cannot be
// opened for now. The caller holds mu, at least to read.
func (l *Logs) read(of tasklog.Attempt, at stored) (b tasklog.Batch, is bool, err error) {
	record := make([]byte, at.next-at.at)
	_, err = l.reading.At(at.in, at.in.name).ReadAt(record, at.at)
	if _, unopened := errors.AsType[*disk.UnopenedError](err); unopened {
		return b, false, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err != nil {
		return b, false, nil
	}
	f, _, err := frame.Read(record, 0)
	if err != nil || f.Number != at.place || f.Data[0] != kindBatch {
		return b, false, nil
	}
	whose, b, err := decodeBatch(f)
	return b, err == nil && whose == of, nil
}

// beforeFirst is the time before the logs began from which on they have all: they begin with the node, and an attempt
// writes its first line later than it began.
const beforeFirst = 10 * time.Second

// oldest returns from when on there are logs, if none were lost since they began. The caller holds mu, at least to
// read.
func (l *Logs) oldest() events.Millis {
	first := l.segments[0]
	if first.number == 1 {
		return events.Millis(first.began - beforeFirst.Milliseconds())
	}
	return events.Millis(first.began)
}

// lifePage bounds the lives of a page.
const lifePage = 100_000

// Lives implements tasklog.Store. A page is named by the number of lives on those before it.
func (l *Logs) Lives(ctx context.Context, shard uint16, page int) (lives []events.Ref, next int, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if err = errors.Join(ctx.Err(), l.ready()); err == nil && page < 0 {
		err = errors.New("page: below 0")
	}
	if err != nil {
		return nil, 0, fmt.Errorf("list the logs of shard %d: %w", shard, err)
	}
	all := slices.Sorted(maps.Keys(l.index[shard]))
	all = all[min(page, len(all)):]
	if len(all) > lifePage {
		return all[:lifePage], page + lifePage, nil
	}
	return all, 0, nil
}
