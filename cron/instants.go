package cron

import "time"

// fixed returns the instant, t or the next one in the direction of the search, at which clocks first show a matching
// wall time or a later one.
func (s *search) fixed(t int64, zone *time.Location) (int64, bool) {
	wall := highest(t, zone)
	if s.direction > 0 {
		wall = highest(t-1, zone) + 1
	}
	wall, found := s.seek(wall)
	if !found {
		return 0, false
	}
	return reached(wall, zone), true
}

// shownFrom returns the first instant, t or later, at which clocks show a matching wall time.
func (s *search) shownFrom(t int64, zone *time.Location) (int64, bool) {
	for {
		wall, found := s.seek(lowest(t, zone))
		if !found {
			return 0, false
		}
		// Before these two days clocks show less than wall, after them more.
		for t = max(t, wall-reachSeconds); t < wall+reachSeconds; {
			p := periodAt(t, zone)
			if wall, found := s.seek(t + p.offset); found && wall-p.offset < p.end {
				return wall - p.offset, true
			}
			t = p.end
		}
	}
}

// shownUpTo returns the last instant, t or earlier, at which clocks show a matching wall time.
func (s *search) shownUpTo(t int64, zone *time.Location) (last int64, found bool) {
	for {
		wall, ok := s.seek(highest(t, zone))
		if !ok {
			return 0, false
		}
		t = min(t, wall+reachSeconds)
		for at := wall - reachSeconds; at <= t; {
			p := periodAt(at, zone)
			wall, ok := s.seek(min(t, p.end-1) + p.offset)
			if ok && wall-p.offset >= at {
				last, found = wall-p.offset, true
			}
			at = p.end
		}
		if found {
			return last, true
		}
		t = wall - reachSeconds - 1
	}
}
