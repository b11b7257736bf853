package work

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"taskledger/work/feed"
	"taskledger/work/internal/threads"
	"taskledger/work/workledger"
)

const (
	// prefetch is the number of messages that wait ready.
	prefetch = 10
	// progressEvery is the time after which a source is told again of each message that it is in progress.
	progressEvery = 10 * time.Second
	// tellsWithin is the time, and the grace behind it, in which a source has to say how far it is: a move waits for it.
	tellsWithin = time.Second
	// maxOpenBytes bounds the data and the headers of the messages that are not acknowledged, up to one message.
	maxOpenBytes = 64 << 20
	// awayFor is the time after which a source is asked again that was away.
	awayFor = time.Second
	// longestWait bounds the time beyond Idle that is given to a source which has to find out whether messages wait.
	longestWait = 10 * time.Second
)

// errIdle ends a run that has had no message for as long as its stream says.
var errIdle = errors.New("no message has come")

// pushed is a run of a stream to which messages are pushed.
type pushed[P, C any] struct {
	*streamRun[P, C]
	from feed.Source
	// running ends with the attempt, when an acknowledgement fails, or when the run does.
	running context.Context
	fail    context.CancelCauseFunc
	acks    sync.WaitGroup
	broken  atomic.Bool // a method of the source has done what none may
	came    int64       // changes

	mu    sync.Mutex
	open  map[uint64]*message // those that are not acknowledged
	bytes int                 // of them
	last  uint64              // the place that came last
	idle  idleness
}

// idleness ends a wait for a message after a time in which none is open. The zero value ends none.
type idleness struct {
	timer *time.Timer // nil = nobody waits
	after time.Duration
}

func (r *pushed[P, C]) run(ctx context.Context) (err error) {
	from, err := r.openSource(ctx, r.current)
	if err != nil {
		return ended(ctx, r.failure(&threads.IteratorError{Err: fmt.Errorf("opening the source: %w", err)}))
	}
	r.from, r.open = from, map[uint64]*message{}
	defer r.close(ctx)
	r.running, r.fail = context.WithCancelCause(ctx)
	defer r.fail(nil)
	if err := r.resume(); err != nil {
		return err
	}
	r.mover.lag, r.mover.lagged = r.lag, r.position.Open // so it is told soon how many are open now
	return r.finish(ctx, r.messages(ctx))
}

// messages processes what comes, also where a function of the stream ends this goroutine.
func (r *pushed[P, C]) messages(ctx context.Context) (err error) {
	progress, stop := lasting(ctx) // a function may go on behind it, and the next attempt has to get its messages
	var telling sync.WaitGroup
	telling.Go(func() { r.progress(progress) })
	defer func() {
		stop()
		telling.Wait()
	}()
	err = &threads.EndedError{In: "the run of the stream"}
	defer func() {
		if err != nil {
			r.fail(err) // an acknowledgement may wait for a source that is away
		}
		r.acks.Wait()
		if err == nil && r.running.Err() != nil { // not all was acknowledged
			err = context.Cause(r.running)
		}
	}()
	return r.process(r.running, source[C]{
		items:  r.arrivals,
		admit:  r.admit,
		room:   r.room,
		ahead:  prefetch,
		behind: r.behind,
	})
}

// resume tells the source how far the stream is, and has its moves record that.
func (r *pushed[P, C]) resume() error {
	from, is := r.from.(feed.Marked)
	if !is {
		return nil
	}
	r.mover.record = &marking{r.mover.record, r.mark}
	_, err := call(r, r.running, r.grace, func(context.Context) (none struct{}, err error) {
		from.Resume(r.position.Token)
		return none, nil
	})
	return err
}

// mark returns how far the source is acknowledged; "" = it does not say so.
func (r *pushed[P, C]) mark() string {
	if r.broken.Load() {
		return ""
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(r.running), tellsWithin)
	defer cancel()
	mark, err := call(r,
		within, tellsWithin, func(context.Context) (string, error) { return r.from.(feed.Marked).Mark(), nil })
	if err != nil || len(mark) > MaxTokenBytes || !utf8.ValidString(mark) {
		return ""
	}
	return mark
}

// marking records with each move how far a source is acknowledged, in place of a token.
type marking struct {
	workledger.Stream
	mark func() string
}

func (m *marking) Move(ctx context.Context, move workledger.Move) (workledger.Moved, error) {
	move.Token = m.mark()
	return m.Stream.Move(ctx, move)
}

// room reports whether more may come: another message, or the rest of the one that came last, which counts as open.
func (r *pushed[P, C]) room() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes < maxOpenBytes || len(r.open) <= 1
}

// call calls a method of the source, which fails the run if it panics, ends its goroutine, or goes on for long after
// its context.
func call[T, P, C any](
	r *pushed[P, C], ctx context.Context, grace time.Duration, method func(context.Context) (T, error),
) (T, error) {
	of := r.foreign()
	of.Grace = grace
	value, err := threads.Await(ctx, of, method)
	switch err.(type) {
	case *threads.PanicError, *threads.EndedError, *threads.AbandonedError:
		r.broken.Store(true)
		err = r.failure(&threads.IteratorError{Err: fmt.Errorf("%s: %w", r.behind(), err)})
		r.fail(err)
	}
	return value, err
}

// openSource opens the source, and leaves it behind if it takes too long to end.
func (s *flowOf[P, C]) openSource(ctx context.Context, of current[P]) (feed.Source, error) {
	from, err := threads.Await(ctx, of.foreign(), func(ctx context.Context) (feed.Source, error) {
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

// foreign names the source of the stream.
func (of *current[P]) foreign() threads.Foreign {
	return threads.Foreign{
		Name:      "the source of stream " + of.plan.ID,
		Grace:     of.grace,
		Abandoned: &abandoned,
	}
}

// closeSource closes a source, which gives back what is not acknowledged. It is left behind if it takes too long.
func (of *current[P]) closeSource(ctx context.Context, from feed.Source) {
	now, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel() // the grace is all that it has
	_, err := threads.Await(now,
		of.foreign(), func(context.Context) (none struct{}, err error) { return none, from.Close() })
	if err != nil {
		of.log.InfoContext(ctx, "the source was not closed in order", "stream", of.plan.ID, "error", err)
	}
}

func (r *pushed[P, C]) close(ctx context.Context) { r.closeSource(ctx, r.from) }

// behind names the message that came last.
func (r *pushed[P, C]) behind() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("behind message %d", r.last)
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
				yield(nil, &placedError{fmt.Errorf("%s: %w", r.behind(), err)})
				return
			}
			if m.Place <= r.last {
				yield(nil, &placedError{fmt.Errorf("%s: message %d, which is not a later one", r.behind(), m.Place)})
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

// next returns the next message. While the source is away it asks again, and that time does not count for Idle. Nor
// does that in which the source keeps messages back, or does not know whether it has any: it is given twice the time
// then.
func (r *pushed[P, C]) next(ctx context.Context) (m feed.Message, err error) {
	said := false
	for idle := r.Idle; ; idle = max(r.Idle, min(2*idle, longestWait)) {
		m, err = r.await(ctx, idle)
		away := errors.Is(err, feed.ErrAway)
		switch {
		case err == nil || m.Place != 0:
			return m, err
		case ctx.Err() != nil:
			return m, context.Cause(ctx)
		case errors.Is(err, feed.ErrUnsettled) && errors.Is(err, errIdle):
			continue
		case !away:
			return m, err
		case !said:
			said = true
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

// await waits for a message, and returns errIdle if none comes for a time in which none is open; 0: for ever. With
// feed.ErrAway or feed.ErrUnsettled the error wraps errIdle, too, if that time is over.
func (r *pushed[P, C]) await(ctx context.Context, idle time.Duration) (m feed.Message, err error) {
	if idle == 0 {
		return r.from.Next(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.begin(idle, func() { cancel(errIdle) })
	defer r.quit()
	m, err = r.from.Next(ctx)
	switch {
	case err == nil || m.Place != 0 || ctx.Err() == nil:
	case errors.Is(err, feed.ErrAway) || errors.Is(err, feed.ErrUnsettled):
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", err, cause)
		}
	default:
		err = context.Cause(ctx)
	}
	return m, err
}

// begin has a function be called once no message was open for a time, until quit is called.
func (r *pushed[P, C]) begin(after time.Duration, call func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = idleness{time.AfterFunc(after, call), after}
	if len(r.open) > 0 {
		r.idle.timer.Stop()
	}
}

func (r *pushed[P, C]) quit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle.timer.Stop()
	r.idle = idleness{}
}

// receive returns the arrivals of a message; err tells why it could not be read.
func (r *pushed[P, C]) receive(ctx context.Context, m feed.Message, err error) (all []*arrival[C]) {
	var changes []Change[C]
	if large := r.tooLarge(&m); large != nil && err != nil && !errors.Is(err, feed.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", large, err)
	} else if err == nil {
		err = large
	}
	size := m.Size() // before Convert has the headers
	if err == nil {
		changes, err = r.convert(&scope{Context: ctx, info: r.info}, r.params, m)
	}
	of := &message{
		Message: m,
		size:    size,
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
	r.bytes += of.size
	r.mu.Unlock()
	r.mover.opened()
	if len(all) == 0 {
		r.acknowledge(of)
	}
	return all
}

// tooLarge returns an error for a message above the limit of its source, of which it drops the data and the
// headers.
func (r *pushed[P, C]) tooLarge(m *feed.Message) error {
	limit := feed.MaxMessageBytes
	if from, is := r.from.(feed.Limited); is {
		limit = from.MaxBytes()
	}
	size := m.Size()
	if size <= limit {
		return nil
	}
	m.Data, m.Header = nil, nil
	return fmt.Errorf("message %d has %d bytes: %w of %d", m.Place, size, feed.ErrTooLarge, limit)
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

// admit takes an arrival, and ends the run with the message that completes its batch.
func (r *pushed[P, C]) admit(a *arrival[C]) (to threads.Admission, err error) {
	r.came += int64(len(a.parts))
	to.Last = r.Batch > 0 && r.position.Counted+r.came >= r.Batch && (a.last || a.current().unread != nil)
	return to, nil
}

// acknowledge acknowledges a message, and ends its arrivals then.
func (r *pushed[P, C]) acknowledge(m *message) {
	r.acks.Go(func() {
		ctx, done := lasting(r.running)
		defer done()
		_, err := call(r, ctx,
			r.grace, func(ctx context.Context) (none struct{}, err error) { return none, r.from.Ack(ctx, m.Message) })
		if err != nil {
			r.fail(r.failure(&threads.IteratorError{Err: fmt.Errorf("acknowledging message %d: %w", m.Place, err)}))
			return
		}
		r.mu.Lock()
		delete(r.open, m.Place)
		r.bytes -= m.size
		if len(r.open) == 0 && r.idle.timer != nil {
			r.idle.timer.Reset(r.idle.after)
		}
		r.mu.Unlock()
		r.mover.closed(m.outcomes)
		m.acknowledged()
		r.later.Wake() // a message without changes tells nobody, and makes room all the same
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
		within, cancel := context.WithTimeout(ctx, progressEvery)
		call(r, within, r.grace, r.tellProgress) // its error has failed the run
		cancel()
	}
}

// tellProgress tells the source of all messages that are not acknowledged.
func (r *pushed[P, C]) tellProgress(ctx context.Context) (none struct{}, err error) {
	for _, m := range r.unacknowledged() {
		if ctx.Err() != nil {
			break
		}
		if err := r.from.Progress(ctx, m.Message); err != nil { // the next tick may succeed
			r.log.DebugContext(ctx, "a message was not reported in progress", "place", m.Place, "error", err)
		}
	}
	return none, nil
}

// unacknowledged returns the messages that are not acknowledged.
func (r *pushed[P, C]) unacknowledged() []*message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.open))
}

// lag returns how many messages are known and not acknowledged, and when the oldest of them came.
func (r *pushed[P, C]) lag(ctx context.Context) (open int64, oldest time.Time) {
	if measured, is := r.from.(feed.Measured); is && !r.broken.Load() {
		type known struct {
			messages int64
			oldest   time.Time
		}
		within, cancel := context.WithTimeout(ctx, tellsWithin)
		defer cancel()
		all, err := call(r, within, tellsWithin, func(ctx context.Context) (k known, err error) {
			k.messages, k.oldest, err = measured.Pending(ctx)
			return k, err
		})
		if err == nil {
			return all.messages, all.oldest
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
