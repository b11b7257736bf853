// Command updates applies file events, which any program publishes to a JetStream stream, to a directory:
// go run ./examples/updates DIR.
//
// It runs a node of its own, whose NATS takes the events. A message on a subject files.> holds a JSON array of events,
// none or many: [{"op":"put","path":"a/b","data":"aGVsbG8="}, {"op":"remove","path":"c"}]. The events of a path are
// applied in the order of their messages, those of several paths side by side. What cannot be understood is parked as a
// suspended task, and what cannot be applied now is tried again later. A process that is killed goes on where it was
// when it is started with the same -data: an event may then be applied again, and none is left out. Directories are
// made for files, and removed with the last one. DIR/.updates takes files until they are whole.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/task"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	data := flag.String("data", "", "directory of the node; without it the node forgets all when it ends")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: updates [-data DATA] DIR")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(ctx, flag.Arg(0), *data, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "updates:", err)
		os.Exit(1)
	}
}

// run applies events until ctx ends.
func run(ctx context.Context, dir, data string, out io.Writer) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	f := &follower{root: root, connects: make(chan struct{})}
	updates := f.work()
	node, err := embedded.StartWith(ctx, embedded.Config{
		Dir:  data,
		Log:  slog.New(slog.DiscardHandler),
		Node: engine.NodeConfig{Behaviors: []task.Behavior{updates}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	f.url, f.key = node.NATSURL(), node.NATSNKey()
	if err := f.provide(ctx); err != nil {
		return err
	}
	close(f.connects)
	future, err := updates.Submit(ctx, node, struct{}{}, task.SubmitOptions{ID: "updates"})
	if err != nil {
		return err
	}
	defer future.Close()
	fmt.Fprintf(out, "publish to files.> at %s, with the nkey in %s\n", f.url, f.key)
	if _, err = future.Wait(ctx); ctx.Err() != nil {
		return nil
	}
	return err
}

// provide makes the stream of events, unless it is there.
func (f *follower) provide(ctx context.Context) error {
	conn, err := f.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name:     streamName,
		Subjects: []string{"files.>"},
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}

// connect connects to the NATS of the node.
func (f *follower) connect() (*nats.Conn, error) {
	sign, err := nats.NkeyOptionFromSeed(f.key)
	if err != nil {
		return nil, err
	}
	return nats.Connect(f.url, sign, nats.MaxReconnects(-1), nats.ReconnectBufSize(-1))
}
