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

// Fast holds what a test changes of a follower.
type Fast struct {
	Lag   time.Duration
	Every time.Duration // the least time between two scans
	Again time.Duration // the longest time after which what failed is tried again; 0 = the usual one
	Most  int           // paths that are remembered as not settled; 0 = the usual number
	// Clock tells the time, and how much has passed since some moment.
	Clock func() (wall time.Time, passed time.Duration)
}

// FollowFast is Follow with other times and bounds.
func (p *Pair) FollowFast(l Limits, fast Fast) *work.Work[FollowParams, work.Change[Change]] {
	return p.follow(l, &follower{
		pair:  p,
		lag:   fast.Lag,
		every: fast.Every,
		clock: func() (m moment) {
			m.wall, m.passed = fast.Clock()
			return m
		},
		open: unsettled{most: fast.Most, wait: fast.Again},
	})
}

// List returns the entries of a directory that a scan has seen a moment ago.
func List(tree *os.Root, at string) ([]fs.DirEntry, error) { return list(tree, at) }
