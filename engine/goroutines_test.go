package engine

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
)

var labelled atomic.Int64

// StartedBy calls f, and returns what counts the goroutines that it has started, directly or not, and that have not
// ended: whatever else runs in the process, such as what earlier tests leave to end, is not among them.
func StartedBy(t *testing.T, f func()) (count func() int) {
	label := fmt.Sprint(t.Name(), " ", labelled.Add(1))
	pprof.Do(context.Background(), pprof.Labels("started by", label), func(context.Context) { f() })
	return func() (n int) {
		var profile bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
			t.Fatal(err)
		}
		alike := 0 // goroutines of the entry that is read
		for line := range strings.Lines(profile.String()) {
			if strings.Contains(line, " @ ") {
				if _, err := fmt.Sscan(line, &alike); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(line, "# labels: ") && strings.Contains(line, label) {
				n += alike
			}
		}
		return n
	}
}

func TestStartedBy_CountsWhatRunsAndNothingElse(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	wait := func() { <-end }
	go wait()
	count := StartedBy(t, func() {
		for range 7 {
			go func() {
				go wait()
				<-end
			}()
		}
	})
	go wait()
	for count() != 14 { // some are about to start
		if t.Context().Err() != nil || count() > 14 {
			t.Fatalf("%d goroutines, want 14", count())
		}
	}
}
