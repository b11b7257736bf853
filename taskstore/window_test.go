package taskstore

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

func TestWindows_GoWithTheStoresThatWereOpened(t *testing.T) {
	kept := windowOf(clientOf{"kept", 1})
	for i := range 1_000 {
		windowOf(clientOf{fmt.Sprint("dropped-", i), 1})
	}
	count := func() (n int) {
		windows.Range(func(c, _ any) bool {
			if name := c.(clientOf).store; name == "kept" || len(name) > 8 && name[:8] == "dropped-" {
				n++
			}
			return true
		})
		return n
	}
	for until := time.Now().Add(time.Minute); count() > 1 && time.Now().Before(until); time.Sleep(time.Millisecond) {
		runtime.GC()
	}
	if n := count(); n != 1 || windowOf(clientOf{"kept", 1}) != kept {
		t.Errorf("%d windows are there, want that of the store that is in use", n)
	}
	runtime.KeepAlive(kept)
}
