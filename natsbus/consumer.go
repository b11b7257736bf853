package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/work/feed"
)

// consumer asks JetStream about a durable consumer, over a connection that somebody else closes.
type consumer struct {
	cfg  UpdatesConfig
	conn *nats.Conn
	js   jetstream.JetStream
	ctx  context.Context // ends with the source
}

// errLost tells that a connection broke while a request was under way, or is not there.
var errLost = errors.New("there is no connection to NATS")

// request calls do with a context for one request, which ends after requestTimeout or with the source.
func (c *consumer) request(ctx context.Context, do func(context.Context) error) error {
	switch {
	case c.ctx.Err() != nil || c.conn.IsClosed():
		return feed.ErrClosed
	case !c.conn.IsConnected():
		return errLost
	}
	ctx, expire := context.WithTimeoutCause(ctx,
		requestTimeout, fmt.Errorf("no answer from NATS within %s", requestTimeout))
	defer expire()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(c.ctx, func() { end(feed.ErrClosed) })()
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// info returns what JetStream knows of the consumer; nil = there is none.
func (c *consumer) info(ctx context.Context) (is *jetstream.ConsumerInfo, err error) {
	err = c.request(ctx, func(ctx context.Context) error {
		found, err := c.js.Consumer(ctx, c.cfg.Stream, c.cfg.Consumer)
		if err == nil {
			is = found.CachedInfo()
		}
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, nil
	}
	return is, err
}

// streamInfo returns what JetStream knows of the stream.
func (c *consumer) streamInfo(
	ctx context.Context,
	of ...jetstream.StreamInfoOpt,
) (is *jetstream.StreamInfo, err error) {
	err = c.request(ctx, func(ctx context.Context) error {
		s, err := c.js.Stream(ctx, c.cfg.Stream)
		if err != nil {
			return err
		}
		if is = s.CachedInfo(); len(of) > 0 {
			is, err = s.Info(ctx, of...)
		}
		return err
	})
	return is, err
}

// create makes the consumer, which begins at a place; 0: at the first message of the stream.
func (c *consumer) create(ctx context.Context, place uint64) (is *jetstream.ConsumerInfo, err error) {
	err = c.request(ctx, func(ctx context.Context) error {
		made, err := c.js.CreateConsumer(ctx, c.cfg.Stream, c.cfg.consumerConfig(place))
		if err == nil {
			is = made.CachedInfo()
		}
		return err
	})
	return is, err
}

// pull asks for messages, which come to a subject, as does the reason why no more come.
func (c *consumer) pull(reply string, batch int, expires time.Duration) error {
	text, err := json.Marshal(map[string]any{"batch": batch, "expires": expires})
	if err != nil {
		return err
	}
	return c.conn.PublishRequest(
		fmt.Sprintf("%sCONSUMER.MSG.NEXT.%s.%s", jetstream.DefaultAPIPrefix, c.cfg.Stream, c.cfg.Consumer), reply, text)
}

// ack acknowledges a delivery, and returns when JetStream has taken that.
func (c *consumer) ack(ctx context.Context, reply string) error {
	return c.request(ctx, func(ctx context.Context) error {
		_, err := c.conn.RequestWithContext(ctx, reply, ackText)
		return err
	})
}

// What is answered to a delivery.
var (
	ackText      = []byte("+ACK")
	nakText      = []byte("-NAK")
	progressText = []byte("+WPI")
)

// get returns the message at a place, or the first one of a subject from there on; nil = there is none.
func (c *consumer) get(ctx context.Context, what getRequest) (m *feed.Message, err error) {
	text, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	err = c.request(ctx, func(ctx context.Context) error {
		m, err := c.conn.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM.MSG.GET."+c.cfg.Stream, text)
		if err == nil {
			err = json.Unmarshal(m.Data, &answer)
		}
		if err == nil && answer.Error != nil {
			err = answer.Error
		}
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case answer.Message == nil:
		return nil, jetstream.ErrInvalidJetStreamResponse
	}
	is := answer.Message
	m = &feed.Message{
		Place:     is.Sequence,
		Subject:   is.Subject,
		Data:      is.Data,
		Time:      is.Time,
		Delivered: 1,
	}
	if len(is.Header) > 0 {
		header, err := nats.DecodeHeadersMsg(is.Header)
		if err != nil {
			return nil, fmt.Errorf("headers of message %d: %w", is.Sequence, err)
		}
		m.Header = header
	}
	return m, nil
}

// lasting reports whether an error says something that waiting does not change.
func lasting(err error) bool {
	var answer *jetstream.APIError
	return errors.Is(err, feed.ErrClosed) || errors.As(err, &answer) && answer.Code != 503 ||
		errors.Is(err, nats.ErrPermissionViolation) || errors.Is(err, jetstream.ErrNotPullConsumer)
}
