package ledger_test

import (
	"errors"
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/store"
)

// A cursor of another cluster would otherwise leave out the events up to it, without a word.
func TestFollow_RefusesACursorThatIsAheadOfAJournal(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(4)
	var head ledger.Cursor
	for shard := range pastShards {
		all := p.Records(shard)
		head = append(head, all[len(all)-1].Number)
	}
	p.keep(0)
	follow := func(c ledger.Cursor) (batches int, err error) {
		for _, err := range p.reader(p.archive).Ledger().Follow(testcluster.Within(t), c) {
			if err != nil {
				return batches, err
			}
			if batches++; batches == 2 {
				break
			}
		}
		return batches, nil
	}
	for _, ahead := range []ledger.Cursor{{head[0] + 1, 0}, {0, head[1] + 1}, {head[0] + 1000, head[1] + 1000}} {
		batches, err := follow(ahead)
		if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Field != "cursor" || batches > 0 {
			t.Errorf("cursor %v, the journals end with %v: %d batches, %v", ahead, head, batches, err)
		}
	}
	for _, within := range []ledger.Cursor{{0, 0}, {1, 1}, {head[0] - 1, head[1] - 1}} {
		if batches, err := follow(within); batches != 2 || err != nil {
			t.Errorf("cursor %v, the journals end with %v: %d batches, %v", within, head, batches, err)
		}
	}
}
