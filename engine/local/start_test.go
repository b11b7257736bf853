package local_test

import (
	"runtime"
	"testing"

	"taskledger/engine/local"
	"taskledger/item"
)

// A program that runs for long in memory holds what it needs, and not all that was.
func TestMemory_HoldsNoMoreThanWhatIsThereHoweverMuchWas(t *testing.T) {
	s := store(t, start(t, local.Config{}))
	data := make([]byte, 200<<10)
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	for range 600 {
		made, err := s.Update(t.Context(), item.Update{Adds: []item.Add{{Group: "group", Data: data}}})
		if err == nil {
			_, err = s.Update(t.Context(), item.Update{Deletes: []int64{made[0].ID}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if grown := inUse() - before; grown > 60<<20 {
		t.Errorf("after 120 MB were added and removed the heap has grown by %d bytes", grown)
	}
}
