package natsbus

import (
	"slices"
	"sync"
)

// placesKept bounds the places of each shard that are remembered.
const placesKept = 64

// places remembers in which segments entries were found, so that whoever reads them again, as pages that refresh
// themselves do, needs no bisection. A place only tells where to look first: the header of what is there decides.
type places struct {
	mu sync.Mutex
	of map[int][]place // shard -> the newest last
}

// place tells of a segment which entries it holds, and where it is in the stream.
type place struct {
	span
	sequence uint64
}

// find returns the sequence of the segment in which an entry of a shard was found; 0 = it is not remembered.
func (p *places) find(shard int, entry uint64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range slices.Backward(p.of[shard]) {
		if at.first <= entry && entry <= at.last {
			return at.sequence
		}
	}
	return 0
}

// keep remembers a segment of a shard in the place of the one that was found first, where there are too many.
func (p *places) keep(shard int, found span, sequence uint64) {
	at := place{found, sequence}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[int][]place{}
	}
	all := p.of[shard]
	if slices.Contains(all, at) {
		return
	}
	if len(all) == placesKept {
		all = slices.Delete(all, 0, 1)
	}
	p.of[shard] = append(all, at)
}
