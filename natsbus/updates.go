package natsbus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/work/feed"
	"taskledger/work/feed/inorder"
)

const (
	retryPause  = 250 * time.Millisecond // before what failed is tried again, and between looks at the connection
	flushWithin = time.Second            // of what Close gives back
)

// Updates implements feed.Source on a durable consumer of JetStream, over a connection that the caller closes
// afterwards. It says nothing to NATS before the first Next.
//
// A consumer that somebody deletes is made again at the first message that is not acknowledged. Nothing is lost, and
// what was acknowledged behind that message comes again where another attempt finds it deleted. If another program
// reads the consumer, Next returns feed.ErrShared: once for each time that messages went elsewhere, and again while
// they do not come back.
type Updates struct {
	consumer
	stop context.CancelFunc

	acks  sync.RWMutex // held for reading while an acknowledgement is on its way
	pace  pace         // of those
	asks  sync.Mutex   // held while one of them asks for the consumer
	mu    sync.Mutex   // guards queue and of
	queue inorder.Queue[delivered]
	of    mark // without its place; as the queue was settled last

	inbox  string // prefix of the subjects of requests
	came   chan *nats.Msg
	sub    *nats.Subscription
	pulled pulled
	has    condition
}

var (
	_ feed.Source   = (*Updates)(nil)
	_ feed.Measured = (*Updates)(nil)
	_ feed.Marked   = (*Updates)(nil)
	_ feed.Limited  = (*Updates)(nil)
)

// NewUpdates returns a source on the consumer. An error means that cfg is wrong; it names the field.
func NewUpdates(conn *nats.Conn, cfg UpdatesConfig) (*Updates, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("updates: %w", err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, fmt.Errorf("updates: %w", err)
	}
	u := &Updates{
		consumer: consumer{
			cfg:  cfg,
			conn: conn,
			js:   js,
		},
		inbox: conn.NewInbox() + ".",
		came:  make(chan *nats.Msg, 4*cfg.Batch+64),
	}
	u.has.disturbed = true
	u.ctx, u.stop = context.WithCancel(context.Background())
	return u, nil
}

func (u *Updates) wrap(err error) error {
	return fmt.Errorf("consumer %s of stream %s: %w", u.cfg.Consumer, u.cfg.Stream, err)
}

// Next implements feed.Source.
func (u *Updates) Next(ctx context.Context) (feed.Message, error) {
	u.note()
	for began := time.Now(); ; u.note() {
		if u.ctx.Err() != nil || u.conn.IsClosed() {
			return feed.Message{}, u.wrap(feed.ErrClosed)
		}
		if d, ok := u.next(); ok {
			if d.size > 0 {
				err := fmt.Errorf("message %d has %d bytes: %w of %d", d.message.Place, d.size, feed.ErrTooLarge, u.cfg.MaxBytes)
				return d.message, u.wrap(err)
			}
			return d.message, nil
		}
		if err := u.step(ctx, began); err != nil {
			return feed.Message{}, err
		}
	}
}

func (u *Updates) next() (delivered, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	d, ok := u.queue.Next()
	return d.Value, ok
}

// ready reports whether a message can be handed out.
func (u *Updates) ready() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.queue.Settled() && len(u.queue.Waiting()) > 0
}

func (u *Updates) settled() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.queue.Settled()
}

// step does what is due, and then waits for something to come, not for long. Next returns its errors. It began at a
// time.
func (u *Updates) step(ctx context.Context, began time.Time) error {
	if ctx.Err() != nil {
		return u.over(ctx, began)
	}
	var err error
	if len(u.came) == 0 {
		err = u.prepare(ctx)
	}
	if err == nil && !u.ready() {
		err = u.receive(ctx)
	}
	switch {
	case err == nil:
		return nil
	case lasting(err) || said(err):
		return u.wrap(err)
	case ctx.Err() != nil:
		return u.over(ctx, began)
	case u.has.failing.IsZero():
		u.has.failing = time.Now()
	case time.Since(u.has.failing) > u.cfg.Timeout:
		u.has.failing = time.Time{}
		return u.wrap(fmt.Errorf("%w for %s: %w", feed.ErrAway, u.cfg.Timeout, err))
	}
	u.pause(ctx, retryPause)
	return nil
}

// over returns why Next, which began at a time, ends with its context: whether NATS is away, or messages may wait.
func (u *Updates) over(ctx context.Context, began time.Time) error {
	why := feed.ErrAway
	if u.conn.IsConnected() && u.has.failing.IsZero() {
		if since := u.has.quiet; !since.IsZero() && !since.After(began) {
			return context.Cause(ctx)
		}
		why = feed.ErrUnsettled
	}
	return u.wrap(fmt.Errorf("%w: %w", why, context.Cause(ctx)))
}

// note notes since when no message waits, here or in the stream.
func (u *Updates) note() {
	u.mu.Lock()
	nothing := u.queue.Settled() && len(u.queue.Waiting()) == 0
	u.mu.Unlock()
	switch h := &u.has; {
	case !nothing || !h.counted || h.rest > 0 || len(u.came) > 0 || !h.failing.IsZero() || !u.conn.IsConnected():
		h.quiet = time.Time{}
	case h.quiet.IsZero():
		h.quiet = time.Now()
	}
}

func (u *Updates) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-u.ctx.Done():
	}
}

// Again implements feed.Source.
func (u *Updates) Again(ctx context.Context, place uint64) (feed.Message, error) {
	m, err := u.get(ctx, getRequest{Sequence: place})
	if err == nil && m == nil {
		err = feed.ErrNotFound
	}
	if err != nil {
		return feed.Message{}, u.wrap(fmt.Errorf("read message %d: %w", place, err))
	}
	return *m, nil
}

// MaxBytes implements feed.Limited.
func (u *Updates) MaxBytes() int { return u.cfg.MaxBytes }

// Pending implements feed.Measured.
func (u *Updates) Pending(ctx context.Context) (known int64, oldest time.Time, err error) {
	is, err := u.info(ctx)
	if err == nil && is == nil {
		err = jetstream.ErrConsumerNotFound
	}
	if err != nil {
		return 0, oldest, u.wrap(fmt.Errorf("ask how many messages are left: %w", err))
	}
	known = int64(is.NumPending) + int64(is.NumAckPending)
	u.mu.Lock()
	all := u.queue.All()
	u.mu.Unlock()
	if len(all) > 0 || known == 0 {
		if len(all) > 0 {
			oldest = all[0].Value.message.Time
		}
		return known, oldest, nil
	}
	subjects := u.cfg.Subjects
	if len(subjects) == 0 {
		subjects = []string{">"}
	}
	for _, subject := range subjects {
		m, err := u.get(ctx, getRequest{Sequence: is.AckFloor.Stream + 1, NextFor: subject})
		if err != nil {
			return known, oldest, nil // how many they are is known nevertheless
		}
		if m != nil && (oldest.IsZero() || m.Time.Before(oldest)) {
			oldest = m.Time
		}
	}
	return known, oldest, nil
}

// Close implements feed.Source. It gives back, in their order, the messages that are not acknowledged, so that they
// come again at once. Next must not be under way.
func (u *Updates) Close() error {
	if u.ctx.Err() != nil {
		return nil
	}
	u.stop()
	u.acks.Lock() // for acknowledgements that are on their way
	defer u.acks.Unlock()
	if u.sub == nil {
		return nil
	}
	err := u.sub.Unsubscribe()
	if !u.conn.IsConnected() {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.came) > 0 {
		m := <-u.came
		if is, wrong := m.Metadata(); wrong == nil {
			u.queue.Add(inorder.Delivery[delivered]{
				Place: is.Sequence.Stream,
				Count: is.Sequence.Consumer,
				Value: delivered{reply: m.Reply},
			})
		}
	}
	for _, d := range u.queue.All() {
		err = errors.Join(err, u.conn.Publish(d.Value.reply, nakText))
	}
	if err = errors.Join(err, u.conn.FlushTimeout(flushWithin)); err != nil {
		return u.wrap(fmt.Errorf("give back what is not acknowledged: %w", err))
	}
	return nil
}
