package cron

import (
	"strconv"
	"strings"
)

// run is a part of a set without gaps. hi is below lo where it goes on at the beginning.
type run struct{ lo, hi int }

// runs returns the parts of a set of numbers from lo to hi that have no gaps. Where these are 24 numbers at most, as
// hours, weekdays and months are, the last part may go on at the beginning.
func (s *set) runs(lo, hi int) (all []run) {
	for n := s.from(lo); n >= 0; {
		r := run{n, n}
		for r.hi < hi && s.has(r.hi+1) {
			r.hi++
		}
		all = append(all, r)
		n = s.from(r.hi + 1)
	}
	if last := len(all) - 1; last > 0 && hi-lo < 24 && all[0].lo == lo && all[last].hi == hi {
		all[last].hi = all[0].hi
		all = all[1:]
	}
	return all
}

// words lists a set of numbers from lo to hi by their names.
func (s *set) words(lo, hi int, name func(n int) string) string {
	var all []string
	for _, r := range s.runs(lo, hi) {
		switch r.hi - r.lo {
		case 0:
			all = append(all, name(r.lo))
		case 1, lo - hi:
			all = append(all, name(r.lo), name(r.hi))
		default:
			all = append(all, name(r.lo)+" to "+name(r.hi))
		}
	}
	return and(all)
}

// numbered lists a set of numbers from lo to hi after a noun.
func (s *set) numbered(noun string, lo, hi int) string {
	if s.size() > 1 {
		noun += "s"
	}
	return noun + " " + s.words(lo, hi, strconv.Itoa)
}

// paced returns the distance of the numbers of a set on a dial of so many, 0 where it is not the same between all.
func (s *set) paced(dial int) int {
	n, first := s.size(), s.from(0)
	if n < 2 || dial%n != 0 {
		return 0
	}
	for i := range n {
		if !s.has(first + i*dial/n) {
			return 0
		}
	}
	return dial / n
}

// mostWords bounds a list in full; of a longer one three and the last one are named.
const mostWords = 12

// and joins texts by commas and a last "and".
func and(all []string) string {
	last := len(all) - 1
	if last < 1 {
		return strings.Join(all, "")
	}
	if last >= mostWords {
		return strings.Join(all[:3], ", ") + " ... " + all[last]
	}
	return strings.Join(all[:last], ", ") + " and " + all[last]
}
