package trees

import (
	"context"
	"io/fs"
	"os"
	"time"

	"taskledger/work"
)

// Delete deletes an entry of the target that Items has yielded a moment ago.
func (p *Pair) Delete(ctx context.Context, at string) (skipped string, err error) {
	return p.delete(ctx, at)
}

// FollowFast is Follow with another lag, another time between two scans, and another number of paths that are remembered
// as not settled; 0 = the usual one.
func (p *Pair) FollowFast(l Limits, lag, every time.Duration, most int) *work.Work[FollowParams, work.Change[Change]] {
	return p.follow(l, &follower{
		pair:  p,
		lag:   lag,
		every: every,
		open:  unsettled{most: most},
	})
}

// List returns the entries of a directory that a scan has seen a moment ago.
func List(tree *os.Root, at string) ([]fs.DirEntry, error) { return list(tree, at) }
