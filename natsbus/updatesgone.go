package natsbus

import (
	"context"
	"time"

	"taskledger/work/feed/inorder"
)

// lookAgain is the least time between two looks for messages that the stream has no more.
const lookAgain = 5 * time.Second

// doubt looks for messages that are here and that the stream has no more, as its limits or somebody have removed them,
// where those decide whether the queue is settled. The server waits for no acknowledgement of such a message, so they
// would count in place of others that are missing.
func (u *Updates) doubt(ctx context.Context, is inorder.State) error {
	u.mu.Lock()
	all, missing := u.queue.All(), u.queue.Missing(is)
	u.mu.Unlock()
	if len(all) == 0 || missing > 0 || missing < 0 && time.Since(u.has.looked) < lookAgain {
		return nil
	}
	u.has.looked = time.Now()
	stream, err := u.streamInfo(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		gone := d.Place < stream.State.FirstSeq
		if !gone && stream.State.NumDeleted > 0 {
			m, err := u.get(ctx, getRequest{Sequence: d.Place})
			if err != nil {
				return err
			}
			gone = m == nil
		}
		if gone {
			u.mu.Lock()
			u.queue.Doubt(d.Place)
			u.mu.Unlock()
		}
	}
	return nil
}
