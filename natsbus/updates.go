package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/work/feed"
	"taskledger/work/feed/inorder"
)

const (
	pullExpires = 5 * time.Second        // of a request for messages
	pullGrace   = time.Second            // in which the server has to tell that a request has expired
	retryPause  = 250 * time.Millisecond // before what failed is tried again, and between looks at the connection
	settlePause = 250 * time.Millisecond // between questions for the state of the consumer
	settleGrace = 10 * time.Second       // beyond two times the ack wait, in which everything has to come again
	flushWithin = time.Second            // of what Close gives back
)

// Updates implements feed.Source on a durable consumer of JetStream, over a connection that the caller closes
// afterwards. It says nothing to NATS before the first Next.
//
// A consumer that somebody deletes is made again at the first message that is not acknowledged: nothing is lost, and what
// is acknowledged behind that message comes again at most if the attempt is another one. If another program reads the consumer, Next returns feed.ErrShared: once for each time that
// messages went elsewhere, and again while they do not come back.
type Updates struct {
	consumer
	stop context.CancelFunc

	acks  sync.RWMutex // held for reading while an acknowledgement is on its way
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
)

// delivered is a message and how it is answered.
type delivered struct {
	message feed.Message
	reply   string
	size    int // beyond the limit, so that its data is not kept; 0 = within it
}

// pulled holds the request for messages that is under way.
type pulled struct {
	number  int
	left    int // messages that it may still bring
	expires time.Time
}

// condition holds what is known of the consumer. Next alone uses it.
type condition struct {
	made       time.Time // when the consumer was; zero: it was not looked for yet
	streamMade time.Time
	before     mark // how far an attempt before this one came
	ackWait    time.Duration
	reconnects uint64
	disturbed  bool      // deliveries may have been lost on their way
	failing    time.Time // since when nothing is answered; zero: it is
	asked      time.Time // when the state was
	kept       time.Time // when what waits was reported in progress
	looked     time.Time // when it was looked for messages that the stream has no more
	missing    int       // less than 0: so many are here that the server does not wait for
	since      time.Time // when missing was as far from 0 as it is
}

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
	for {
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
		if err := u.step(ctx); err != nil {
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

func (u *Updates) settled() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.queue.Settled()
}

// step does what is due, and then waits for something to come, not for long. Next returns its errors.
func (u *Updates) step(ctx context.Context) error {
	if ctx.Err() != nil {
		return u.over(ctx)
	}
	var err error
	if len(u.came) == 0 {
		err = u.prepare(ctx)
	}
	if err == nil {
		err = u.receive(ctx)
	}
	switch {
	case err == nil:
		return nil
	case lasting(err) || said(err):
		return u.wrap(err)
	case ctx.Err() != nil:
		return u.over(ctx)
	case u.has.failing.IsZero():
		u.has.failing = time.Now()
	case time.Since(u.has.failing) > u.cfg.Patience:
		u.has.failing = time.Time{}
		return u.wrap(fmt.Errorf("%w for %s: %w", feed.ErrAway, u.cfg.Patience, err))
	}
	u.pause(ctx, retryPause)
	return nil
}

// over returns why Next ends with its context, and whether NATS is away then.
func (u *Updates) over(ctx context.Context) error {
	if u.conn.IsConnected() && u.has.failing.IsZero() {
		return context.Cause(ctx)
	}
	return u.wrap(fmt.Errorf("%w: %w", feed.ErrAway, context.Cause(ctx)))
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

// unfitError tells why the consumer cannot be read. It fails Next.
type unfitError struct{ why string }

func (e *unfitError) Error() string { return e.why }

// said reports whether an error was found by the source itself.
func said(err error) bool {
	_, unfit := errors.AsType[*unfitError](err)
	return unfit || errors.Is(err, feed.ErrShared) || errors.Is(err, feed.ErrLate)
}

// prepare subscribes, compares what is here with the consumer, and requests messages, each where that is due.
func (u *Updates) prepare(ctx context.Context) (err error) {
	if !u.conn.IsConnected() {
		return errLost
	}
	if n := u.conn.Stats().Reconnects; n != u.has.reconnects {
		u.has.reconnects, u.has.disturbed = n, true
		u.unsettle()
	}
	if u.sub == nil {
		if u.sub, err = u.conn.ChanSubscribe(u.inbox+"*", u.came); err != nil {
			return err
		}
	}
	if !u.settled() {
		if time.Since(u.has.asked) >= settlePause {
			if err := u.settle(ctx); err != nil {
				return err
			}
		}
		u.keep()
	}
	if u.pulled.left > 0 || u.has.made.IsZero() {
		return nil
	}
	u.pulled = pulled{
		number:  u.pulled.number + 1,
		left:    u.cfg.Batch,
		expires: time.Now().Add(pullExpires + pullGrace),
	}
	return u.pull(u.inbox+strconv.Itoa(u.pulled.number), u.cfg.Batch, pullExpires)
}

// unsettle has the state of the consumer asked for before anything else is handed out.
func (u *Updates) unsettle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queue.Unsettle()
	u.pulled.left, u.has.asked = 0, time.Time{}
}

// keep reports in progress what waits for other messages.
func (u *Updates) keep() {
	if time.Since(u.has.kept) < u.has.ackWait/3 {
		return
	}
	u.has.kept = time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, d := range u.queue.Waiting() {
		u.conn.Publish(d.Value.reply, progressText) // it is delivered again otherwise
	}
}

// settle compares what is here with the state of the consumer, which is made if there is none.
func (u *Updates) settle(ctx context.Context) error {
	u.acks.Lock()
	defer u.acks.Unlock()
	u.has.asked = time.Now()
	is, err := u.info(ctx)
	if err != nil {
		return err
	}
	if is == nil {
		is, err = u.remake(ctx)
		if err != nil {
			return err
		}
	}
	if unfit := u.cfg.unfit(is.Config); unfit != "" {
		return &unfitError{"it does not fit: " + unfit}
	}
	if err := u.meet(ctx, is); err != nil {
		return err
	}
	state := inorder.State{
		Place:   is.Delivered.Stream,
		Count:   is.Delivered.Consumer,
		Pending: is.NumAckPending,
	}
	u.known()
	if err := u.doubt(ctx, state); err != nil {
		return err
	}
	u.mu.Lock()
	missing := u.queue.Settle(state)
	u.mu.Unlock()
	return u.await(missing, is.NumWaiting)
}

// await notes how many messages are missing. It returns feed.ErrShared if they do not come again, or if somebody else has
// acknowledged what is here.
func (u *Updates) await(missing, readers int) error {
	h := &u.has
	switch {
	case missing == 0:
		h.disturbed, h.since = false, time.Time{}
	case h.since.IsZero() || missing*missing < h.missing*h.missing:
		if h.since.IsZero() {
			u.cfg.Log.Info("messages are kept back until those come again that were delivered and not acknowledged",
				"stream", u.cfg.Stream, "consumer", u.cfg.Consumer, "missing", missing)
		}
		h.since = time.Now()
	case time.Since(h.since) <= 2*h.ackWait+settleGrace:
	case missing < 0:
		h.since = time.Time{}
		return fmt.Errorf("%w: somebody else has acknowledged %d messages that are in progress here", feed.ErrShared, -missing)
	default:
		h.since = time.Time{}
		return fmt.Errorf("%w: %d messages that were delivered do not come again, and %d requests for messages wait",
			feed.ErrShared, missing, readers)
	}
	h.missing = missing
	return nil
}

// remake makes the consumer, at the first message that is not acknowledged as far as this attempt, or the one before,
// knows.
func (u *Updates) remake(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	if err := u.sameStream(ctx); err != nil {
		return nil, err
	}
	u.mu.Lock()
	place, known := u.queue.Restart()
	if !known {
		u.queue, place = inorder.Queue[delivered]{}, u.has.before.place
	}
	u.mu.Unlock()
	is, err := u.create(ctx, place)
	if err != nil {
		return nil, err
	}
	if place == 0 {
		u.cfg.Log.Info("made a consumer that begins with the first message of the stream",
			"stream", u.cfg.Stream, "consumer", u.cfg.Consumer)
	} else {
		u.cfg.Log.Warn("somebody has deleted the consumer: it was made again at the first message that is not acknowledged",
			"stream", u.cfg.Stream, "consumer", u.cfg.Consumer, "place", place)
	}
	u.has.made = is.Created
	return is, nil
}

// meet notes which consumer is there, and fails if it is another one that has passed a message over.
func (u *Updates) meet(ctx context.Context, is *jetstream.ConsumerInfo) error {
	u.has.ackWait = is.Config.AckWait
	for _, d := range is.Config.BackOff {
		u.has.ackWait = min(u.has.ackWait, d)
	}
	if u.has.made.Equal(is.Created) {
		return nil
	}
	if err := u.sameStream(ctx); err != nil {
		return err
	}
	was := u.has.made
	u.has.made = is.Created
	if was.IsZero() {
		if u.has.before.passed(is) {
			return passedOver(u.has.before.place, is.AckFloor.Stream)
		}
		if is.NumWaiting > 0 {
			u.cfg.Log.Warn("somebody else waits for messages of the consumer",
				"stream", u.cfg.Stream, "consumer", u.cfg.Consumer, "requests", is.NumWaiting)
		}
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	place, known := u.queue.Restart()
	if known && is.AckFloor.Stream >= place {
		return passedOver(place, is.AckFloor.Stream)
	}
	u.cfg.Log.Warn("somebody has made the consumer again",
		"stream", u.cfg.Stream, "consumer", u.cfg.Consumer, "place", place)
	return nil
}

// passedOver tells that somebody has made the consumer again where messages are lost.
func passedOver(place, floor uint64) error {
	const say = "somebody has made it again, behind message %d, which is not acknowledged: it begins after message %d"
	return &unfitError{fmt.Sprintf(say, place, floor)}
}

// sameStream fails if the stream is not the one that was read before.
func (u *Updates) sameStream(ctx context.Context) error {
	is, err := u.streamInfo(ctx)
	switch {
	case err != nil:
		return err
	case u.has.streamMade.IsZero():
		u.has.streamMade = is.Created
		u.compare(is.Created)
		if is.Config.Retention != jetstream.LimitsPolicy {
			u.cfg.Log.Warn("the stream removes what is acknowledged: what is parked by its place alone cannot be read again",
				"stream", u.cfg.Stream, "retention", is.Config.Retention.String())
		}
	case !u.has.streamMade.Equal(is.Created):
		return &unfitError{"the stream was deleted and made again, so its messages have other places"}
	}
	return nil
}

// receive waits for a delivery, for a while, and takes it.
func (u *Updates) receive(ctx context.Context) error {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case m := <-u.came:
		if strings.HasPrefix(m.Subject, u.inbox) {
			return u.status(m)
		}
		return u.take(m)
	case <-timer.C:
		if u.pulled.left > 0 && time.Now().After(u.pulled.expires) {
			u.has.disturbed = true
			u.unsettle() // what it brings late may be more than there is room for
			return fmt.Errorf("no answer to a request for messages within %s", pullExpires+pullGrace)
		}
	case <-ctx.Done():
	case <-u.ctx.Done():
	}
	return nil
}

// status takes what the server says of a request for messages.
func (u *Updates) status(m *nats.Msg) error {
	if m.Subject != u.inbox+strconv.Itoa(u.pulled.number) {
		return nil
	}
	u.pulled.left = 0
	switch code, why := m.Header.Get("Status"), m.Header.Get("Description"); {
	case code == "408" || code == "404":
		u.has.failing = time.Time{}
		return nil
	case code == "503":
		u.has.disturbed = true
		u.unsettle()
		return errors.New("nobody answers requests for messages of the consumer")
	default:
		u.has.disturbed = true
		u.unsettle()
		return fmt.Errorf("the request for messages was answered with %s %s", code, why)
	}
}

// take takes a message.
func (u *Updates) take(m *nats.Msg) error {
	is, err := m.Metadata()
	if err != nil || is.Stream != u.cfg.Stream || is.Consumer != u.cfg.Consumer {
		return nil // somebody has sent it here
	}
	u.has.failing = time.Time{}
	u.pulled.left = max(u.pulled.left-1, 0)
	d := delivered{
		message: feed.Message{
			Place:     is.Sequence.Stream,
			Subject:   m.Subject,
			Header:    m.Header,
			Data:      m.Data,
			Time:      is.Timestamp,
			Delivered: int(is.NumDelivered),
		},
		reply: m.Reply,
	}
	if size := m.Size() - len(m.Subject) - len(m.Reply); size > u.cfg.MaxBytes {
		d.size, d.message.Data = size, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	last, gap := u.queue.Count(), false
	if is.Sequence.Consumer > last+1 && u.queue.Settled() && !u.has.disturbed {
		gap = true
		u.has.disturbed = true
	}
	switch u.queue.Add(inorder.Delivery[delivered]{
		Place: is.Sequence.Stream,
		Count: is.Sequence.Consumer,
		Value: d,
	}) {
	case inorder.Acknowledged:
		u.conn.Publish(m.Reply, ackText) // it comes again otherwise
	case inorder.Late:
		return fmt.Errorf("message %d: %w", is.Sequence.Stream, feed.ErrLate)
	}
	if gap {
		return fmt.Errorf("%w: %d deliveries before message %d went elsewhere",
			feed.ErrShared, is.Sequence.Consumer-last-1, is.Sequence.Stream)
	}
	return nil
}

// Ack implements feed.Source.
func (u *Updates) Ack(ctx context.Context, m feed.Message) error {
	for {
		err := u.ackOnce(ctx, m.Place)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return u.wrap(fmt.Errorf("acknowledge message %d: %w", m.Place, context.Cause(ctx)))
		case lasting(err) || errors.Is(err, feed.ErrNotFound):
			return u.wrap(fmt.Errorf("acknowledge message %d: %w", m.Place, err))
		}
		u.pause(ctx, retryPause)
	}
}

// ackOnce acknowledges a message. If the consumer is gone, it is made again behind that message.
func (u *Updates) ackOnce(ctx context.Context, place uint64) error {
	u.acks.RLock()
	defer u.acks.RUnlock()
	u.mu.Lock()
	d, open := u.queue.Open(place)
	if open {
		u.queue.Doubt(place)
	}
	u.mu.Unlock()
	if !open {
		return feed.ErrNotFound
	}
	err := u.ack(ctx, d.Value.reply)
	if errors.Is(err, nats.ErrNoResponders) {
		is, unknown := u.info(ctx)
		switch {
		case unknown != nil:
			err = unknown
		case is == nil:
			err = nil
		}
	}
	if err == nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.queue.Acknowledge(place)
	}
	return err
}

// Progress implements feed.Source.
func (u *Updates) Progress(_ context.Context, m feed.Message) error {
	u.mu.Lock()
	d, open := u.queue.Open(m.Place)
	u.mu.Unlock()
	err := feed.ErrNotFound
	switch {
	case u.ctx.Err() != nil:
		err = feed.ErrClosed
	case open && !u.conn.IsConnected():
		err = feed.ErrAway
	case open:
		err = u.conn.Publish(d.Value.reply, progressText)
	}
	if err != nil {
		return u.wrap(fmt.Errorf("report message %d in progress: %w", m.Place, err))
	}
	return nil
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
