package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"taskledger/store"
)

// streamName is legal for every cluster name, and another for each.
func streamName(cluster string) string { return strings.ToUpper(cluster) + "_ARCHIVE" }

func (a *Archive) streamConfig() jetstream.StreamConfig {
	var metadata map[string]string
	if a.cfg.Cluster != "" {
		metadata = map[string]string{clusterMetadata: a.cfg.Cluster}
	}
	return jetstream.StreamConfig{
		Metadata:          metadata,
		Name:              a.stream,
		Description:       "entries of taskledger's journals; nothing is ever removed",
		Subjects:          []string{a.subjects + "*"},
		Storage:           jetstream.FileStorage,
		Compression:       jetstream.NoCompression, // segments are compressed
		Replicas:          a.cfg.Replicas,
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		MaxConsumers:      -1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxMsgsPerSubject: -1,
		MaxMsgSize:        -1,
		DenyDelete:        true,
		DenyPurge:         true,
	}
}

// provide makes the stream, unless this archive knows it, or somebody else made one that keeps everything.
func (a *Archive) provide(ctx context.Context) error {
	if a.provided.Load() {
		return nil
	}
	var found *jetstream.StreamInfo // where somebody else made it
	err := a.request(ctx, func(ctx context.Context) error {
		_, err := a.js.CreateStream(ctx, a.streamConfig())
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			found, err = a.examine(ctx)
		}
		return err
	})
	if err == nil && found != nil && found.State.Msgs == 0 { // it is this cluster's from now on
		err = a.name(ctx, found.Config)
	}
	if err != nil {
		return fmt.Errorf("stream %s: %w", a.stream, err)
	}
	a.provided.Store(true)
	return nil
}

// examine returns the existing stream, or what makes it unfit.
func (a *Archive) examine(ctx context.Context) (*jetstream.StreamInfo, error) {
	s, err := a.js.Stream(ctx, a.stream)
	if err != nil {
		return nil, err
	}
	if err := a.ofAnother(s.CachedInfo().Config); err != nil {
		return nil, err
	}
	if unfit := forgets(s.CachedInfo().Config); unfit != "" {
		return nil, fmt.Errorf("exists and would not keep everything: %s", unfit)
	}
	return s.CachedInfo(), nil
}

// forgets names a setting by which a stream would lose what it has acknowledged; "" = none. A stream that refuses what
// is too much is fit.
func forgets(c jetstream.StreamConfig) string {
	limited := c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxMsgsPerSubject > 0
	switch {
	case c.Storage != jetstream.FileStorage:
		return "it stores in memory"
	case c.PersistMode == jetstream.AsyncPersistMode:
		return "it acknowledges before it stores"
	case c.NoAck:
		return "it acknowledges nothing"
	case c.Retention != jetstream.LimitsPolicy:
		return "its retention is " + c.Retention.String()
	case c.MaxAge > 0:
		return fmt.Sprintf("it removes messages after %s", c.MaxAge)
	case limited && (c.Discard != jetstream.DiscardNew || c.MaxMsgsPerSubject > 0 && !c.DiscardNewPerSubject):
		return "at its limits it removes the oldest messages"
	}
	return ""
}

// Inspect implements store.Inspecting. The settings of a stream may be changed by everybody who may use JetStream's
// API. One that could not be named is named now, where that has become possible.
func (a *Archive) Inspect(ctx context.Context) (is store.ArchiveCondition, err error) {
	var unnamed *jetstream.StreamInfo
	err = a.request(ctx, func(ctx context.Context) error {
		s, err := a.js.Stream(ctx, a.stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			is = store.ArchiveCondition{Empty: true}
			return nil
		}
		if err != nil {
			return err
		}
		now := s.CachedInfo()
		if forgets(now.Config) != "" {
			a.provided.Store(false) // it is refused for the next segment
		}
		if a.naming.failed.Load() != nil {
			unnamed = now
		}
		is.Empty = now.State.Msgs == 0
		if problem := strings.Join(loses(now), "; "); problem != "" {
			is.Problem = fmt.Sprintf("stream %s: %s", a.stream, problem)
		}
		return nil
	})
	if err == nil && unnamed != nil {
		err = a.name(ctx, unnamed.Config)
	}
	if err != nil {
		return is, fmt.Errorf("look at the archive: %w", err)
	}
	return is, nil
}

// loses lists the losses of a stream, and the settings by which it may lose messages.
func loses(now *jetstream.StreamInfo) (all []string) {
	if begins := max(now.Config.FirstSeq, 1); now.State.LastSeq > 0 && now.State.FirstSeq > begins {
		all = append(all, fmt.Sprintf("its first %d messages are gone", now.State.FirstSeq-begins))
	}
	if n := now.State.NumDeleted; n > 0 {
		all = append(all, fmt.Sprintf("%d messages in it were deleted", n))
	}
	if unfit := forgets(now.Config); unfit != "" {
		all = append(all, unfit)
	}
	if !now.Config.DenyDelete || !now.Config.DenyPurge {
		all = append(all, "it lets messages be removed by request: nats stream edit --deny-delete --deny-purge")
	}
	return all
}

// last returns the last message of a shard; nil = none.
func (a *Archive) last(ctx context.Context, shard int) (*stored, error) {
	return anyOf(a.get(ctx, getRequest{LastFor: a.subject(shard)}))
}

// next returns the first message of a shard at or after a sequence; nil = none.
func (a *Archive) next(ctx context.Context, shard int, sequence uint64) (*stored, error) {
	return anyOf(a.get(ctx, getRequest{Sequence: max(sequence, 1), NextFor: a.subject(shard)}))
}

// anyOf takes a stream that is not there for an empty one.
func anyOf(m *stored, err error) (*stored, error) {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return m, err
}
