package trees

import (
	"context"
	"time"

	"taskledger/work"
)

// Delete deletes an entry of the target that Items has yielded a moment ago.
func (p *Pair) Delete(ctx context.Context, at string) (skipped string, err error) {
	return p.delete(ctx, at)
}

// FollowFast is Follow with another lag, and another time between two scans.
func (p *Pair) FollowFast(l Limits, lag, every time.Duration) *work.Work[FollowParams, work.Change[Change]] {
	return p.follow(l, &follower{
		pair:  p,
		lag:   lag,
		every: every,
	})
}
