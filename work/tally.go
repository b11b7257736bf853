package work

import (
	"context"
	"strings"
	"sync"
	"time"

	"taskledger/events"
)

// tally counts what became of the items of a bucket, and keeps the first errors.
type tally struct {
	mu     sync.Mutex
	counts Counts
	firstErrors

	tell func(processed int64) // takes how many items have ended; nil = nobody wants to know
	told time.Time             // when it was told last; at first, when the bucket began
	said int64                 // what was told last
}

// firstErrors keeps the first errors of items.
type firstErrors struct {
	errors []ItemError
	bytes  int
	full   bool // an error did not fit: no later one is kept
}

// keep keeps an error while there is room.
func (f *firstErrors) keep(e ItemError) {
	bytes := len(e.Item) + len(e.Code) + len(e.Message)
	if f.full = f.full || len(f.errors) == MaxErrors || f.bytes+bytes > MaxErrorBytes; f.full {
		return
	}
	f.bytes += bytes
	f.errors = append(f.errors, e)
}

// tellEvery is the time between two reports on the items of a bucket that takes long, if there is something new.
const tellEvery = 10 * time.Second

// tells has the tally tell how many items have ended, from now on. A nil function tells nobody.
func (t *tally) tells(tell func(processed int64)) {
	t.told, t.tell = time.Now(), tell
}

func (t *tally) done() { t.count(&t.counts.Done) }

func (t *tally) skipped() { t.count(&t.counts.Skipped) }

// count counts an item, and tells now and then how many there were.
func (t *tally) count(of *int64) {
	if processed, tells := t.add(of); tells {
		t.tell(processed)
	}
}

// add counts an item, and returns whether it is time to tell.
func (t *tally) add(of *int64) (processed int64, tells bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*of++
	processed, tells, _ = t.news()
	return processed, tells
}

// news returns whether it is time to tell, and after which time to ask again. The lock is held.
func (t *tally) news() (processed int64, tells bool, after time.Duration) {
	if t.tell == nil {
		return 0, false, 0
	}
	if early := tellEvery - time.Since(t.told); early > 0 {
		return 0, false, early
	}
	processed = t.counts.Done + t.counts.Failed + t.counts.Skipped
	if processed == t.said { // the next item that ends is told at once
		return 0, false, tellEvery
	}
	t.told, t.said = time.Now(), processed
	return processed, true, tellEvery
}

// watch tells what is new while no item ends, until stop has returned.
func (t *tally) watch() (stop func()) {
	if t.tell == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for after := tellEvery; ; {
			timer := time.NewTimer(after)
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			after = t.look()
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// look tells if it is time to, and returns the time after which to look again.
func (t *tally) look() time.Duration {
	t.mu.Lock()
	processed, tells, after := t.news()
	t.mu.Unlock()
	if tells {
		t.tell(processed)
	}
	return after
}

// failed counts an item, and keeps its error while there is room.
func (t *tally) failed(e ItemError) {
	t.count(&t.counts.Failed)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(e)
}

// fit makes the texts of an error storable: they are UTF-8 and within the limits.
func fit(e ItemError) ItemError {
	return ItemError{
		Item:    events.Cut(strings.ToValidUTF8(e.Item, "?"), MaxItemBytes),
		Code:    events.Head(strings.ToValidUTF8(e.Code, "?"), MaxCodeBytes),
		Message: events.Cut(strings.ToValidUTF8(e.Message, "?"), MaxMessageBytes),
	}
}
