package work

import "hash/maphash"

// visited remembers tokens of a run to find a source that goes round: the last ones that came, and of all before one
// more, which is another after twice as many tokens each time, so that a way round of any length is found in the end.
type visited struct {
	seed   maphash.Seed
	recent map[uint64]struct{}
	ring   []uint64 // the hashes of recent, the oldest at next once it is full
	next   int

	mark  uint64 // hash of the one that is remembered longer
	came  uint64 // tokens since then
	until uint64 // with so many the next one is remembered
}

func newVisited() visited {
	return visited{
		seed:   maphash.MakeSeed(),
		recent: map[uint64]struct{}{},
		until:  1,
	}
}

// again reports whether a token has come before, as far as that is remembered, and remembers it. Two tokens of one hash
// are taken for one, which costs an attempt: the next one has other hashes.
func (v *visited) again(token string) bool {
	h := maphash.String(v.seed, token)
	if _, is := v.recent[h]; is || h == v.mark && v.came > 0 {
		return true
	}
	v.recent[h] = struct{}{}
	if len(v.ring) < maxAhead {
		v.ring = append(v.ring, h)
	} else {
		delete(v.recent, v.ring[v.next])
		v.ring[v.next] = h
		v.next = (v.next + 1) % maxAhead
	}
	if v.came++; v.came >= v.until {
		v.mark, v.came, v.until = h, 1, 2*v.until
	}
	return false
}
