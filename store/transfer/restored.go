package transfer

import (
	"context"
	"fmt"

	"taskledger/store"
)

// mayHaveGoneOn returns the loss that the next owner of a shard records where the cluster goes back to an earlier time.
func (c *copying) mayHaveGoneOn(ctx context.Context, shard int, first uint64) (store.Loss, error) {
	l := store.Loss{Shard: shard, Revision: 1}
	for last, err := range c.From.Read(ctx, shard, max(first, 1)) {
		if err != nil {
			return store.Loss{}, err
		}
		e, err := decode(shard, last)
		if err != nil {
			return store.Loss{}, err
		}
		l.Entry, l.Hash, l.Revision = last.Number, e.Hash, last.Revision
	}
	l.Reason = fmt.Sprintf("the store was restored: the journal ends with entry %d: whether it went on is not known",
		l.Entry)
	return l, nil
}
