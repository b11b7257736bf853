package check

// marks is a set of the numbers of buckets, which becomes a span where it has too many ranges. The zero value is empty.
type marks struct {
	set     map[uint64]bool
	ranges  int
	spanned bool // every number from lo to hi is in it
	lo, hi  uint64
}

// add adds a number.
func (m *marks) add(n uint64) {
	if m.has(n) {
		return
	}
	if m.set == nil {
		m.set = map[uint64]bool{}
		m.lo, m.hi = n, n
	}
	m.lo, m.hi = min(m.lo, n), max(m.hi, n)
	if m.spanned {
		return
	}
	m.ranges++
	if m.set[n-1] {
		m.ranges--
	}
	if m.set[n+1] {
		m.ranges--
	}
	m.set[n] = true
}

// span makes the set one of all numbers between its first and its last.
func (m *marks) span() { m.spanned, m.ranges = true, 1 }

func (m *marks) has(n uint64) bool {
	if m.spanned {
		return m.lo <= n && n <= m.hi
	}
	return m.set[n]
}

func (m *marks) count() uint64 {
	if m.spanned {
		return m.hi - m.lo + 1
	}
	return uint64(len(m.set))
}
