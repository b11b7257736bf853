package local_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/local"
	"taskledger/item"
)

// Nothing of a start waits for a timer.
func TestMemory_IsReadyInNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for i := range 20 {
			began := time.Now()
			n := start(t, local.Config{})
			if took := time.Since(began); took > 0 {
				t.Errorf("start %d took %s of virtual time", i, took)
			}
			closed(t, n)
		}
	})
}

// The machine may be busy: most starts may take longer.
func TestFiles_AreReadyInUnderFiftyMilliseconds(t *testing.T) {
	for _, d := range durabilities() {
		least := time.Hour
		for range 10 {
			began := time.Now()
			n := start(t, on(t.TempDir(), d))
			least = min(least, time.Since(began))
			closed(t, n)
		}
		if t.Logf("%s: the fastest start took %s", d, least); least > 500*time.Millisecond {
			t.Errorf("%s: the fastest of ten starts took %s, want 50 ms, and ten times that at most", d, least)
		}
	}
}

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
