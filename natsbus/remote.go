package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/store"
)

// ErrNoJetStream reports that NATS keeps nothing: JetStream is not enabled on its servers, or not for the account.
var ErrNoJetStream = errors.New("NATS has no JetStream: enable it on the servers (nats-server -js) and for the " +
	"account, or run the nodes without an archive and logs of tasks")

// requestTimeout bounds one request to JetStream, the wait for the connection included.
const requestTimeout = 5 * time.Second

// unsentPause is the time between two tries of a request while the client has not yet told that its connection is
// broken.
const unsentPause = 10 * time.Millisecond

// What ends a request that has no answer; both wrap store.ErrUnavailable.
var (
	errSlow = fmt.Errorf("%w: no answer from NATS within %s", store.ErrUnavailable, requestTimeout)
	errCut  = fmt.Errorf("%w: %w", store.ErrUnavailable, nats.ErrDisconnected)
)

// Error codes of JetStream that the client does not name.
const (
	errCodeAccountResources jetstream.ErrorCode = 10002
	errCodeResources        jetstream.ErrorCode = 10023
	errCodeMemory           jetstream.ErrorCode = 10028
	errCodeStorage          jetstream.ErrorCode = 10047
	errCodeStoreFailed      jetstream.ErrorCode = 10077
)

// remote is a stream of JetStream, asked over the connection of a bus.
type remote struct {
	bus    *Bus
	js     jetstream.JetStream
	stream string
}

func (b *Bus) remote(stream string) (remote, error) {
	js, err := jetstream.New(b.conn)
	return remote{b, js, stream}, err
}

// clusterMetadata is the key of the cluster's id in the metadata of its streams.
const clusterMetadata = "taskledger-cluster"

// clusterOf is the id of the cluster that a stream tells; "" = none.
func clusterOf(c jetstream.StreamConfig) string { return c.Metadata[clusterMetadata] }

// foreign wraps store.ErrConflict if a stream is known to be of another cluster than this one.
func foreign(c jetstream.StreamConfig, this string) error {
	is := clusterOf(c)
	if is == "" || this == "" || is == this {
		return nil
	}
	return fmt.Errorf("%w: it is of cluster %s, this is %s: "+
		"name this cluster otherwise, or remove the stream where nobody needs it any more", store.ErrConflict, is, this)
}

// stored is a message in the stream.
type stored struct {
	sequence uint64
	header   nats.Header
	data     []byte
}

// attached waits for the connection and returns a context for one request, which ends with the connection, with the
// bus, or after requestTimeout.
func (b *Bus) attached(ctx context.Context) (context.Context, context.CancelFunc, error) {
	ctx, expire := context.WithTimeoutCause(ctx, requestTimeout, errSlow)
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.ctx, func() { end(nats.ErrConnectionClosed) })
	done := func() { stop(); end(nil); expire() }
	connected, seen := make(chan struct{}), false
	b.link.listen(ctx, func(up bool) {
		switch {
		case up && !seen:
			seen = true
			close(connected)
		case !up && seen:
			end(errCut)
		}
	})
	select {
	case <-connected:
		return ctx, done, nil
	case <-ctx.Done():
		done()
		return nil, nil, fmt.Errorf("%w: %w", nats.ErrDisconnected, context.Cause(ctx))
	}
}

// request calls do with a context for one request and says what its error means. It calls again where nothing was
// sent, because the connection broke a moment ago, and ends within requestTimeout.
func (r *remote) request(ctx context.Context, do func(context.Context) error) error {
	ctx, expire := context.WithTimeoutCause(ctx, requestTimeout, errSlow)
	defer expire()
	for {
		err := r.requestOnce(ctx, do)
		if !errors.Is(err, nats.ErrReconnectBufExceeded) {
			return err
		}
		select {
		case <-time.After(unsentPause):
		case <-ctx.Done():
			return err
		}
	}
}

func (r *remote) requestOnce(ctx context.Context, do func(context.Context) error) error {
	ctx, done, err := r.bus.attached(ctx)
	if err != nil {
		return err
	}
	defer done()
	err = do(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // the client tells only that it ended
	}
	return meaning(err)
}

// publish stores a message if the last one of its subject is the one at after; 0 = there is none.
func (r *remote) publish(ctx context.Context, m *nats.Msg, after uint64) (sequence uint64, err error) {
	err = r.request(ctx, func(ctx context.Context) error {
		ack, err := r.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(after),
			jetstream.WithExpectStream(r.stream), jetstream.WithRetryAttempts(0))
		if err == nil {
			sequence = ack.Sequence
		}
		return err
	})
	if errors.Is(err, nats.ErrMaxPayload) {
		return 0, fmt.Errorf("%d bytes with headers exceed the server's limit of %d: %w",
			m.Size()-len(m.Subject), r.bus.conn.MaxPayload(), err)
	}
	return sequence, err
}

// meaning adds the sentinel that callers know to what JetStream answered.
func meaning(err error) error {
	var answer *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return ErrNoJetStream
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		// The connection broke a moment ago: nothing is kept for the next one.
		return fmt.Errorf("%w: %w", errCut, err)
	case !errors.As(err, &answer):
		return err
	}
	switch answer.ErrorCode {
	case jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return fmt.Errorf("%w: %w", ErrNoJetStream, err)
	case errCodeAccountResources, errCodeResources, errCodeMemory, errCodeStorage, errCodeStoreFailed:
		return fmt.Errorf("JetStream's %w: %w", store.ErrFull, err)
	}
	return err
}

type getRequest struct {
	Sequence uint64 `json:"seq,omitempty"`
	NextFor  string `json:"next_by_subj,omitempty"`
	LastFor  string `json:"last_by_subj,omitempty"`
}

type getAnswer struct {
	Error   *jetstream.APIError `json:"error"`
	Message *struct {
		Sequence uint64 `json:"seq"`
		Header   []byte `json:"hdrs"`
		Data     []byte `json:"data"`
	} `json:"message"`
}

// get asks the leader of the stream: what a replica answers may be older. It returns nil when there is no such
// message.
func (r *remote) get(ctx context.Context, what getRequest) (*stored, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	var answer getAnswer
	err = r.request(ctx, func(ctx context.Context) error {
		m, err := r.bus.conn.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM.MSG.GET."+r.stream, text)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(m.Data, &answer); err != nil {
			return fmt.Errorf("answer of JetStream: %w", err)
		}
		if answer.Error != nil {
			return answer.Error
		}
		return nil
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", r.stream, err)
	}
	if answer.Message == nil {
		return nil, fmt.Errorf("read stream %s: %w", r.stream, jetstream.ErrInvalidJetStreamResponse)
	}
	m := &stored{sequence: answer.Message.Sequence, data: answer.Message.Data}
	if len(answer.Message.Header) > 0 {
		m.header, _ = nats.DecodeHeadersMsg(answer.Message.Header) // without them it is no segment
	}
	return m, nil
}
