package natsbus

import (
	"context"
	"sync"
	"time"
)

// The time after which an acknowledgement is tried again that JetStream does not take grows from the one to the other.
const (
	leastPause = 250 * time.Millisecond
	mostPause  = 4 * time.Second
)

// pace has all acknowledgements of a source wait while JetStream takes none: one of them tries again, after a pause
// that doubles, and the others once that was taken. The zero value has nobody wait.
type pace struct {
	mu      sync.Mutex
	taken   chan struct{} // closed once one is taken; nil = nobody waits for that
	probing bool          // one tries again, or is about to
	after   time.Duration // the pause before the next try
	wake    chan struct{} // ends a pause
	denied  int           // so often, one after the other, JetStream has told the one that tries that there is no stream
}

// begin waits until an acknowledgement may be tried, or until ctx or closed ends. It reports whether this is the one
// that is tried for all; then ends or fails has to follow.
func (p *pace) begin(ctx context.Context, closed <-chan struct{}) (probes bool) {
	for {
		p.mu.Lock()
		taken, wake, after, first := p.taken, p.wake, p.after, !p.probing
		p.probing = p.probing || taken != nil
		p.mu.Unlock()
		switch {
		case taken == nil:
			return false
		case first:
			timer := time.NewTimer(after)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-wake:
			case <-ctx.Done():
			case <-closed:
			}
			return true
		}
		select {
		case <-taken:
		case <-ctx.Done():
			return false
		case <-closed:
			return false
		}
	}
}

// waits reports whether acknowledgements wait until one is taken.
func (p *pace) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken != nil
}

// believes reports whether JetStream may be believed that there is no stream: it says so, too, while it finds its
// streams after a restart. So the one that tries for all asks again after its pause.
func (p *pace) believes(probes bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if probes {
		p.denied++
	}
	return probes && p.denied > 1
}

// fails notes that JetStream did not take an acknowledgement. The pause does not grow where the connection is lost,
// since a try costs nothing then.
func (p *pace) fails(probes, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.taken == nil:
		p.taken, p.wake, p.after = make(chan struct{}), make(chan struct{}, 1), leastPause
	case lost:
		p.after = leastPause
	case probes:
		p.after = min(2*p.after, mostPause)
	}
	p.probing = p.probing && !probes
}

// ends notes that an acknowledgement has ended otherwise; took tells that JetStream has taken it. If nobody tries for
// all any more, one of those that wait does.
func (p *pace) ends(probes, took bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.probing = p.probing && !probes
	if took {
		p.denied = 0
	}
	if p.taken == nil || !probes && !took {
		return
	}
	close(p.taken)
	if p.taken = nil; !took {
		p.taken = make(chan struct{})
	}
}

// answered ends the pause of the acknowledgement that is tried for all, as JetStream has answered something else.
func (p *pace) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken == nil {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
