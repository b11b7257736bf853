package threads

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"taskledger/work/internal/order"
)

// DefaultGrace is the time in which an iterator has to return after it was told to stop.
const DefaultGrace = 10 * time.Second

// Item is an item of the iterator, with its key, its ordinal and the number of the try.
type Item[I any] = order.Item[I]

// Config says what Run does. Items and Process are required.
type Config[I any] struct {
	// Name names the run in errors.
	Name string
	// Threads is the number of items that are processed side by side, 1 to 256. 0 stands for 1.
	Threads int
	// Items returns the iterator. Its context ends when nothing more is wanted. The first error that the iterator yields
	// ends it.
	Items func(context.Context) iter.Seq2[I, error]
	// Key returns the key of an item. Items of one key are processed one after the other, in their order. nil, or "":
	// the item has no key and waits for no other one.
	Key func(I) string
	// Process carries out an item. Unless Threads is 1 it is called concurrently.
	Process func(context.Context, *Item[I]) Verdict
	// Admit takes each item in the order in which the iterator yields them, before Key. Its error ends the run as one of
	// the iterator does. nil: each item is taken.
	Admit func(I) (Admission, error)
	// Room reports whether another item may be fetched; it is asked again when an item has ended, and at
	// Later.Wake. nil: it may.
	Room func() bool
	// Ahead is the number of items that should wait ready. 0: two for each thread.
	Ahead int
	// Later takes the verdicts of items that are set aside by Verdict.Later. nil: there are none.
	Later *Later[I]
	// Grace is the time in which the iterator has to return after it was told to stop. 0: DefaultGrace.
	Grace time.Duration
	// Abandoned counts the iterators that were left behind; nil: nobody asks.
	Abandoned *Abandoned
}

// Admission says what becomes of an item that was fetched. The zero value takes it.
type Admission struct {
	Skip bool // the item is not processed
	Last bool // the iterator is told to stop: no item is taken after this one
}

// Verdict says what comes after an item was processed. The zero value ends the item.
type Verdict struct {
	// Again sets the item aside, to be processed once more after the time After. It keeps its key and no thread.
	Again bool
	After time.Duration
	// Later sets the item aside until Config.Later tells its verdict. It keeps its key and no thread.
	Later bool
	// Stop, if it is not nil, ends the run: no item starts any more, and Run returns it.
	Stop error
}

// run holds the state of a call of Run. The goroutine of that call alone uses order.
type run[I any] struct {
	Config[I]
	order     *order.Order[I]
	fetcher   *fetcher[I]
	cancel    context.CancelFunc // ends the context of the iterator
	exhausted bool               // the iterator has returned, or was told that nothing more is wanted
	enough    bool               // the iterator was told to stop
	fetched   int64
	awaiting  awaiting[I]

	work       chan *Item[I]
	ended      chan ending[I] // with room for each thread
	processors int
	running    sync.WaitGroup
}

type ending[I any] struct {
	item    *Item[I]
	verdict Verdict
}

// Run carries out every item and returns nil once all have ended and the iterator has returned. Otherwise it returns
// what stopped it: the cause of ctx, the Stop of a verdict, an *IteratorError, or the *PanicError or *EndedError of
// Key or Process. Then no further item starts, those in progress are waited for, and those behind them are dropped.
// If the iterator fails while it is stopped, that failure is joined behind; an *IteratorError is never part of a join
// by itself.
//
// An error of ctx counts above what the iterator makes of it: an iterator that returns early because its context has
// ended has not seen all items. If it has returned before, and nothing is left but items in progress, Run succeeds when
// these end.
//
// Run leaves no goroutine behind except an iterator's that does not return within Grace.
func Run[I any](ctx context.Context, c Config[I]) error {
	c.Threads = max(c.Threads, 1)
	c.Ahead = cmp.Or(c.Ahead, 2*c.Threads)
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	if c.Abandoned == nil {
		c.Abandoned = new(Abandoned)
	}
	if c.Later == nil {
		c.Later = NewLater[I]()
	}
	fetching, cancel := context.WithCancel(ctx)
	r := &run[I]{
		Config:   c,
		order:    order.New[I](c.Ahead),
		fetcher:  newFetcher(c.Items),
		cancel:   cancel,
		awaiting: awaiting[I]{},
		work:     make(chan *Item[I]),
		ended:    make(chan ending[I], c.Threads),
	}
	go r.fetcher.run(fetching, c.Abandoned)
	var late *IteratorError
	err := func() error {
		defer func() { late = r.finish() }() // also when Process ends this goroutine
		if c.Threads == 1 {
			return r.alone(ctx)
		}
		return r.together(ctx)
	}()
	return join(err, late)
}

// join adds what the iterator did wrong while it was stopped.
func join(err error, late *IteratorError) error {
	first, iterator := err.(*IteratorError)
	switch {
	case late == nil:
		return err
	case err == nil:
		return late
	case iterator:
		return &IteratorError{errors.Join(first.Err, late.Err)}
	}
	return errors.Join(err, late)
}

// alone processes the items in the goroutine of the caller.
func (r *run[I]) alone(ctx context.Context) error {
	for {
		if err := r.settle(); err != nil {
			return err
		}
		if it := r.order.Next(); it != nil && ctx.Err() == nil {
			r.order.Take()
			if err := r.end(ending[I]{it, r.process(ctx, it)}); err != nil {
				return err
			}
			r.order.Wake(time.Now())
			continue
		}
		if over, err := r.step(ctx, nil); over || err != nil {
			return err
		}
	}
}

// together hands the items to processors, of which it starts as many as it needs.
func (r *run[I]) together(ctx context.Context) error {
	for {
		it := r.order.Next()
		switch busy := r.order.Processing(); {
		case busy == r.Threads: // so that ended has room for each item that is processed
			it = nil
		case it != nil && busy == r.processors:
			r.processors++
			r.running.Go(func() { r.processor(ctx) })
		}
		if over, err := r.step(ctx, it); over || err != nil {
			return err
		}
	}
}

// step waits for the next thing that happens, and reports whether all is over. ready is the item for a processor.
func (r *run[I]) step(ctx context.Context, ready *Item[I]) (over bool, err error) {
	stop := ctx.Done()
	if ctx.Err() != nil {
		if !r.exhausted || !r.order.Ending() {
			return true, context.Cause(ctx)
		}
		stop = nil // nothing is left to start: how the last items end decides
	}
	if r.exhausted && r.order.Empty() {
		return true, nil
	}
	var from <-chan fetched[I]
	var returned <-chan struct{}
	var work chan<- *Item[I]
	if !r.exhausted {
		returned = r.fetcher.done
		if r.order.Room() && (r.Room == nil || r.Room()) {
			from = r.fetcher.to
		}
	}
	if ready != nil {
		work = r.work
	}
	wake, silence := r.alarm()
	defer silence()
	select {
	case <-stop:
	case got := <-from:
		err = r.receive(ctx, got)
	case <-returned:
		r.exhausted = ctx.Err() == nil // else it may have ended early
		over = r.fetcher.failure() != nil
	case work <- ready:
		r.order.Take()
	case e := <-r.ended:
		err = r.end(e)
	case <-r.Later.bell:
		err = r.settle()
	case <-wake:
	}
	r.order.Wake(time.Now())
	return over, err
}

// alarm rings when a resting item is due.
func (r *run[I]) alarm() (ring <-chan time.Time, silence func()) {
	due, rests := r.order.Due()
	if !rests {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(due))
	return timer.C, func() { timer.Stop() }
}

// receive takes what the iterator yielded.
func (r *run[I]) receive(ctx context.Context, got fetched[I]) (err error) {
	switch {
	case got.err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case got.err != nil:
		return &IteratorError{got.err}
	}
	r.fetched++
	it := &Item[I]{
		Value:   got.value,
		Ordinal: r.fetched,
		Try:     1,
	}
	if r.Admit != nil {
		admission, err := r.Admit(it.Value)
		if err != nil {
			return &IteratorError{err}
		}
		if admission.Last {
			r.exhausted = true
			r.stop()
		}
		if admission.Skip {
			return nil
		}
	}
	if r.Key != nil {
		Watch("the function of keys", func() { it.Key = r.Key(it.Value) }, func(failure error) { err = failure })
	}
	if err == nil {
		r.order.Put(it)
	}
	return err
}

func (r *run[I]) end(e ending[I]) error {
	switch {
	case e.verdict.Stop != nil:
		return e.verdict.Stop
	case e.verdict.Again:
		r.order.Rest(e.item, time.Now().Add(e.verdict.After))
	case e.verdict.Later:
		r.order.Await(e.item)
		if v, told := r.awaiting.set(e.item); told {
			r.order.Awaited(e.item)
			return r.end(ending[I]{e.item, v})
		}
	default:
		r.order.Done(e.item)
	}
	return nil
}

// settle ends the wait of the items whose verdicts have come.
func (r *run[I]) settle() error {
	for _, e := range r.Later.take() {
		if !r.awaiting.told(e) { // its processor has not come back
			continue
		}
		r.order.Awaited(e.item)
		if err := r.end(e); err != nil {
			return err
		}
	}
	return nil
}

// processor processes items until there is no more work, or Process ends its goroutine.
func (r *run[I]) processor(ctx context.Context) {
	for it := range r.work {
		e := ending[I]{item: it}
		func() {
			defer func() { r.ended <- e }()
			e.verdict = Verdict{Stop: &EndedError{In: processing}}
			e.verdict = r.process(ctx, it)
		}()
	}
}

const processing = "the function that processes an item"

func (r *run[I]) process(ctx context.Context, it *Item[I]) (v Verdict) {
	Watch(processing, func() { v = r.Process(ctx, it) }, func(failure error) { v = Verdict{Stop: failure} })
	return v
}

// stop tells the iterator once that nothing more is wanted.
func (r *run[I]) stop() {
	if !r.enough {
		r.enough = true
		close(r.fetcher.stopping)
		r.cancel()
	}
}

// finish stops what still goes on, and returns in what way the iterator failed meanwhile.
func (r *run[I]) finish() *IteratorError {
	close(r.work)
	r.stop()
	grace := time.NewTimer(r.Grace)
	defer grace.Stop()
	r.running.Wait()
	select {
	case <-r.fetcher.done:
	case <-grace.C:
		select {
		case <-r.fetcher.done: // while items were waited for
		default:
			r.Abandoned.add(r.fetcher, r.Name, r.fetcher.done)
			return &IteratorError{&AbandonedError{r.Name}}
		}
	}
	return r.fetcher.failure()
}
