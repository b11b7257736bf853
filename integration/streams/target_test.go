package streams_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"taskledger/events"
)

// change is a change of an object. Those of an object tell the place of the one before.
type change struct {
	Key    string
	Place  uint64
	Before uint64 // 0 = it is the first one of its object
}

// script holds the changes that a source has, by place.
type script struct {
	mu   sync.Mutex
	all  []change
	last map[string]uint64
}

// add adds a change of a key.
func (s *script) add(keys ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]uint64{}
	}
	for _, key := range keys {
		c := change{
			Key:    key,
			Place:  uint64(len(s.all)) + 1,
			Before: s.last[key],
		}
		s.last[key] = c.Place
		s.all = append(s.all, c)
	}
}

// many returns a script of n changes, a tenth of them of one key and the others of so many more.
func many(n, keys int) *script {
	s := new(script)
	for i := range n {
		if i%10 == 0 {
			s.add("hot")
		} else {
			s.add(fmt.Sprintf("key %d", (i*7919)%keys))
		}
	}
	return s
}

// from returns the changes behind a place.
func (s *script) from(place uint64) []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all[min(place, uint64(len(s.all))):])
}

// target holds objects outside of the engine. Of each object it knows by which fencing token it was written last, of an
// attempt of the stream or of a hold, and refuses lower ones, and which change: it applies no change twice.
type target struct {
	mu      sync.Mutex
	objects map[string]object
	done    map[uint64]time.Time // when a change was processed first, by place
	times   map[uint64]int
	applied map[uint64]int // how often a change has changed its object, by place
	last    string         // node that has processed something last
	wrong   []string
}

type object struct {
	fence events.Ref
	place uint64
}

func newTarget() *target {
	return &target{
		objects: map[string]object{},
		done:    map[uint64]time.Time{},
		times:   map[uint64]int{},
		applied: map[uint64]int{},
	}
}

// apply applies a change for an attempt on a node.
func (t *target) apply(node string, fence events.Ref, c change) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.objects[c.Key]
	switch {
	case fence < is.fence:
		return fmt.Errorf("token %d is below %d, which has written %s", fence, is.fence, c.Key)
	case c.Place <= is.place: // it was applied, and comes again
	case c.Before != is.place:
		t.wrong = append(t.wrong, fmt.Sprintf("change %d of %s comes behind %d, not %d", c.Place, c.Key, is.place, c.Before))
		fallthrough
	default:
		t.applied[c.Place]++
		is.place = c.Place
	}
	is.fence = fence
	t.objects[c.Key] = is
	if t.times[c.Place]++; t.times[c.Place] == 1 {
		t.done[c.Place] = time.Now()
	}
	t.last = node
	return nil
}

// count returns how many changes were processed, and how many more times.
func (t *target) count() (done, again int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, times := range t.times {
		again += times - 1
	}
	return len(t.times), again
}

// ran notes that a node has processed something without applying it.
func (t *target) ran(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = node
}

// node returns the node that has processed something last.
func (t *target) node() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// allUpTo returns when the last of the changes up to a place was processed; false: one of them was not.
func (t *target) allUpTo(place uint64) (at time.Time, all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range place {
		done, is := t.done[p+1]
		if !is {
			return at, false
		}
		if done.After(at) {
			at = done
		}
	}
	return at, true
}

// wantAll reports an error unless every change was applied once, in the order of its key.
func (t *target) wantAll(tt *testing.T, s *script) {
	tt.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, wrong := range t.wrong {
		tt.Error(wrong)
	}
	for _, c := range s.from(0) {
		if t.applied[c.Place] != 1 {
			tt.Errorf("change %d of %s was applied %d times, and processed %d times", c.Place, c.Key, t.applied[c.Place], t.times[c.Place])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.last)) {
		if is := t.objects[key].place; is != s.last[key] {
			tt.Errorf("%s is at change %d, want %d", key, is, s.last[key])
		}
	}
}
