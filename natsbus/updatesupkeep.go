package natsbus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"taskledger/work/feed"
	"taskledger/work/feed/inorder"
)

const (
	settlePause = 250 * time.Millisecond // between questions for the state of the consumer
	settleGrace = 10 * time.Second       // beyond two times the ack wait, in which everything has to come again
	maxKept     = 64 << 20               // bytes of messages that are kept back, up to a message
	lookAgain   = 5 * time.Second        // between two looks for messages that the stream has no more, at least
	lookFor     = 100 * time.Millisecond // and beyond that for each message that was looked for by a request of its own
	maxListed   = 10_000                 // messages between others that a stream has removed and lists
)

// condition holds what is known of the consumer. Next alone uses it.
type condition struct {
	made       time.Time // when the consumer was; zero: it was not looked for yet
	streamMade time.Time
	retention  jetstream.RetentionPolicy // of the stream
	before     mark                      // how far an attempt before this one came
	ackWait    time.Duration
	reconnects uint64
	disturbed  bool      // deliveries may have been lost on their way
	failing    time.Time // since when nothing is answered; zero: it is
	quiet      time.Time // since when no message waits; zero: some may
	rest       uint64    // messages that were not delivered, as far as counted tells that this is known
	counted    bool
	state      inorder.State // of the deliveries, as it was told last
	due        time.Time     // when a message is requested while enough is kept back; zero: it is not
	again      bool          // the message that came last was delivered before
	asked      time.Time     // when the state was
	kept       time.Time     // when what waits was reported in progress
	look       time.Time     // when it may be looked again for messages that the stream has no more
	missing    int           // less than 0: so many are here that the server does not wait for
	since      time.Time     // when missing was as far from 0 as it is
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
	if !u.has.counted && !u.has.made.IsZero() {
		if err := u.count(ctx); err != nil {
			return err
		}
	}
	if u.pulled.left > 0 || u.has.made.IsZero() {
		return nil
	}
	n := u.wanted()
	if n == 0 {
		return nil
	}
	u.pulled = pulled{
		number:  u.pulled.number + 1,
		left:    n,
		expires: time.Now().Add(pullExpires + pullGrace),
	}
	return u.pull(u.inbox+strconv.Itoa(u.pulled.number), n, pullExpires)
}

// wanted returns how many messages are to be requested. While others are missing that have to come again, a batch of
// messages is kept back, of 64 MiB. Then one is requested each eighth of the time after which they come again, since
// the server delivers those before others, and does not tell when they are due. Once one of them has come, all that are
// missing are requested.
func (u *Updates) wanted() int {
	h, now := &u.has, time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.queue.Settled() {
		h.due = time.Time{}
		if len(u.queue.Waiting()) > 0 { // they are handed out first
			return 0
		}
		return u.cfg.Batch
	}
	every := max(h.ackWait/8, time.Second)
	if h.due.IsZero() {
		h.due = now.Add(every)
	}
	kept := 0
	for _, d := range u.queue.Waiting() {
		kept += d.Value.message.Size()
	}
	room := min(u.cfg.Batch-len(u.queue.Waiting()), (maxKept-kept)/u.cfg.MaxBytes+1)
	missing := u.queue.Missing(h.state)
	switch {
	case room > 0 && kept < maxKept:
		return room
	case h.again && missing > 0:
		return min(missing, u.cfg.Batch)
	case now.Before(h.due):
		return 0
	}
	h.due = now.Add(every) // it may be a new one that comes
	return 1
}

// count asks how many messages were not delivered.
func (u *Updates) count(ctx context.Context) error {
	is, err := u.info(ctx)
	if err == nil && is != nil { // else the next request for messages tells that the consumer is gone
		u.has.rest, u.has.counted = is.NumPending, true
	}
	return err
}

// unsettle has the state of the consumer asked for before anything else is handed out.
func (u *Updates) unsettle() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queue.Unsettle()
	u.pulled.left, u.has.asked = 0, time.Time{}
	u.has.due, u.has.again = time.Time{}, false
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
	u.pace.answered()
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
	u.has.rest, u.has.counted = is.NumPending, true
	u.known()
	if err := u.doubt(ctx, state); err != nil {
		return err
	}
	u.has.state = state
	u.mu.Lock()
	missing := u.queue.Settle(state)
	u.mu.Unlock()
	return u.await(missing, is.NumWaiting)
}

// await notes how many messages are missing. It returns feed.ErrShared if they do not come again, or if somebody else
// has acknowledged what is here.
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
		return fmt.Errorf("%w: somebody else has acknowledged %d messages that are in progress here",
			feed.ErrShared, -missing)
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
	last, err := u.sameStream(ctx)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	place, known := u.queue.Restart()
	if !known {
		u.queue, place = inorder.Queue[delivered]{}, u.has.before.place
	}
	u.mu.Unlock()
	from := place
	if u.has.retention == jetstream.WorkQueuePolicy {
		from = 0 // what is acknowledged is removed, and such a stream lets nobody begin elsewhere
	}
	if from > last+1 {
		const say = "the consumer is gone, and the stream ends with message %d, before message %d at which it was to begin, " +
			"as one does that was restored from an older state: make the consumer where it is to begin"
		return nil, &unfitError{fmt.Sprintf(say, last, from)}
	}
	is, err := u.create(ctx, from)
	if err != nil {
		return nil, err
	}
	if place == 0 {
		u.cfg.Log.Info("made a consumer that begins with the first message that the stream has",
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
	if _, err := u.sameStream(ctx); err != nil {
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

// sameStream returns the place of the last message that the stream has taken. It fails if the stream is not the one
// that was read before.
func (u *Updates) sameStream(ctx context.Context) (last uint64, err error) {
	is, err := u.streamInfo(ctx)
	if err != nil {
		return 0, err
	}
	u.has.retention = is.Config.Retention
	switch {
	case u.has.streamMade.IsZero():
		u.has.streamMade = is.Created
		u.compare(is.Created)
		if is.Config.Retention != jetstream.LimitsPolicy {
			u.cfg.Log.Warn("the stream removes what is acknowledged: what is too large to be held stops the work",
				"stream", u.cfg.Stream, "retention", is.Config.Retention.String())
		}
	case !u.has.streamMade.Equal(is.Created):
		return 0, &unfitError{"the stream was deleted and made again, so its messages have other places"}
	}
	return is.State.LastSeq, nil
}

// doubt looks for messages that are here and that the stream has no more, as its limits or somebody have removed them,
// where those decide whether the queue is settled. The server waits for no acknowledgement of such a message, so they
// would count in place of others that are missing.
func (u *Updates) doubt(ctx context.Context, is inorder.State) error {
	u.mu.Lock()
	all, missing := u.queue.All(), u.queue.Missing(is)
	u.mu.Unlock()
	if len(all) == 0 || missing > 0 || missing < 0 && time.Now().Before(u.has.look) {
		return nil
	}
	gone, err := u.gone(ctx, all)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, place := range gone {
		u.queue.Doubt(place)
	}
	return nil
}

// gone returns the places of messages that the stream has no more. Where it has removed few between others it lists
// them; else each message is looked for, which takes so many requests that the next look has to wait.
func (u *Updates) gone(ctx context.Context, all []inorder.Delivery[delivered]) (places []uint64, err error) {
	u.has.look = time.Now().Add(lookAgain)
	is, err := u.streamInfo(ctx)
	if err != nil {
		return nil, err
	}
	lists := is.State.NumDeleted > 0 && is.State.NumDeleted <= maxListed
	if lists {
		if is, err = u.streamInfo(ctx, jetstream.WithDeletedDetails(true)); err != nil {
			return nil, err
		}
	}
	for _, d := range all {
		gone := d.Place < is.State.FirstSeq || slices.Contains(is.State.Deleted, d.Place)
		if !gone && !lists && is.State.NumDeleted > 0 {
			u.has.look = u.has.look.Add(lookFor)
			m, err := u.get(ctx, getRequest{Sequence: d.Place})
			if err != nil {
				return nil, err
			}
			gone = m == nil
		}
		if gone {
			places = append(places, d.Place)
		}
	}
	return places, nil
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
