package natsbus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/events"
	"taskledger/store"
	"taskledger/tasklog"
)

// The bounds of the stream of logs, where LogsConfig does not say otherwise, and the least that it may say. Beyond any
// bound the oldest batches go.
const (
	DefaultLogBytes = 1 << 30
	DefaultLogAge   = 30 * 24 * time.Hour
	MaxLogMessages  = 1_000_000
	MinLogBytes     = 1 << 20
	MinLogAge       = time.Second
)

// LogsConfig says how logs are kept. The zero value works. An existing stream gets these bounds with the first batch
// that a process appends, so what nodes of a cluster say should be the same.
type LogsConfig struct {
	// Cluster is the cluster's id, which its stream tells in the metadata. The stream of another cluster is neither
	// read nor written. Default: the stream is anybody's.
	Cluster string
	// Replicas is the number of servers that keep the stream, 1 to 5. Default 1.
	Replicas int
	// MaxBytes bounds the stream, headers and what the server adds included, 1 MiB or more. Default
	// DefaultLogBytes. JetStream sets them aside when the stream is made.
	MaxBytes int64
	// MaxAge bounds the age of a batch, 1 s or more. Default DefaultLogAge.
	MaxAge time.Duration
}

// Logs implements tasklog.Store on a JetStream stream of its own, over the connection of a bus. Every request ends
// within 5 s, also when NATS is away, and a batch is sent three times at most; calls work again when NATS is back.
// Its methods may be called concurrently; it needs no closing.
//
// Errors wrap store.ErrUnavailable where NATS or JetStream is away, ErrNoJetStream besides where there is none,
// store.ErrConflict besides where the stream is another cluster's, and store.ErrFull where JetStream has no space left
// for the stream. Read wraps events.ErrDamaged where the last
// message of an attempt is no batch.
type Logs struct {
	remote
	cfg       LogsConfig
	subjects  string // prefix of the attempts' subjects
	provided  atomic.Bool
	providing chan struct{} // has a value while one of the writers provides the stream
	ours      atomic.Bool   // the stream is not another cluster's
	seen      atomic.Bool   // the stream was there
}

var _ tasklog.Store = (*Logs)(nil)

// Logs returns the cluster's logs, which work until b is closed. It asks NATS nothing: the stream is made by the
// first batch. An error means that cfg is wrong; it names the field.
func (b *Bus) Logs(cfg LogsConfig) (*Logs, error) {
	cfg.Replicas = cmp.Or(cfg.Replicas, 1)
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultLogBytes)
	cfg.MaxAge = cmp.Or(cfg.MaxAge, DefaultLogAge)
	switch {
	case cfg.Replicas < 1 || cfg.Replicas > MaxReplicas:
		return nil, fmt.Errorf("logs: replicas: %d, want 1 to %d", cfg.Replicas, MaxReplicas)
	case cfg.MaxBytes < MinLogBytes:
		return nil, fmt.Errorf("logs: bytes: %d, want %d or more", cfg.MaxBytes, MinLogBytes)
	case cfg.MaxAge < MinLogAge:
		return nil, fmt.Errorf("logs: age: %s, want %s or more", cfg.MaxAge, MinLogAge)
	}
	r, err := b.remote(strings.ToUpper(b.Name()) + "_LOGS")
	if err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	return &Logs{
		remote:    r,
		cfg:       cfg,
		subjects:  b.prefix + "logs.",
		providing: make(chan struct{}, 1),
	}, nil
}

func (l *Logs) subject(of tasklog.Attempt) string {
	return l.life(of.Shard, of.Life) + strconv.FormatUint(uint64(of.Number), 10)
}

// life is the prefix of the subjects of the attempts of a life.
func (l *Logs) life(shard uint16, life events.Ref) string {
	return fmt.Sprintf("%s%d.%d.", l.subjects, shard, life)
}

func (l *Logs) streamConfig() jetstream.StreamConfig {
	var metadata map[string]string
	if l.cfg.Cluster != "" {
		metadata = map[string]string{clusterMetadata: l.cfg.Cluster}
	}
	return jetstream.StreamConfig{
		Metadata:          metadata,
		Name:              l.stream,
		Description:       "logs of taskledger's tasks; the oldest go",
		Subjects:          []string{l.subjects + "*.*.*"},
		Storage:           jetstream.FileStorage,
		Compression:       jetstream.NoCompression, // batches are compressed
		Replicas:          l.cfg.Replicas,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		MaxConsumers:      -1,
		MaxMsgs:           MaxLogMessages,
		MaxBytes:          l.cfg.MaxBytes,
		MaxAge:            l.cfg.MaxAge,
		MaxMsgsPerSubject: -1,
		MaxMsgSize:        -1,
	}
}

// bound gives a stream that exists the bounds of this configuration, and leaves alone what else somebody has set.
func (l *Logs) bound(c jetstream.StreamConfig) jetstream.StreamConfig {
	own := l.streamConfig()
	c.Replicas, c.MaxMsgs, c.MaxBytes, c.MaxAge = own.Replicas, own.MaxMsgs, own.MaxBytes, own.MaxAge
	c.Discard = own.Discard
	c.Duplicates = min(c.Duplicates, own.MaxAge) // JetStream refuses a longer window
	if c.Metadata == nil {
		c.Metadata = map[string]string{}
	}
	maps.Copy(c.Metadata, own.Metadata)
	return c
}

// provide makes the stream, or gives it the bounds, once, whoever writes at the same time.
func (l *Logs) provide(ctx context.Context) error {
	if l.provided.Load() {
		return nil
	}
	late := time.NewTimer(requestTimeout)
	defer late.Stop()
	select {
	case l.providing <- struct{}{}:
		defer func() { <-l.providing }()
	case <-late.C:
		return fmt.Errorf("stream %s: %w", l.stream, errSlow)
	case <-ctx.Done():
		return fmt.Errorf("stream %s: %w: %w", l.stream, store.ErrUnavailable, context.Cause(ctx))
	}
	if l.provided.Load() {
		return nil
	}
	err := l.request(ctx, func(ctx context.Context) error {
		found, err := l.js.Stream(ctx, l.stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			_, err = l.js.CreateStream(ctx, l.streamConfig())
			return err
		}
		if err == nil {
			err = foreign(found.CachedInfo().Config, l.cfg.Cluster)
		}
		if err != nil {
			return err
		}
		_, err = l.js.UpdateStream(ctx, l.bound(found.CachedInfo().Config))
		return err
	})
	if err != nil {
		return fmt.Errorf("stream %s: %w", l.stream, away(err))
	}
	l.provided.Store(true)
	l.ours.Store(true)
	l.seen.Store(true)
	return nil
}

// away adds store.ErrUnavailable where it is meant.
func away(err error) error {
	if errors.Is(err, ErrNoJetStream) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

// Append implements tasklog.Store.
func (l *Logs) Append(
	ctx context.Context, of tasklog.Attempt, after tasklog.End, b tasklog.Batch,
) (tasklog.End, error) {
	err := tasklog.CheckAppend(of, after, b)
	if err == nil {
		err = l.provide(ctx)
	}
	end := tasklog.End{Line: b.Last()}
	if err == nil {
		end.Place, err = l.append(ctx, of, after.Place, b)
	}
	if err != nil {
		return tasklog.End{}, fmt.Errorf("append line %d to the log of %s: %w", b.First, l.subject(of), err)
	}
	return end, nil
}

// append sends the batch until it is known to be stored or refused, a few times at most.
func (l *Logs) append(
	ctx context.Context, of tasklog.Attempt, after uint64, b tasklog.Batch,
) (sequence uint64, err error) {
	body := packLog(of, b)
	for range maxSends {
		sequence, err = l.publish(ctx, logMessage(l.subject(of), b, body), after)
		if errors.Is(err, jetstream.ErrNoStreamResponse) {
			l.provided.Store(false)
		}
		switch {
		case err == nil:
			return sequence, nil
		case errors.Is(err, nats.ErrMaxPayload):
			return 0, fmt.Errorf("%w: %w", store.ErrRefused, err)
		case refused(err):
			return 0, away(err)
		}
		m, unread := anyOf(l.get(ctx, getRequest{LastFor: l.subject(of)}))
		switch {
		case unread != nil:
			return 0, away(errors.Join(err, unread))
		case m == nil: // the bounds of the stream have removed what was there
			after = 0
		case m.sequence == after:
		case sameLog(m, body):
			return m.sequence, nil
		default:
			return 0, fmt.Errorf("%w: its last batch is another: %w", tasklog.ErrTaken, err)
		}
	}
	return 0, away(err)
}

// Trim implements tasklog.Store.
func (l *Logs) Trim(ctx context.Context, of tasklog.Attempt, upTo tasklog.End) error {
	if upTo == (tasklog.End{}) {
		return nil
	}
	before := upTo.Place + 1 // of Whole it is 0: everything goes
	if err := l.purge(ctx, purgeRequest{Filter: l.subject(of), Before: before}); err != nil {
		return fmt.Errorf("trim the log of %s: %w", l.subject(of), err)
	}
	return nil
}

// Forget implements tasklog.Store.
func (l *Logs) Forget(ctx context.Context, shard uint16, life events.Ref, before uint32) error {
	if life == tasklog.EveryLife {
		if err := l.purge(ctx, purgeRequest{Filter: fmt.Sprintf("%s%d.>", l.subjects, shard)}); err != nil {
			return fmt.Errorf("forget the logs of shard %d: %w", shard, err)
		}
		return nil
	}
	if err := l.forget(ctx, l.life(shard, life), before); err != nil {
		return fmt.Errorf("forget the logs of life %d of shard %d: %w", life, shard, err)
	}
	return nil
}

// forget is Forget of the life whose subjects have a prefix.
func (l *Logs) forget(ctx context.Context, attempts string, before uint32) error {
	if before == 0 {
		return l.purge(ctx, purgeRequest{Filter: attempts + "*"})
	}
	is, err := l.ask(ctx, "INFO", map[string]any{"subjects_filter": attempts + "*"})
	if err != nil || is == nil {
		return err
	}
	for subject := range is.State.Subjects {
		number, err := strconv.ParseUint(strings.TrimPrefix(subject, attempts), 10, 32)
		if err != nil || uint32(number) >= before {
			continue
		}
		if err := l.purge(ctx, purgeRequest{Filter: subject}); err != nil {
			return err
		}
	}
	return nil
}

type purgeRequest struct {
	Filter string `json:"filter"`
	Before uint64 `json:"seq,omitempty"` // sequence of the first message that stays; 0 = none does
}

func (l *Logs) purge(ctx context.Context, what purgeRequest) error {
	if err := l.isOurs(ctx); err != nil {
		return err
	}
	_, err := l.ask(ctx, "PURGE", what)
	return err
}

// isOurs wraps store.ErrConflict and store.ErrUnavailable if the stream is another cluster's.
func (l *Logs) isOurs(ctx context.Context) error {
	if l.cfg.Cluster == "" || l.ours.Load() {
		return nil
	}
	is, err := l.ask(ctx, "INFO", struct{}{})
	if err != nil || is == nil {
		return err
	}
	if err := foreign(is.Config, l.cfg.Cluster); err != nil {
		return fmt.Errorf("stream %s: %w", l.stream, away(err))
	}
	l.ours.Store(true)
	return nil
}

// logStream holds what JetStream answers about the stream.
type logStream struct {
	Error   *jetstream.APIError    `json:"error"`
	Config  jetstream.StreamConfig `json:"config"`
	Created time.Time              `json:"created"`
	Now     time.Time              `json:"ts"`
	Total   int                    `json:"total"` // subjects, on all pages
	State   struct {
		First    uint64            `json:"first_seq"`
		Messages uint64            `json:"messages"`
		Oldest   time.Time         `json:"first_ts"`
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
}

// ask makes a request about the stream; nil = there is no stream.
func (l *Logs) ask(ctx context.Context, what string, request any) (*logStream, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	var is logStream
	err = l.request(ctx, func(ctx context.Context) error {
		m, err := l.bus.conn.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM."+what+"."+l.stream, text)
		if err == nil {
			err = json.Unmarshal(m.Data, &is)
		}
		if err == nil && is.Error != nil {
			err = is.Error
		}
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", l.stream, away(err))
	}
	l.seen.Store(true)
	return &is, nil
}
