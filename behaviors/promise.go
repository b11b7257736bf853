package behaviors

import (
	"context"
	"errors"
	"sync"

	"taskledger/events"
	"taskledger/task"
)

// errExited resolves a future whose function ended its goroutine.
var errExited = errors.New("function ended its goroutine")

// promise is an outcome that somebody resolves.
type promise[R any] struct {
	done    chan struct{}
	sources []closer // what it is made of

	mu       sync.Mutex
	resolved bool // value and err are final
	value    R
	err      error
	waiting  []func(R, error) // called once, on resolution
}

type closer interface{ Close() }

func newPromise[R any](sources ...closer) *promise[R] {
	return &promise[R]{done: make(chan struct{}), sources: sources}
}

// named is the identity of a future that stands for no accepted task.
type named events.TaskID

func (n named) ID() events.TaskID { return events.TaskID(n) }
func (n named) Joined() bool      { return false }
func (n named) Repeated() bool    { return false }

func (p *promise[R]) future() *Future[R] { return &Future[R]{named(""), p} }

// failed returns a future that is resolved with err.
func failed[R any](id events.TaskID, err error) *Future[R] {
	p := newPromise[R]()
	p.reject(err)
	return &Future[R]{named(id), p}
}

// resolve sets the outcome, unless there is one, and calls those who wait for it.
func (p *promise[R]) resolve(value R, err error) {
	p.mu.Lock()
	if p.resolved {
		p.mu.Unlock()
		return
	}
	p.resolved, p.value, p.err = true, value, err
	waiting := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	close(p.done)
	for _, fn := range waiting {
		fn(value, err)
	}
}

func (p *promise[R]) reject(err error) {
	var none R
	p.resolve(none, err)
}

// run resolves the promise with what user code returns, unless it is resolved, that is closed, already. The promise is
// resolved even when fn panics or ends its goroutine.
func (p *promise[R]) run(fn func() (R, error)) {
	select {
	case <-p.done:
		return
	default:
	}
	var value R
	err := errExited
	defer func() { p.resolve(value, err) }()
	value, err = safely("function of a future", "", fn)
}

func (p *promise[R]) Done() <-chan struct{} { return p.done }

func (p *promise[R]) Wait(ctx context.Context) (R, error) {
	select {
	case <-p.done:
	default:
		defer lendSlot(ctx)()
		select {
		case <-p.done:
		case <-ctx.Done():
			var none R
			return none, context.Cause(ctx)
		}
	}
	return p.value, p.err
}

func (p *promise[R]) Then(fn func(R, error)) {
	p.mu.Lock()
	if !p.resolved {
		p.waiting = append(p.waiting, fn)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	fn(p.value, p.err)
}

func (p *promise[R]) Close() {
	p.reject(task.ErrClosed)
	for _, s := range p.sources {
		s.Close()
	}
}
