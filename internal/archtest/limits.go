package archtest

import (
	"fmt"
	"slices"
)

// Limits holds a number by package. "..." stands for all packages without a number of their own; where it is missing,
// these have no limit.
type Limits map[string]int

// broken returns the words of tell for each package above its limit, and a violation for every number of its own that a
// package does not reach, so that these can only fall.
func (l Limits) broken(sizes map[string]int, tell func(dir string, size, limit int) string) []string {
	var found []string
	general, all := l["..."]
	for dir, size := range sizes {
		limit, own := l[dir]
		if !own {
			limit = general
		}
		if (own || all) && size > limit {
			found = append(found, tell(dir, size, limit))
		}
	}
	for dir := range l {
		size, known := sizes[dir]
		switch {
		case dir == "...":
		case !known:
			found = append(found, fmt.Sprintf("%s: has a limit and does not exist", dir))
		case all && size <= general:
			found = append(found, fmt.Sprintf("%s: needs no limit of its own: %d is within %d", dir, size, general))
		case size < l[dir]:
			found = append(found, fmt.Sprintf("%s: lower its limit from %d to %d", dir, l[dir], size))
		}
	}
	slices.Sort(found)
	return found
}
