package work

import (
	"strings"
	"sync"

	"taskledger/events"
)

// tally counts what became of the items of a bucket, and keeps the first errors.
type tally struct {
	mu     sync.Mutex
	counts Counts
	errors []ItemError
	bytes  int
	full   bool // an error did not fit: no later one is kept
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Done++
}

func (t *tally) skipped() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Skipped++
}

// failed counts an item, and keeps its error while there is room.
func (t *tally) failed(e ItemError) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.Failed++
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
