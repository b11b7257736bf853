package natsbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/tasklog"
)

// Read implements tasklog.Reader. It finds the first batch of the range by bisection over the stream, and fetches
// each that it looks at.
func (l *Logs) Read(ctx context.Context, of tasklog.Attempt, r tasklog.Range) (tasklog.Stretch, error) {
	got, err := l.read(ctx, of, r)
	if err != nil {
		return tasklog.Stretch{}, fmt.Errorf("read the log of %s: %w", l.subject(of), away(err))
	}
	return got, nil
}

func (l *Logs) read(ctx context.Context, of tasklog.Attempt, r tasklog.Range) (got tasklog.Stretch, err error) {
	if err := l.isOurs(ctx); err != nil {
		return got, err
	}
	m, err := anyOf(l.get(ctx, getRequest{LastFor: l.subject(of)}))
	if err != nil {
		return got, err
	}
	if m == nil {
		got.Oldest, err = l.oldest(ctx)
		return got, err
	}
	l.seen.Store(true)
	end, err := asLogged(m)
	if err != nil {
		return got, err
	}
	got.Last = end.last
	first, before, err := l.find(ctx, of, r, end)
	if err != nil || first == nil {
		return got, err
	}
	got.Before = before
	bytes := 0
	for m := first; m != nil && (r.Until == 0 || m.since <= r.Until); {
		got.More = bytes >= cmp.Or(r.Bytes, tasklog.DefaultBytes) || len(got.Batches) == tasklog.MaxStretchBatches
		if got.More {
			break
		}
		if b, err := m.batch(of); err == nil {
			bytes += b.Bytes()
			got.Batches = append(got.Batches, b)
		}
		if m.sequence >= end.sequence || r.Until != 0 && m.until > r.Until {
			break
		}
		if m, err = l.next(ctx, of, m.sequence+1); err != nil {
			return tasklog.Stretch{}, err
		}
	}
	return got, nil
}

// next returns the first batch of an attempt at or after a sequence; nil = none.
func (l *Logs) next(ctx context.Context, of tasklog.Attempt, sequence uint64) (*logged, error) {
	for {
		m, err := l.get(ctx, getRequest{Sequence: max(sequence, 1), NextFor: l.subject(of)})
		if err != nil || m == nil {
			return nil, err
		}
		if batch, err := asLogged(m); err == nil {
			return batch, nil
		}
		sequence = m.sequence + 1
	}
}

// find returns the first batch that reaches into a range, and the number of the last line before it; nil = none
// does. The log ends with the batch at end.
func (l *Logs) find(
	ctx context.Context, of tasklog.Attempt, r tasklog.Range, end *logged,
) (found *logged, before uint64, err error) {
	reaches := func(m *logged) bool { return m.last >= r.From && m.until >= r.Since }
	if !reaches(end) {
		return nil, 0, nil
	}
	low, err := l.next(ctx, of, 1)
	if err != nil || low == nil || reaches(low) {
		return low, 0, err
	}
	found = end
	// None between top and found is of the attempt. Where no number is missing between low and found, none is
	// between them.
	for top := end.sequence; low.sequence+1 < top && low.last+1 < found.first; {
		middle := low.sequence + (top-low.sequence)/2
		m, err := l.next(ctx, of, middle)
		switch {
		case err != nil:
			return nil, 0, err
		case m == nil:
			top = middle
		case reaches(m):
			found, top = m, middle
		default:
			low = m
		}
	}
	return found, low.last, nil
}

// beforeFirst is the time before a stream was made from which on it has all: it is made by the first line of an attempt
// that has begun before.
const beforeFirst = 10 * time.Second

// oldest returns from when on the stream has messages: since it was made, if it has lost none. Of a stream that was
// there and is gone nothing is left. 0 = there is none, as far as is known: it may have been lost before.
func (l *Logs) oldest(ctx context.Context) (events.Millis, error) {
	seen := l.seen.Load() // before it is asked for: a writer may be making it
	is, err := l.ask(ctx, "INFO", struct{}{})
	switch {
	case err != nil:
		return 0, err
	case is == nil && seen:
		return events.MillisOf(time.Now()), nil
	case is == nil:
		return 0, nil
	case is.State.First <= 1:
		return events.MillisOf(is.Created.Add(-beforeFirst)), nil
	case is.State.Messages == 0:
		return events.MillisOf(is.Now), nil
	}
	return events.MillisOf(is.State.Oldest), nil
}

// Lives implements tasklog.Store. A page is named by the number of attempts on those before it.
func (l *Logs) Lives(ctx context.Context, shard uint16, page int) ([]events.Ref, int, error) {
	lives, next, err := l.lives(ctx, shard, page)
	if err != nil {
		return nil, 0, fmt.Errorf("list the logs of shard %d: %w", shard, err)
	}
	return lives, next, nil
}

func (l *Logs) lives(ctx context.Context, shard uint16, page int) (lives []events.Ref, next int, err error) {
	if page < 0 {
		return nil, 0, errors.New("page: below 0")
	}
	if err := l.isOurs(ctx); err != nil {
		return nil, 0, err
	}
	prefix := fmt.Sprintf("%s%d.", l.subjects, shard)
	is, err := l.ask(ctx, "INFO", map[string]any{"offset": page, "subjects_filter": prefix + "*.*"})
	if err != nil || is == nil {
		return nil, 0, err
	}
	seen := map[events.Ref]struct{}{}
	for subject := range is.State.Subjects {
		life, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
		if n, err := strconv.ParseUint(life, 10, 64); err == nil {
			seen[events.Ref(n)] = struct{}{}
		}
	}
	if next = page + len(is.State.Subjects); len(is.State.Subjects) == 0 || next >= is.Total {
		next = 0
	}
	return slices.Sorted(maps.Keys(seen)), next, nil
}
