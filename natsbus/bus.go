package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"taskledger/store"
)

// Bus implements store.Bus. Its methods may be called concurrently.
type Bus struct {
	prefix string
	conn   *nats.Conn
	frames *framer
	link   *link
	log    *slog.Logger

	last             atomic.Pointer[subjectName] // published on: the same behavior completes again and again
	forged, overruns atomic.Uint64
	refused          atomic.Pointer[string] // what the servers last refused on this connection; nil = nothing
	forgedTold       atomic.Int64           // when the log was last told, in Unix nanoseconds
	unreachable      atomic.Bool            // an attempt to connect failed since the last connection
	lost             atomic.Bool            // the last connection was lost

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	shut func() // gives up the connection

	mu            sync.Mutex // guards closed, and that nothing is subscribed after it
	closed        bool
	subscriptions sync.WaitGroup // their goroutines
}

var _ store.Bus = (*Bus)(nil)

// Stats counts what the bus did not deliver, since it was opened.
type Stats struct {
	Forged   uint64 // messages dropped because they were forged, garbled or cut short
	Overruns uint64 // times that a subscription of this connection fell so far behind that messages were dropped
}

// Open returns at once, without a connection; the bus connects, and reconnects, for ever. The caller must Close it. An
// error means that cfg is wrong; it names the field.
func Open(cfg Config) (*Bus, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("open bus: %w", err)
	}
	b := &Bus{prefix: cfg.Cluster + ".", frames: newFramer(cfg.Key), link: newLink(), log: cfg.Log}
	b.ctx, b.stop = context.WithCancel(context.Background())
	if cfg.Conn != nil {
		b.conn, b.shut = cfg.Conn, b.share(cfg.Conn)
		return b, nil
	}
	if err := b.own(cfg); err != nil {
		b.stop()
		return nil, fmt.Errorf("open bus: %w", err)
	}
	return b, nil
}

// Publish sends data without waiting for anybody to receive it. A network that takes nothing more delays it by a
// second at most. Without a connection the error wraps nats.ErrDisconnected, beyond the server's limit
// nats.ErrMaxPayload. The reply subject, where one is given, must be under node. for an answer that nobody listens
// to be believed.
func (b *Bus) Publish(subject, reply string, data []byte) error {
	full, err := b.full(subject)
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if reply != "" {
		if err := checkSubject(reply); err != nil {
			return fmt.Errorf("publish on %s: reply %w", subject, err)
		}
		reply = b.prefix + reply
	}
	if !b.link.up.Load() {
		return fmt.Errorf("publish on %s: %w", subject, nats.ErrDisconnected)
	}
	err = b.send(subject, full, reply, data)
	if errors.Is(err, nats.ErrMaxPayload) {
		return fmt.Errorf("publish on %s: %d bytes exceed the server's limit of %d, frame included: %w",
			subject, len(data), b.conn.MaxPayload(), err)
	}
	if err != nil {
		return fmt.Errorf("publish on %s: %w", subject, err)
	}
	return nil
}

// subjectName is a subject that was found correct, and what it is called on the server.
type subjectName struct{ subject, full string }

func (b *Bus) full(subject string) (string, error) {
	if last := b.last.Load(); last != nil && last.subject == subject {
		return last.full, nil
	}
	if err := checkSubject(subject); err != nil {
		return "", err
	}
	name := &subjectName{subject, b.prefix + subject}
	b.last.Store(name)
	return name.full, nil
}

// send frames what is not public and hands it to the client. The full subject and the reply subject are absolute.
func (b *Bus) send(subject, full, reply string, data []byte) error {
	if !isPublic(subject) {
		s := b.frames.seal(full, reply, data)
		defer b.frames.release(s)
		data = s.buf // the client copies it
	}
	if reply == "" {
		return b.conn.Publish(full, data)
	}
	return b.conn.PublishRequest(full, reply, data)
}

// Notify implements store.Bus. h should return soon, since whoever finds the change calls it, and must not call
// Close. After Close it hears false once more, if it heard true, and nothing later.
func (b *Bus) Notify(ctx context.Context, h func(connected bool)) error {
	b.link.listen(ctx, h)
	return nil
}

// Name returns the name of the cluster, which is the prefix of every subject.
func (b *Bus) Name() string { return strings.TrimSuffix(b.prefix, ".") }

// Stats returns the counts since the bus was opened.
func (b *Bus) Stats() Stats {
	return Stats{Forged: b.forged.Load(), Overruns: b.overruns.Load()}
}

// Refused says what the servers last did not permit since the bus connected; "" = they permitted everything. It
// implements store.Refusing.
func (b *Bus) Refused() string {
	if refused := b.refused.Load(); refused != nil {
		return *refused
	}
	return ""
}

// tellForgedEvery is the least time between two log lines about forged messages, so that their sender cannot fill the
// log.
const tellForgedEvery = time.Minute

// dropForged counts a message that is not from a member.
func (b *Bus) dropForged(subject string) {
	n, now := b.forged.Add(1), time.Now().UnixNano()
	if told := b.forgedTold.Load(); now-told < int64(tellForgedEvery) || !b.forgedTold.CompareAndSwap(told, now) {
		return
	}
	b.log.Warn("messages are dropped that no member with this cluster's key has sent, or that were garbled",
		"subject", subject, "dropped", n)
}

// Close ends every subscription, waits for handlers that are running, and closes the connection unless it was
// given. It must not be called from a handler. Publish and Subscribe fail from now on. It returns nil, also when
// called again.
func (b *Bus) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.stop()
	b.shut()
	b.link.end()
	b.subscriptions.Wait()
	return nil
}
