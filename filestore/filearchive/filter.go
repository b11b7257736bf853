package filearchive

import (
	"crypto/sha256"
	"encoding/binary"

	"taskledger/events"
)

const (
	// filterBits and filterProbes make one in a hundred tasks that are not inside look as if they were.
	filterBits   = 10 // per task
	filterProbes = 7
	// maxFilterBytes is enough for 4,900 tasks; of more, more look as if inside.
	maxFilterBytes = 6 << 10
)

// filter tells which tasks may be in a segment.
type filter []byte

func newFilter(tasks map[events.TaskID]struct{}) filter {
	f := make(filter, min((filterBits*len(tasks)+7)/8, maxFilterBytes))
	for task := range tasks {
		for bit := range f.probes(task) {
			f[bit/8] |= 1 << (bit % 8)
		}
	}
	return f
}

// mayHold is never false for a task that the filter was made of.
func (f filter) mayHold(task events.TaskID) bool {
	for bit := range f.probes(task) {
		if f[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// probes yields the bits of a task: none of an empty filter, which may hold everything.
func (f filter) probes(task events.TaskID) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		if len(f) == 0 {
			return
		}
		sum := sha256.Sum256([]byte(task))
		bit, step := binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])
		for range filterProbes {
			if !yield(bit % uint64(8*len(f))) {
				return
			}
			bit += step
		}
	}
}
