package world

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"taskledger/internal/modeletcd"
)

var (
	errAway       = status.Error(codes.Unavailable, "etcd cannot be reached")
	errDead       = status.Error(codes.Unavailable, "the process is dead")
	errServerLate = status.Error(codes.DeadlineExceeded, "the server's deadline is exceeded")
)

// way is one process' way to etcd. It implements modeletcd.Transport.
type way struct {
	dice *dice
	late *sync.WaitGroup // requests that are made after their caller has gone
	dead context.Context
	hits *tally

	mu      sync.Mutex
	is      weather
	changed chan struct{} // closed when is changes
}

// weather holds the faults of a way for a while. Shares are of 1. Faults that may overlap are counted.
type weather struct {
	held        int           // faults because of which nothing passes; what waits passes when they have ended
	away        int           // faults because of which requests fail at once
	oneWay      int           // faults because of which requests arrive, and replies do not
	watchHeld   int           // faults because of which watch responses wait
	loseRequest float64       // share of requests that never arrive
	loseReply   float64       // share of replies that never arrive
	copies      float64       // share of writes that arrive once more, late
	slow        time.Duration // added to each request
}

func newWay(d *dice, late *sync.WaitGroup, dead context.Context) *way {
	return &way{dice: d, late: late, dead: dead, hits: newTally(), changed: make(chan struct{})}
}

// change changes the weather.
func (y *way) change(how func(*weather)) {
	y.mu.Lock()
	defer y.mu.Unlock()
	how(&y.is)
	close(y.changed)
	y.changed = make(chan struct{})
}

func (y *way) now() (weather, <-chan struct{}) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.is, y.changed
}

// await waits until the weather is so, or ctx ends. When it is not so at once, h counts.
func (y *way) await(ctx context.Context, so func(*weather) bool, h hit) error {
	for first := true; ; first = false {
		is, changed := y.now()
		if so(&is) {
			return nil
		}
		if first {
			y.hits.add(h)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-y.dead.Done():
			return errDead
		}
	}
}

func open(is *weather) bool      { return is.held == 0 }
func watchOpen(is *weather) bool { return is.held == 0 && is.watchHeld == 0 }

// Call implements modeletcd.Transport.
func (y *way) Call(ctx context.Context, c modeletcd.Call) (proto.Message, error) {
	if y.dead.Err() != nil { // at once, clients would try again for ever
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	time.Sleep(y.dice.between(100*time.Microsecond, 3*time.Millisecond))
	if is, _ := y.now(); is.slow > 0 {
		y.hits.add(slowed)
		if err := y.pass(ctx, is.slow); err != nil {
			return nil, y.orphan(c, err)
		}
	}
	if err := y.await(ctx, open, held); err != nil {
		return nil, y.orphan(c, err)
	}
	is, _ := y.now()
	switch {
	case is.away > 0:
		y.hits.add(refused)
		return nil, y.fail(ctx, append(unanswered(c), refusals(c)...))
	case y.dice.chance(is.loseRequest):
		y.hits.add(requestLost)
		return nil, y.silence(ctx, c)
	}
	reply, err := c.Make()
	if errors.Is(err, rpctypes.ErrGRPCNoSpace) {
		y.hits.add(noSpace)
	}
	if c.Writes && !streamed(c) && y.dice.chance(is.copies) {
		y.hits.add(copied)
		y.again(c, 6*time.Second)
	}
	if is.oneWay > 0 || y.dice.chance(is.loseReply) {
		y.hits.add(replyLost)
		return nil, y.silence(ctx, c)
	}
	if y.dice.chance(0.3) {
		time.Sleep(y.dice.between(50*time.Microsecond, 3*time.Millisecond))
	}
	return reply, err
}

// Deliver implements modeletcd.Transport.
func (y *way) Deliver(ctx context.Context) error {
	err := y.await(ctx, watchOpen, watchHeld)
	if err == nil && y.dice.chance(0.5) {
		time.Sleep(y.dice.between(50*time.Microsecond, 3*time.Millisecond))
	}
	return err
}

// pass lets time go by.
func (y *way) pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-y.dead.Done():
		return errDead
	}
}

// silence ends a request that is not answered, with its context or with the connection. A stream has no time-out: it is
// open until its connection ends.
func (y *way) silence(ctx context.Context, c modeletcd.Call) error {
	if streamed(c) || y.dice.chance(0.5) {
		return y.fail(ctx, unanswered(c))
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-y.dead.Done():
		return errDead
	}
}

// fail ends a request that finds no connection, with one of the errors: not at once, as clients try again at once.
func (y *way) fail(ctx context.Context, with []error) error {
	if err := y.pass(ctx, y.dice.between(10*time.Millisecond, 100*time.Millisecond)); err != nil {
		return err
	}
	return pick(y.dice, with...)
}

// streamed reports whether a request travels in a stream, which breaks: what it carries is neither doubled nor outlives it.
func streamed(c modeletcd.Call) bool { return c.Method == "Watch" || c.Method == "LeaseKeepAlive" }

// unanswered returns the errors that a client sees of a request that may have been applied: the connection's, or the
// server's that has waited for a leader.
func unanswered(c modeletcd.Call) []error {
	if streamed(c) {
		return []error{errAway}
	}
	return []error{errAway, rpctypes.ErrGRPCTimeout, rpctypes.ErrGRPCLeaderChanged, errServerLate}
}

// refusals returns the errors of a request that the server did not take.
func refusals(c modeletcd.Call) []error {
	if streamed(c) {
		return nil
	}
	return []error{rpctypes.ErrGRPCRequestTooManyRequests, rpctypes.ErrGRPCNoLeader}
}

// orphan lets a request whose caller has gone arrive all the same, now and then.
func (y *way) orphan(c modeletcd.Call, err error) error {
	if c.Writes && !streamed(c) && y.dice.chance(0.5) {
		y.hits.add(late)
		y.again(c, 3*time.Second)
	}
	return err
}

// again makes the request some time later, when the way is open.
func (y *way) again(c modeletcd.Call, most time.Duration) {
	y.late.Go(func() {
		time.Sleep(y.dice.between(time.Millisecond, most))
		for is, changed := y.now(); is.held > 0; is, changed = y.now() {
			<-changed
		}
		_, _ = c.Make() // nobody waits for the answer
	})
}
