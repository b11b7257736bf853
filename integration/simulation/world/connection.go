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

// connection joins one process to etcd. It implements modeletcd.Transport.
type connection struct {
	dice *dice
	late *sync.WaitGroup // requests that are made after their caller has gone
	dead context.Context
	hits *tally

	mu      sync.Mutex
	faults  faultSettings
	changed chan struct{} // closed when faults change
}

// faultSettings holds the faults of a connection for a while. A share lies between 0 and 1. Faults that may overlap are
// counted.
type faultSettings struct {
	held        int           // faults because of which nothing passes; what waits passes when they have ended
	away        int           // faults because of which requests fail at once
	oneWay      int           // faults because of which requests arrive, and replies do not
	watchHeld   int           // faults because of which watch responses wait
	loseRequest float64       // share of requests that never arrive
	loseReply   float64       // share of replies that never arrive
	copies      float64       // share of writes that arrive once more, late
	slow        time.Duration // added to each request
}

func newConnection(d *dice, late *sync.WaitGroup, dead context.Context) *connection {
	return &connection{dice: d, late: late, dead: dead, hits: newTally(), changed: make(chan struct{})}
}

// change changes the faults.
func (conn *connection) change(how func(*faultSettings)) {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	how(&conn.faults)
	close(conn.changed)
	conn.changed = make(chan struct{})
}

func (conn *connection) now() (faultSettings, <-chan struct{}) {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	return conn.faults, conn.changed
}

// await waits until the faults are so, or ctx ends. When they are not so at once, h counts.
func (conn *connection) await(ctx context.Context, so func(*faultSettings) bool, h hit) error {
	for first := true; ; first = false {
		f, changed := conn.now()
		if so(&f) {
			return nil
		}
		if first {
			conn.hits.add(h)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-conn.dead.Done():
			return errDead
		}
	}
}

func open(f *faultSettings) bool      { return f.held == 0 }
func watchOpen(f *faultSettings) bool { return f.held == 0 && f.watchHeld == 0 }

// Call implements modeletcd.Transport.
func (conn *connection) Call(ctx context.Context, c modeletcd.Call) (proto.Message, error) {
	if conn.dead.Err() != nil { // at once, clients would try again for ever
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	time.Sleep(conn.dice.between(100*time.Microsecond, 3*time.Millisecond))
	if f, _ := conn.now(); f.slow > 0 {
		conn.hits.add(slowed)
		if err := conn.pass(ctx, f.slow); err != nil {
			return nil, conn.orphan(c, err)
		}
	}
	if err := conn.await(ctx, open, held); err != nil {
		return nil, conn.orphan(c, err)
	}
	f, _ := conn.now()
	switch {
	case f.away > 0:
		conn.hits.add(refused)
		return nil, conn.fail(ctx, append(unanswered(c), refusals(c)...))
	case conn.dice.chance(f.loseRequest):
		conn.hits.add(requestLost)
		return nil, conn.silence(ctx, c)
	}
	reply, err := c.Make()
	if errors.Is(err, rpctypes.ErrGRPCNoSpace) {
		conn.hits.add(noSpace)
	}
	if c.Writes && !streamed(c) && conn.dice.chance(f.copies) {
		conn.hits.add(copied)
		conn.again(c, 6*time.Second)
	}
	if f.oneWay > 0 || conn.dice.chance(f.loseReply) {
		conn.hits.add(replyLost)
		return nil, conn.silence(ctx, c)
	}
	if conn.dice.chance(0.3) {
		time.Sleep(conn.dice.between(50*time.Microsecond, 3*time.Millisecond))
	}
	return reply, err
}

// Deliver implements modeletcd.Transport.
func (conn *connection) Deliver(ctx context.Context) error {
	err := conn.await(ctx, watchOpen, watchHeld)
	if err == nil && conn.dice.chance(0.5) {
		time.Sleep(conn.dice.between(50*time.Microsecond, 3*time.Millisecond))
	}
	return err
}

// pass lets time go by.
func (conn *connection) pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-conn.dead.Done():
		return errDead
	}
}

// silence ends a request that is not answered, with its context or with the connection. A stream has no time-out: it is
// open until its connection ends.
func (conn *connection) silence(ctx context.Context, c modeletcd.Call) error {
	if streamed(c) || conn.dice.chance(0.5) {
		return conn.fail(ctx, unanswered(c))
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-conn.dead.Done():
		return errDead
	}
}

// fail ends a request that finds no connection, with one of the errors: not at once, as clients try again at once.
func (conn *connection) fail(ctx context.Context, with []error) error {
	if err := conn.pass(ctx, conn.dice.between(10*time.Millisecond, 100*time.Millisecond)); err != nil {
		return err
	}
	return pick(conn.dice, with...)
}

// streamed reports whether a request travels in a stream, which breaks: what it carries is neither doubled nor outlives
// it.
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
func (conn *connection) orphan(c modeletcd.Call, err error) error {
	if c.Writes && !streamed(c) && conn.dice.chance(0.5) {
		conn.hits.add(late)
		conn.again(c, 3*time.Second)
	}
	return err
}

// again makes the request some time later, when the connection is open.
func (conn *connection) again(c modeletcd.Call, most time.Duration) {
	conn.late.Go(func() {
		time.Sleep(conn.dice.between(time.Millisecond, most))
		for f, changed := conn.now(); f.held > 0; f, changed = conn.now() {
			<-changed
		}
		_, _ = c.Make() // nobody waits for the answer
	})
}
