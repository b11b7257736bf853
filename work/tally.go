package work

import (
	"strings"
	"sync"
	"time"

	"taskledger/events"
)

// tally counts what became of the items of a bucket, and keeps the first errors.
type tally struct {
	mu     sync.Mutex
	counts Counts
	errors []ItemError
	bytes  int
	full   bool // an error did not fit: no later one is kept

	tell func(processed int64) // takes how many items have ended; nil = nobody wants to know
	told time.Time             // when it was told last; at first, when the bucket began
}

// tellEvery is the time between two reports on the items of a bucket that takes long.
const tellEvery = 10 * time.Second

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
	if t.tell == nil || time.Since(t.told) < tellEvery {
		return 0, false
	}
	t.told = time.Now()
	return t.counts.Done + t.counts.Failed + t.counts.Skipped, true
}

// failed counts an item, and keeps its error while there is room.
func (t *tally) failed(e ItemError) {
	t.count(&t.counts.Failed)
	t.mu.Lock()
	defer t.mu.Unlock()
	bytes := len(e.Item) + len(e.Code) + len(e.Message)
	if t.full = t.full || len(t.errors) == MaxErrors || t.bytes+bytes > MaxErrorBytes; t.full {
		return
	}
	t.bytes += bytes
	t.errors = append(t.errors, e)
}

// fit makes the texts of an error storable: they are UTF-8 and within the limits.
func fit(e ItemError) ItemError {
	return ItemError{
		Item:    events.Cut(strings.ToValidUTF8(e.Item, "?"), MaxItemBytes),
		Code:    events.Head(strings.ToValidUTF8(e.Code, "?"), MaxCodeBytes),
		Message: events.Cut(strings.ToValidUTF8(e.Message, "?"), MaxMessageBytes),
	}
}
