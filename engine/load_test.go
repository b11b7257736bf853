package engine

import (
	"fmt"
	"testing"
	"time"
)

// Two others are needed to tell whose clock is wrong, and one wrong clock of three is never that of who sees it.
func TestClock_IsOffWhenMostOthersAreFarFromIt(t *testing.T) {
	const far = 2 * clockLimit
	for _, c := range []struct {
		drifts []time.Duration
		off    bool
	}{
		{nil, false},
		{[]time.Duration{far}, false},
		{[]time.Duration{0, far}, false},
		{[]time.Duration{0, -far}, false},
		{[]time.Duration{far, far}, true},
		{[]time.Duration{-far, -far}, true},
		{[]time.Duration{far, -far}, false},
		{[]time.Duration{0, far, far}, true},
		{[]time.Duration{0, 0, far}, false},
		{[]time.Duration{0, 0, far, far}, false},
	} {
		b := newBench(t, -1)
		for i, drift := range c.drifts {
			b.m.load.peers[fmt.Sprint(i)] = peerLoad{at: time.Now(), drift: drift}
		}
		if got := b.m.load.clockOff(); got != c.off {
			t.Errorf("others are %v ahead: off %v, want %v", c.drifts, got, c.off)
		}
	}
}
