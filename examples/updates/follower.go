package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/nats-io/nats.go"

	"taskledger/behaviors"
	"taskledger/natsbus"
	"taskledger/work"
	"taskledger/work/feed"
)

const streamName = "FILES"

// event says what became of a file.
type event struct {
	Op   string `json:"op"` // put or remove
	Path string `json:"path"`
	Data []byte `json:"data,omitempty"`
}

// follower applies events below a directory.
type follower struct {
	root     *os.Root
	connects chan struct{} // closed when url and key are known
	url, key string
}

// work returns the stream of events as a work.
func (f *follower) work() *work.Work[struct{}, work.Change[event]] {
	return work.DefineStream("updates", nil, work.Stream[struct{}, event]{
		Source:  f.open,
		Convert: convert,
		Process: f.apply,
		Threads: 4,
		Rules: []work.Rule{
			{Code: "event", React: work.Park},
			{React: work.RetryLater},
		},
	})
}

// source is a source with a connection of its own.
type source struct {
	*natsbus.Updates
	conn *nats.Conn
}

// Close implements feed.Source.
func (s source) Close() error {
	defer s.conn.Close()
	return s.Updates.Close()
}

// open returns the source of an attempt.
func (f *follower) open(ctx context.Context, _ struct{}) (feed.Source, error) {
	select {
	case <-f.connects:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	conn, err := f.connect()
	if err != nil {
		return nil, err
	}
	updates, err := natsbus.NewUpdates(conn, natsbus.UpdatesConfig{
		Stream:   streamName,
		Consumer: "updates",
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return source{updates, conn}, nil
}

// convert returns the events of a message, each with its path as the key.
func convert(_ context.Context, _ struct{}, m feed.Message) (all []work.Change[event], err error) {
	var events []event
	if err := json.Unmarshal(m.Data, &events); err != nil {
		return nil, behaviors.Code("event", err, nil)
	}
	for _, e := range events {
		if !filepath.IsLocal(e.Path) || path.Clean(e.Path) != e.Path || e.Path == "." {
			return nil, behaviors.Code("event", fmt.Errorf("the path %q is not below the directory", e.Path), nil)
		}
		if e.Op != "put" && e.Op != "remove" {
			return nil, behaviors.Code("event", fmt.Errorf("the op %q is neither put nor remove", e.Op), nil)
		}
		all = append(all, work.Change[event]{Key: e.Path, Value: e})
	}
	return all, nil
}

// apply applies an event, which may have been applied before. A reader of the directory sees a file as it was before or
// as it is after.
func (f *follower) apply(_ context.Context, c work.Change[event]) error {
	e := c.Value
	if e.Op == "remove" {
		err := f.root.Remove(e.Path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := f.root.MkdirAll(path.Dir(e.Path), 0o755); err != nil {
		return err
	}
	part := path.Join(path.Dir(e.Path), "."+path.Base(e.Path)+".part")
	if err := f.root.WriteFile(part, e.Data, 0o644); err != nil {
		return err
	}
	return f.root.Rename(part, e.Path)
}
