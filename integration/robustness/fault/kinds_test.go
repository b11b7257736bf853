package fault

import "testing"

// leastKinds is the number of today, which never falls. Whoever adds a kind raises it.
const leastKinds = 47

func TestKinds_NeverBecomeFewer(t *testing.T) {
	if n := len(Kinds); n != leastKinds {
		t.Errorf("%d kinds of faults, want %d: raise the number with the table, and never lower it", n, leastKinds)
	}
}
