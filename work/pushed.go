package work

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"sync"
	"time"

	"taskledger/work/feed"
	"taskledger/work/internal/threads"
)

const (
	// prefetch is the number of messages that wait ready.
	prefetch = 10
	// progressEvery is the time after which a source is told again of each message that it is in progress.
	progressEvery = 10 * time.Second
	// awayFor is the time after which a source is asked again that was away.
	awayFor = time.Second
)

// errIdle ends a run that has had no message for as long as its stream says.
var errIdle = errors.New("no message has come")

// pushed is a run of a stream to which messages are pushed.
type pushed[P, C any] struct {
	*streamRun[P, C]
	from feed.Source
	// running ends with the attempt, or when an acknowledgement fails.
	running context.Context
	fail    context.CancelCauseFunc
	acks    sync.WaitGroup
	came    int64 // changes

	mu   sync.Mutex
	open map[uint64]*message // those that are not acknowledged
	last uint64              // the place that came last
}

func (r *pushed[P, C]) run(ctx context.Context) error {
	from, err := r.openSource(ctx, r.current)
	if err != nil {
		return ended(ctx, r.failure(&threads.IteratorError{Err: fmt.Errorf("opening the source: %w", err)}))
	}
	r.from, r.open = from, map[uint64]*message{}
	r.running, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	r.mover.lag = r.lag
	progress, stop := context.WithCancel(context.WithoutCancel(ctx))
	var telling sync.WaitGroup
	telling.Go(func() { r.progress(progress) })
	err = r.process(r.running, source[C]{
		items: r.arrivals,
		admit: r.admit,
		ahead: prefetch,
	})
	r.acks.Wait()
	if err == nil && r.running.Err() != nil { // not all was acknowledged
		err = context.Cause(r.running)
	}
	stop()
	telling.Wait()
	r.close(ctx)
	return r.finish(ctx, err)
}

// openSource opens the source, and leaves it behind if it takes too long to end.
func (s *flowOf[P, C]) openSource(ctx context.Context, of current[P]) (feed.Source, error) {
	open := threads.Foreign{
		Name:      "the source of stream " + of.plan.ID,
		Grace:     of.grace,
		Abandoned: &abandoned,
	}
	from, err := threads.Await(ctx, open, func(ctx context.Context) (feed.Source, error) {
		from, err := s.Source(&scope{Context: ctx, info: of.info}, of.params)
		if err == nil && from != nil && ctx.Err() != nil { // nobody may wait for it any more
			return nil, errors.Join(context.Cause(ctx), from.Close())
		}
		return from, err
	})
	if err == nil && from == nil {
		err = errors.New("there is none")
	}
	return from, err
}

// close closes the source, which gives back what is not acknowledged.
func (r *pushed[P, C]) close(ctx context.Context) {
	if err := r.from.Close(); err != nil {
		r.log.InfoContext(ctx, "the source was not closed in order", "stream", r.plan.ID, "error", err)
	}
}

// arrivals yields what comes of messages until the source has none for as long as the stream says.
func (r *pushed[P, C]) arrivals(ctx context.Context) iter.Seq2[*arrival[C], error] {
	return func(yield func(*arrival[C], error) bool) {
		for {
			m, err := r.next(ctx)
			if errors.Is(err, errIdle) {
				return
			}
			if err != nil && m.Place == 0 {
				yield(nil, fmt.Errorf("behind message %d: %w", r.last, err))
				return
			}
			if m.Place <= r.last {
				yield(nil, fmt.Errorf("behind message %d: message %d, which is not a later one", r.last, m.Place))
				return
			}
			for _, a := range r.receive(ctx, m, err) {
				if !yield(a, nil) {
					return
				}
			}
		}
	}
}

// next returns the next message. While the source is away it asks again.
func (r *pushed[P, C]) next(ctx context.Context) (m feed.Message, err error) {
	if r.Idle > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.Idle, errIdle)
		defer cancel()
	}
	for said := false; ; said = true {
		m, err = r.from.Next(ctx)
		switch {
		case err != nil && m.Place == 0 && ctx.Err() != nil:
			return m, context.Cause(ctx)
		case !errors.Is(err, feed.ErrAway):
			return m, err
		case !said:
			r.log.WarnContext(ctx, "the source is away", "stream", r.plan.ID, "error", err)
		}
		wait := time.NewTimer(awayFor)
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
}

// receive returns the arrivals of a message; err tells why it could not be read.
func (r *pushed[P, C]) receive(ctx context.Context, m feed.Message, err error) (all []*arrival[C]) {
	var changes []Change[C]
	if err == nil {
		changes, err = r.convert(&scope{Context: ctx, info: r.info}, r.params, m)
	}
	of := &message{
		Message: m,
		came:    m.Time,
	}
	if of.came.IsZero() {
		of.came = time.Now()
	}
	of.acknowledge = func() { r.acknowledge(of) }
	if err != nil {
		all = []*arrival[C]{poison(of, changes, err)}
	} else {
		all = grouped(of, changes)
	}
	of.left = len(all)
	r.mu.Lock()
	r.open[m.Place], r.last = of, m.Place
	r.mu.Unlock()
	r.mover.opened()
	if len(all) == 0 {
		r.acknowledge(of)
	}
	return all
}

// convert calls Convert, and makes an error of its panic and of changes that break the rules.
func (s *flowOf[P, C]) convert(ctx context.Context, params P, m feed.Message) (changes []Change[C], err error) {
	call := func() { changes, err = s.Convert(ctx, params, m) }
	threads.Watch("the function that converts a message", call, func(failure error) { err = failure })
	if err == nil && len(changes) > MaxMessageChanges {
		err = fmt.Errorf("%d changes exceed the limit of %d", len(changes), MaxMessageChanges)
	}
	for i, c := range changes {
		wrong := checkKey(c.Key)
		if c.Position {
			wrong = errors.New("a message tells no position")
		}
		if err == nil && wrong != nil {
			err = fmt.Errorf("change %d: %w", i+1, wrong)
		}
	}
	return changes, err
}

// poison returns the arrival of a message that cannot be read.
func poison[C any](of *message, changes []Change[C], err error) *arrival[C] {
	key := "#" + strconv.FormatUint(of.Place, 10)
	if len(changes) > 0 && checkKey(changes[0].Key) == nil {
		key = changes[0].Key
	}
	return &arrival[C]{
		key: key,
		of:  of,
		parts: []part[C]{{
			Change: Change[C]{Key: key},
			unread: err,
			at:     strconv.FormatUint(of.Place, 10),
			whole:  &of.Message,
		}},
	}
}

// grouped returns the arrivals of a message: the changes of a key come together, since the message, and with it each of
// its keys, ends as a whole.
func grouped[C any](of *message, changes []Change[C]) (all []*arrival[C]) {
	byKey := map[string]*arrival[C]{}
	for i, c := range changes {
		a := byKey[c.Key]
		if a == nil {
			a = &arrival[C]{
				key: c.Key,
				of:  of,
			}
			byKey[c.Key] = a
			all = append(all, a)
		}
		c.Token = ""
		a.parts = append(a.parts, part[C]{
			Change: c,
			at:     strconv.FormatUint(of.Place, 10) + "." + strconv.Itoa(i),
			whole:  &of.Message,
			index:  i,
		})
	}
	if n := len(all); n > 0 {
		all[n-1].last = true
	}
	return all
}

// admit takes an arrival, and ends the run with the message that completes its batch.
func (r *pushed[P, C]) admit(a *arrival[C]) (to threads.Admission, err error) {
	r.came += int64(len(a.parts))
	to.Last = r.Batch > 0 && r.came >= r.Batch && (a.last || a.current().unread != nil)
	return to, nil
}

// acknowledge acknowledges a message, and ends its arrivals then.
func (r *pushed[P, C]) acknowledge(m *message) {
	r.acks.Go(func() {
		ctx, done := lasting(r.running)
		defer done()
		var err error
		call := func() { err = r.from.Ack(ctx, m.Message) }
		threads.Watch("the source", call, func(failure error) { err = failure })
		if err != nil {
			r.fail(r.failure(&threads.IteratorError{Err: fmt.Errorf("acknowledging message %d: %w", m.Place, err)}))
			return
		}
		r.mu.Lock()
		delete(r.open, m.Place)
		r.mu.Unlock()
		r.mover.closed(m.outcomes)
		m.acknowledged()
	})
}

// progress tells the source which messages are in progress until ctx ends.
func (r *pushed[P, C]) progress(ctx context.Context) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		open := make([]*message, 0, len(r.open))
		for _, m := range r.open {
			open = append(open, m)
		}
		r.mu.Unlock()
		for _, m := range open {
			if err := r.from.Progress(ctx, m.Message); err != nil { // the next tick may succeed
				r.log.DebugContext(ctx, "a message was not reported in progress", "place", m.Place, "error", err)
			}
		}
	}
}

// lag returns how many messages are known and not acknowledged, and when the oldest of them came.
func (r *pushed[P, C]) lag(ctx context.Context) (open int64, oldest time.Time) {
	if measured, is := r.from.(feed.Measured); is {
		if known, since, err := measured.Pending(ctx); err == nil {
			return known, since
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.open {
		if oldest.IsZero() || m.came.Before(oldest) {
			oldest = m.came
		}
	}
	return int64(len(r.open)), oldest
}
