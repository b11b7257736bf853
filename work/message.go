package work

import (
	"sync"
	"time"

	"taskledger/work/feed"
)

// message is a message of a pushed stream, which is acknowledged when all that came of it has ended.
type message struct {
	feed.Message
	size        int       // as it came
	came        time.Time // to its source, as far as that says so
	acknowledge func()    // once all has ended; it does not wait

	mu       sync.Mutex
	left     int // arrivals that have not ended
	outcomes []outcome
	tell     []func() // for each arrival that has ended, once the message is acknowledged
}

// add adds what became of a change.
func (m *message) add(o outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outcomes = append(m.outcomes, o)
}

// end ends an arrival. tell is called when the message is acknowledged.
func (m *message) end(tell func()) {
	m.mu.Lock()
	m.left--
	m.tell = append(m.tell, tell)
	all := m.left == 0
	m.mu.Unlock()
	if all {
		m.acknowledge()
	}
}

// acknowledged tells all arrivals.
func (m *message) acknowledged() {
	for _, tell := range m.tell {
		tell()
	}
}
