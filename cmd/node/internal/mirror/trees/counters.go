package trees

import (
	"context"

	"taskledger/work"
)

// The counters of the partitions. A copy or a deletion asks for a permit right before it is made, and an item that fails
// before that is counted apart, without a limit. So the number of copies or deletions is their counter less the items
// that failed behind their permit, also where a bucket was worked on twice.
const (
	CounterCopies    = "copies"
	CounterDeletes   = "deletes"
	CounterUntouched = "untouched"
)

// askedKey is the key of a context for the *bool that tells whether an item has asked for a permit.
type askedKey struct{}

// permit asks for the permit of an item.
func permit(ctx context.Context, counter string) error {
	if asked, is := ctx.Value(askedKey{}).(*bool); is {
		*asked = true
	}
	return work.Permit(ctx, counter)
}

// CodeChanged is the code of a file that was changed while it was copied.
const CodeChanged = "changed"
