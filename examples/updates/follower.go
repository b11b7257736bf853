package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"

	"taskledger/behaviors"
	"taskledger/natsbus"
	"taskledger/work"
	"taskledger/work/feed"
)

const streamName = "FILES"

// parts is the directory, below the one that is followed, of files that are not whole yet. No event may have a path in
// it.
const parts = ".updates"

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
		if first, _, _ := strings.Cut(e.Path, "/"); first == parts {
			return nil, behaviors.Code("event",
				fmt.Errorf("the path %q is in %s, where files are that are not whole yet", e.Path, parts), nil)
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
	if c.Value.Op == "remove" {
		return f.remove(c.Value.Path)
	}
	return f.put(c.Value.Path, c.Value.Data)
}

// put writes a file, in place of one or of an empty directory. It makes the directories anew that the removal of
// another file takes away meanwhile.
func (f *follower) put(name string, data []byte) (err error) {
	part := path.Join(parts, fmt.Sprintf("%x", sha256.Sum256([]byte(name))))
	if err := f.root.MkdirAll(parts, 0o755); err != nil {
		return err
	}
	if err := f.root.WriteFile(part, data, 0o644); err != nil {
		return err
	}
	for range 10 {
		err = f.root.MkdirAll(path.Dir(name), 0o755)
		if err == nil && f.isDirectory(name) {
			err = f.root.Remove(name)
		}
		if err == nil {
			err = f.root.Rename(part, name)
		}
		if !raced(err) {
			return err
		}
	}
	return err
}

// raced reports whether an error may come of a directory that somebody makes or removes at the same time.
func raced(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist) }

// remove removes a file, and the directories that are empty without it.
func (f *follower) remove(name string) error {
	if f.isDirectory(name) { // so there is no file
		return nil
	}
	err := f.root.Remove(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	for dir := path.Dir(name); dir != "." && f.isDirectory(dir); dir = path.Dir(dir) {
		if f.root.Remove(dir) != nil { // it is not empty
			break
		}
	}
	return nil
}

func (f *follower) isDirectory(name string) bool {
	is, err := f.root.Lstat(name)
	return err == nil && is.IsDir()
}
