package trees

import (
	"cmp"
	"sync"
	"time"
)

const (
	// maxUnsettled bounds the paths that a follower remembers as not settled.
	maxUnsettled = 100_000
	// tryAgain is the longest time after which a path that failed is tried again, though it has not changed.
	tryAgain = 30 * time.Second
)

// unsettled holds the paths of changes that were told, until they are in the target. It may be used concurrently.
type unsettled struct {
	mu    sync.Mutex
	scan  uint64 // the number of the last scan
	paths map[string]*change
	full  bool          // some were not remembered
	most  int           // paths that are remembered; 0 = maxUnsettled
	wait  time.Duration // as tryAgain; 0 = that
}

// change tells when a path was told.
type change struct {
	scan  uint64        // the first scan since which it is not settled
	last  uint64        // the scan that has told it last
	wait  time.Duration // between its last failure and the next try
	again time.Time     // when it is to be tried again; zero = it has not failed
	seen  uint64        // the scan that has told all that stood behind the path; 0 = the path itself is to be settled
}

// begin forgets all, as an attempt begins that tells them again.
func (u *unsettled) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.paths, u.full = map[string]*change{}, false
}

// next returns the number of a new scan.
func (u *unsettled) next() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.scan++
	return u.scan
}

// add notes that a scan tells a path.
func (u *unsettled) add(path string, scan uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch c := u.paths[path]; {
	case c != nil:
		c.last, c.seen = scan, 0
	case len(u.paths) >= u.bound():
		u.full = true
	default:
		u.paths[path] = &change{scan: scan, last: scan}
	}
}

func (u *unsettled) bound() int { return cmp.Or(u.most, maxUnsettled) }

func (u *unsettled) longest() time.Duration { return cmp.Or(u.wait, tryAgain) }

// again reports whether paths that were not remembered are to be told again, since there is room for them now.
func (u *unsettled) again() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.full || len(u.paths) > u.bound()/2 {
		return false
	}
	u.full = false
	return true
}

// settle notes that a path, as a scan has told it, is in the target.
func (u *unsettled) settle(path string, scan uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.paths[path]; c != nil && c.last <= scan {
		delete(u.paths, path)
	}
}

// see notes that the last scan has told all that stood behind a path: with that the path is settled.
func (u *unsettled) see(path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.paths[path]; c != nil {
		c.seen = u.scan
	}
}

// fail notes that a path, as a scan has told it, could not be brought into the target. It is tried again after wait,
// and after twice the last wait if it failed before, but within the longest one.
func (u *unsettled) fail(path string, scan uint64, now time.Time, wait time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.paths[path]; c != nil && c.last <= scan {
		c.wait = min(max(wait, 2*c.wait), u.longest())
		c.again = now.Add(c.wait)
	}
}

// due returns the paths that are to be tried again.
func (u *unsettled) due(now time.Time) (paths []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for path, c := range u.paths {
		if !c.again.IsZero() && !now.Before(c.again) {
			paths = append(paths, path)
			c.again = now.Add(u.longest())
		}
	}
	return paths
}

// settled returns the number of the last scan before which, with it, all is settled.
func (u *unsettled) settled() (scan uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.full {
		return 0
	}
	scan = u.scan
	for _, c := range u.paths {
		if c.seen == 0 {
			scan = min(scan, c.scan-1)
		}
	}
	told := scan
	for path, c := range u.paths {
		switch {
		case c.seen == 0:
		case c.seen <= told:
			delete(u.paths, path)
		default:
			scan = min(scan, c.scan-1)
		}
	}
	return scan
}
