package ledger

import (
	"context"
	"fmt"
	"iter"

	"taskledger/events"
)

// History yields the events of the present life of a task, in order, or of its last life if it was deleted or is no
// longer kept. It holds a few hundred events at most. If the beginning of that life is no longer there, it yields the
// rest, and then store.ErrTrimmed. It yields task.ErrNotFound if there is nothing of the task.
//
// A long life takes a while from its beginning on: HistoryPage reads its latest events at once.
func (l *Ledger) History(ctx context.Context, id events.TaskID) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f, err := l.life(ctx, id, 0)
		if err != nil {
			yield(Event{}, fmt.Errorf("history of %s: %w", id, err))
			return
		}
		before := f.newRecall()
		for ev, err := range f.oldest(ctx, after{}, 0, false) {
			if err != nil {
				yield(Event{}, fmt.Errorf("history of %s: %w", id, err))
				return
			}
			told, err := before.tell(ctx, f.shard, ev)
			if err != nil {
				yield(Event{}, fmt.Errorf("history of %s: %w", id, err))
				return
			}
			if !yield(told, nil) {
				return
			}
		}
	}
}
