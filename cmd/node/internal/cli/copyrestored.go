package cli

import (
	"context"
	"fmt"

	"taskledger/events"
	"taskledger/store"
	"taskledger/store/transfer"
)

// restored is the source of a copy that takes a cluster back to an earlier time: each shard may have gone on since, so
// that its next owner records a loss and gives no id again that an item may have had.
type restored struct{ transfer.Source }

// Loss implements transfer.Source. A loss that waits to be recorded already is as good.
func (r restored) Loss(ctx context.Context, shard int) (store.Loss, error) {
	l, err := r.Source.Loss(ctx, shard)
	if err != nil || l.Revision != 0 {
		return l, err
	}
	l = store.Loss{Shard: shard, Revision: 1}
	first, err := r.First(ctx, shard)
	if err != nil {
		return store.Loss{}, err
	}
	for last, err := range r.Read(ctx, shard, max(first, 1)) {
		if err != nil {
			return store.Loss{}, err
		}
		e, err := events.Decode(last.Data)
		if err != nil {
			return store.Loss{}, fmt.Errorf("entry %d of shard %d: %w", last.Number, shard, err)
		}
		l.Entry, l.Hash, l.Revision = e.Number, e.Hash, last.Revision
	}
	l.Reason = fmt.Sprintf("the store was restored: the journal ends with entry %d: whether it went on is not known", l.Entry)
	return l, nil
}
