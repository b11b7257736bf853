package natsbus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"taskledger/events"
	"taskledger/store"
)

const (
	// headersAtOnce is the number of headers fetched with one request, each up to 8 KiB.
	headersAtOnce = 256
	// forgetConsumer is the time after which the server removes the reader of headers of a process that died.
	forgetConsumer = 30 * time.Second
)

// ReadArchive implements store.ArchiveReader. It finds the first segment by bisection, unless it was found before,
// keeps two in memory, and fetches one ahead. It ends at once where nothing is archived from the entry on. What is no
// segment, and entries that are missing or there twice, wrap events.ErrDamaged; missing ones store.ErrTrimmed, too.
func (a *Archive) ReadArchive(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		r := &reader{archive: a, shard: shard, from: max(from, 1)}
		if err := r.read(ctx, func(rec store.Record) bool { return yield(rec, nil) }); err != nil {
			yield(store.Record{}, fmt.Errorf("read the archive of shard %d: %w", shard, err))
		}
	}
}

// reader is one call of ReadArchive.
type reader struct {
	archive *Archive
	shard   int
	from    uint64
	part           // that is being read
	later   []part // the oldest last
}

// part is a run of segments that continue each other: an archive that never began anew is one.
type part struct {
	begins uint64  // store.ArchiveHead.Begins, which all its segments tell
	low    *stored // its first segment
	span   span    // of that
	end    uint64  // sequence of its last segment
	last   uint64  // entry up to which it counts: later parts have others of those behind it
}

// parts yields the parts of the archive of a shard, the newest of which ends with a segment, from that on. Damage
// ends them: what was archived before may count or not. It comes with the part whose first segment it is, or with
// none.
func (a *Archive) parts(ctx context.Context, shard int, end *stored) iter.Seq2[part, error] {
	return func(yield func(part, error) bool) {
		p := part{last: math.MaxUint64}
		for {
			var err error
			if p.begins, err = readBegins(end); err != nil {
				yield(part{}, damaged(shard, end, err))
				return
			}
			p.end = end.sequence
			if p.low, err = a.next(ctx, shard, p.begins+1); err != nil {
				yield(part{}, err)
				return
			}
			if p.low == nil {
				yield(part{}, damaged(shard, end, errors.New("it has disappeared")))
				return
			}
			if p.span, err = readSpan(p.low.header); err != nil {
				yield(p, damaged(shard, p.low, err))
				return
			}
			if p.span.first <= p.last && !yield(p, nil) || p.begins == 0 {
				return
			}
			p.last = min(p.last, p.span.first-1)
			before, err := a.next(ctx, shard, p.begins)
			if err == nil && (before == nil || before.sequence != p.begins) {
				err = damaged(shard, p.low, fmt.Errorf("what was archived before it has disappeared: %w", store.ErrTrimmed))
			}
			if err != nil {
				yield(part{}, err)
				return
			}
			end = before
		}
	}
}

// read yields until the consumer stops, and returns when nothing runs any more.
func (r *reader) read(ctx context.Context, yield func(store.Record) bool) error {
	m, err := r.find(ctx)
	if err != nil || m == nil {
		return err
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for due := uint64(0); ; {
		entries, unread := r.open(m, due)
		if len(entries) == 0 {
			return unread
		}
		due = entries[len(entries)-1].Number + 1
		whole := due > r.last // what this part has more counts no more
		if whole {
			due, unread = r.last+1, nil
			entries = slices.DeleteFunc(entries, func(rec store.Record) bool { return rec.Number > r.last })
		}
		var await func() (*stored, error)
		for _, rec := range entries {
			if rec.Number < r.from {
				continue
			}
			if !yield(rec) {
				return nil
			}
			if await == nil && unread == nil && m.sequence < r.end &&
				!whole { // not before: who wants one entry has stopped by now
				await = r.ask(ctx, &asking, m)
			}
		}
		if whole || unread == nil && m.sequence >= r.end && len(r.later) > 0 {
			r.part, r.later = r.later[len(r.later)-1], r.later[:len(r.later)-1]
			m = r.low
			continue
		}
		if unread != nil || m.sequence >= r.end {
			return unread
		}
		if await == nil {
			await = r.ask(ctx, &asking, m)
		}
		if m, err = await(); err != nil {
			return err
		}
	}
}

// holds wraps events.ErrDamaged if a segment that stands in the part is not of it: whoever archived behind it did
// not know that the archive had begun anew. What is no segment is left to its decoder.
func (p part) holds(shard int, m *stored) error {
	if _, err := readSpan(m.header); err != nil {
		return nil
	}
	begins, err := readBegins(m)
	if err == nil && begins != p.begins {
		err = fmt.Errorf("the archive began anew after segment %d, as it tells, and after %d, as the last one does",
			begins, p.begins)
	}
	if err != nil {
		return damaged(shard, m, err)
	}
	return nil
}

// open returns the entries of m, which continue at due; 0 = anywhere. With an error it returns the entries before the
// damage.
func (r *reader) open(m *stored, due uint64) ([]store.Record, error) {
	if err := r.holds(r.shard, m); err != nil {
		return nil, err
	}
	entries, err := decodeSegment(r.shard, m)
	if len(entries) == 0 {
		return nil, err
	}
	switch first := entries[0].Number; {
	case due == 0 || first == due:
		return entries, err
	case first > due:
		return nil, damaged(r.shard, m, fmt.Errorf("entry %d where %d is due: %w", first, due, store.ErrTrimmed))
	default:
		return nil, damaged(r.shard, m, fmt.Errorf("entry %d where %d is due", first, due))
	}
}

// ask fetches the segment after m in the background, and returns what waits for it.
func (r *reader) ask(ctx context.Context, asking *sync.WaitGroup, m *stored) (await func() (*stored, error)) {
	var next *stored
	var err error
	came := make(chan struct{})
	asking.Go(func() {
		defer close(came)
		next, err = r.archive.next(ctx, r.shard, m.sequence+1)
		if err == nil && (next == nil || next.sequence > r.end) {
			err = damaged(r.shard, m, errors.New("what followed it has disappeared"))
		}
	})
	return func() (*stored, error) {
		<-came
		return next, err
	}
}

// find returns the segment from which to read, the last that begins at or before from; nil = nothing is archived. What
// cannot be read counts as beyond, so that reading meets it in its place.
func (r *reader) find(ctx context.Context) (*stored, error) {
	if err := r.archive.belongs(ctx); err != nil {
		return nil, noArchive(err)
	}
	last, err := r.archive.get(ctx, getRequest{LastFor: r.archive.subject(r.shard)})
	if err != nil || last == nil {
		return nil, noArchive(err)
	}
	for p, err := range r.archive.parts(ctx, r.shard, last) {
		if err != nil {
			return nil, err
		}
		if r.part = p; p.span.first <= r.from {
			break
		}
		r.later = append(r.later, p)
	}
	low, s := r.low, r.span
	if s.first > r.from {
		return nil, fmt.Errorf("entry %d: %w: the archive begins at entry %d", r.from, store.ErrTrimmed, s.first)
	}
	if at, err := readSpan(last.header); err == nil && r.end == last.sequence && s.last < r.from && at.first <= r.from {
		return last, nil
	}
	known := r.archive.places.find(r.shard, r.from)
	for high := r.end; s.last < r.from && low.sequence+1 < high; {
		middle := low.sequence + (high-low.sequence)/2
		if known > low.sequence && known < high {
			middle, known = known, 0
		}
		m, err := r.archive.next(ctx, r.shard, middle)
		if err != nil {
			return nil, err
		}
		if m == nil || m.sequence >= high {
			high = middle
			continue
		}
		if at, err := readSpan(m.header); err != nil || at.first > r.from {
			high = middle
		} else {
			low, s = m, at
		}
	}
	if s.last >= r.from {
		r.archive.places.keep(r.shard, s, low.sequence)
	}
	return low, nil
}

// noArchive adds store.ErrNoArchive where it is meant. A stream that a server has just lost sight of looks like none.
func noArchive(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, ErrNoJetStream) {
		return fmt.Errorf("%w: %w", store.ErrNoArchive, err)
	}
	return err
}

// FindArchived implements store.ArchiveReader. It reads the headers of the segments of the shard, up to the one
// with the entry last, and then, from the newest on, the segments that may hold the task: all their entries up to
// last are yielded.
func (a *Archive) FindArchived(
	ctx context.Context,
	shard int,
	task events.TaskID,
	last uint64,
) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := a.findTask(ctx, shard, task, last, func(rec store.Record) bool { return yield(rec, nil) }); err != nil {
			yield(store.Record{}, fmt.Errorf("find task %s in the archive of shard %d: %w", task, shard, err))
		}
	}
}

func (a *Archive) findTask(
	ctx context.Context,
	shard int,
	task events.TaskID,
	last uint64,
	yield func(store.Record) bool,
) error {
	if err := a.belongs(ctx); err != nil {
		return noArchive(err)
	}
	end, err := a.get(ctx, getRequest{LastFor: a.subject(shard)})
	if err != nil || end == nil {
		return noArchive(err)
	}
	var parts []part // the newest first
	var hidden error // what keeps the parts before them from being known
	for p, err := range a.parts(ctx, shard, end) {
		if err != nil && !errors.Is(err, events.ErrDamaged) {
			return err
		}
		if hidden = err; p.low != nil {
			p.last = min(p.last, last)
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return hidden
	}
	sequences, gap, err := a.candidates(ctx, shard, task, parts)
	if err != nil {
		return err
	}
	hidden = cmp.Or(hidden, gap)
	for _, sequence := range slices.Backward(sequences) {
		m, err := a.next(ctx, shard, sequence)
		if err != nil {
			return err
		}
		if m == nil || m.sequence != sequence {
			return damaged(shard, &stored{sequence: sequence}, errors.New("it has disappeared"))
		}
		entries, err := decodeSegment(shard, m)
		if err != nil {
			return err
		}
		of, _ := partOf(parts, sequence)
		for _, rec := range slices.Backward(entries) {
			if rec.Number <= of.last && !yield(rec) {
				return nil
			}
		}
	}
	return hidden
}

// partOf returns the part that a segment is of, of those that are given.
func partOf(parts []part, sequence uint64) (of part, is bool) {
	for _, p := range parts {
		if sequence >= p.low.sequence && sequence <= p.end {
			return p, true
		}
	}
	return part{}, false
}

// candidates returns the sequences of the messages that may hold the task in entries that count, in order. A gap
// between segments, in which the task may have been, is damage.
func (a *Archive) candidates(
	ctx context.Context,
	shard int,
	task events.TaskID,
	parts []part,
) (sequences []uint64, gap, err error) {
	var headers jetstream.Consumer
	err = a.request(ctx, func(ctx context.Context) (err error) {
		headers, err = a.js.CreateConsumer(ctx, a.stream, jetstream.ConsumerConfig{
			FilterSubject: a.subject(shard), HeadersOnly: true, AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true,
			Replicas: 1, InactiveThreshold: forgetConsumer,
		})
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("read headers of stream %s: %w", a.stream, noArchive(err))
	}
	info := headers.CachedInfo()
	defer func() { // what stays, the server removes
		_ = a.request(ctx, func(ctx context.Context) error { return a.js.DeleteConsumer(ctx, a.stream, info.Name) })
	}()
	var stray error // a segment stands where it does not belong
	due := uint64(0)
	after := false // the entries of the segments that are left come after those that count
	for read := uint64(0); read < info.NumPending && !after; {
		n, err := a.fetchHeaders(
			ctx,
			headers,
			read,
			int(min(info.NumPending-read, headersAtOnce)),
			func(m jetstream.Msg, sequence uint64) {
				of, is := partOf(parts, sequence)
				if !is {
					return
				}
				here := &stored{sequence: sequence, header: m.Headers()}
				if stray == nil {
					stray = of.holds(shard, here)
				}
				if at, err := readSpan(here.header); err == nil {
					begins := sequence == of.low.sequence // and then behind what the part before has, or with some of that
					if at.first != due && (!begins || due != 0 && at.first > due) && due <= of.last {
						err := fmt.Errorf("entry %d where %d is due", at.first, due)
						if at.first > due {
							err = fmt.Errorf("%w: %w", err, store.ErrTrimmed)
						}
						gap = cmp.Or(gap, damaged(shard, here, err))
					}
					if due = at.last + 1; at.first > of.last {
						after = after || of.end == parts[0].end
						return
					}
				}
				if parseFilter(m.Headers().Get(tasksHeader)).mayHold(task) {
					sequences = append(sequences, sequence)
				}
			},
		)
		if err = cmp.Or(err, stray); err != nil {
			return nil, nil, fmt.Errorf("read headers of stream %s: %w", a.stream, err)
		}
		read += n
	}
	return sequences, gap, nil
}

// fetchHeaders calls see for the next n headers, of which read have come before. An error means that some did not
// come.
func (a *Archive) fetchHeaders(
	ctx context.Context,
	from jetstream.Consumer,
	read uint64,
	n int,
	see func(jetstream.Msg, uint64),
) (seen uint64, err error) {
	err = a.request(ctx, func(ctx context.Context) error {
		batch, err := from.Fetch(n, jetstream.FetchContext(ctx))
		if err != nil {
			return err
		}
		for m := range batch.Messages() {
			meta, err := m.Metadata()
			if err != nil {
				return err
			}
			if seen++; meta.Sequence.Consumer != read+seen {
				return fmt.Errorf("header %d came where %d was due", meta.Sequence.Consumer, read+seen)
			}
			see(m, meta.Sequence.Stream)
		}
		if batch.Error() == nil && seen < uint64(n) {
			return fmt.Errorf("%d headers came of %d", seen, n)
		}
		return batch.Error()
	})
	return seen, err
}
