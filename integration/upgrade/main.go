// Command upgrade is a node of a cluster whose servers run elsewhere. Its test builds it from sources of different
// releases, which work side by side then.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/natsbus"
	"taskledger/task"
)

// role configures the node, as JSON in its only argument.
type role struct{ Name, Etcd, NATS, NKey string }

// Limits of the node, which the test waits for.
const (
	ttl   = 3 * time.Second
	grace = 5 * time.Second
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run says that it is ready, and leaves in order when nothing more comes in.
func run(ctx context.Context, text string, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", r.Name)
	store, err := etcdstore.Open(ctx, etcdstore.Config{Endpoints: []string{r.Etcd}, Log: log})
	if err != nil {
		return err
	}
	defer store.Close()
	bus, err := natsbus.Open(natsbus.Config{URLs: []string{r.NATS}, NKey: r.NKey, Key: store.Cluster().Key, Log: log})
	if err != nil {
		return err
	}
	defer bus.Close()
	n, err := engine.NewNode(engine.NodeConfig{Store: store, Bus: bus, Name: r.Name, TTL: ttl, Grace: grace, Trimming: engine.TrimNothing, Log: log,
		Behaviors: []task.Behavior{builtin.Noop()}})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-n.Ready():
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	stop()
	return <-ended
}
