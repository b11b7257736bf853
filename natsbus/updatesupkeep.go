package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"taskledger/work/feed"
	"taskledger/work/feed/inorder"
)

const (
	settlePause = 250 * time.Millisecond // between questions for the state of the consumer
	settleGrace = 10 * time.Second       // beyond two times the ack wait, in which everything has to come again
	lookAgain   = 5 * time.Second        // between two looks for messages that the stream has no more, at least
)

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

// doubt looks for messages that are here and that the stream has no more, as its limits or somebody have removed them,
// where those decide whether the queue is settled. The server waits for no acknowledgement of such a message, so they
// would count in place of others that are missing.
func (u *Updates) doubt(ctx context.Context, is inorder.State) error {
	u.mu.Lock()
	all, missing := u.queue.All(), u.queue.Missing(is)
	u.mu.Unlock()
	if len(all) == 0 || missing > 0 || missing < 0 && time.Since(u.has.looked) < lookAgain {
		return nil
	}
	u.has.looked = time.Now()
	stream, err := u.streamInfo(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		gone := d.Place < stream.State.FirstSeq
		if !gone && stream.State.NumDeleted > 0 {
			m, err := u.get(ctx, getRequest{Sequence: d.Place})
			if err != nil {
				return err
			}
			gone = m == nil
		}
		if gone {
			u.mu.Lock()
			u.queue.Doubt(d.Place)
			u.mu.Unlock()
		}
	}
	return nil
}

// Mark implements feed.Marked.
func (u *Updates) Mark() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	place, known := u.queue.First()
	if !known || u.of.made.IsZero() {
		return ""
	}
	is := u.of
	is.place = place
	return is.String()
}

// Resume implements feed.Marked. A mark of another stream or consumer tells nothing of this one.
func (u *Updates) Resume(text string) {
	m, ok := parseMark(text)
	if ok && m.stream == u.cfg.Stream && m.consumer == u.cfg.Consumer {
		u.has.before = m
	} else if text != "" {
		u.cfg.Log.Warn("what was recorded is no place of this consumer: it goes on where its consumer does",
			"stream", u.cfg.Stream, "consumer", u.cfg.Consumer, "recorded", text)
	}
}

// compare forgets the mark of an attempt before this one if the stream was made again since.
func (u *Updates) compare(streamMade time.Time) {
	if before := &u.has.before; before.place > 0 && !before.streamMade.Equal(streamMade) {
		u.cfg.Log.Warn("the stream was deleted and made again: all of its messages are new",
			"stream", u.cfg.Stream, "consumer", u.cfg.Consumer)
		*before = mark{}
	}
}

// known notes which stream and consumer are read, for marks.
func (u *Updates) known() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of = mark{
		stream:     u.cfg.Stream,
		streamMade: u.has.streamMade,
		consumer:   u.cfg.Consumer,
		made:       u.has.made,
	}
}
