package natsbus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// checkWithin bounds each question of Check.
const checkWithin = 5 * time.Second

// Check connects to the servers of cfg.URLs as Open does, but once, and asks for everything that a node needs: to
// publish and to subscribe on the subjects of the cluster, and answers. archive says separately why the archive cannot
// be used; it is nil if the archive can be used or does not exist yet. Nothing is changed. cfg.Key does not count.
func Check(ctx context.Context, cfg Config) (archive, err error) {
	cfg.Key = make([]byte, KeyBytes)
	if cfg, err = cfg.complete(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, 3*checkWithin)
	defer stop()
	up, closed, failures := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	failed := func(err error) {
		if errors.Is(err, errLater) {
			return
		}
		select {
		case failures <- err: // the first one says most
		default:
		}
	}
	conn, err := connect(ctx, cfg, failed,
		nats.ConnectHandler(func(*nats.Conn) { close(up) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { failed(err) }),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
	)
	if err != nil {
		return nil, err
	}
	defer func() {
		conn.Close()
		<-closed
	}()
	select {
	case <-up:
	case err := <-failures:
		return nil, err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer within %s", 3*checkWithin)
	}
	if err := echoes(ctx, conn, cfg.Cluster); err != nil {
		return nil, because(failures, err)
	}
	archive = inspect(ctx, conn, cfg)
	select {
	case err := <-failures:
		return archive, err
	default:
		return archive, nil
	}
}

// because prefers an error that the server has reported to one that follows from it.
func because(failures <-chan error, err error) error {
	select {
	case why := <-failures:
		return why
	default:
		return err
	}
}

// echoes publishes a message on a subject of the cluster, and gets it back.
func echoes(ctx context.Context, conn *nats.Conn, cluster string) error {
	ctx, stop := context.WithTimeout(ctx, checkWithin)
	defer stop()
	subject := cluster + ".check." + rand.Text()
	sub, err := conn.SubscribeSync(subject)
	if err == nil {
		err = conn.Publish(subject, nil)
	}
	if err == nil {
		_, err = sub.NextMsgWithContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("publish and subscribe on %s.>: %w", cluster, err)
	}
	return nil
}

// inspect asks JetStream for the archive.
func inspect(ctx context.Context, conn *nats.Conn, cfg Config) (err error) {
	bus, err := Open(Config{Conn: conn, Key: cfg.Key, Cluster: cfg.Cluster, Log: cfg.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.Close()) }()
	a, err := bus.Archive(ArchiveConfig{})
	if err != nil {
		return err
	}
	is, err := a.Inspect(ctx)
	if err == nil && is.Problem != "" {
		err = errors.New(is.Problem)
	}
	return err
}
