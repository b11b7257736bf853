// Package local runs a node on a store that lives in this process: in the files of a directory, in memory, or on any
// journal.Journaler. It opens no port, and links neither a server nor a client of one. A task store takes three
// lines, without the checks of errors:
//
//	n, err := local.Files(ctx, dir)
//	defer n.Close()
//	s, err := taskstore.Open(n.Stores(), "default", taskstore.Options{})
//
// For more than one process use package embedded, or package cluster with servers of your own.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"taskledger/engine"
	"taskledger/filestore"
	"taskledger/filestore/filearchive"
	"taskledger/filestore/filejournal"
	"taskledger/filestore/filelogs"
	"taskledger/filestore/journal"
	"taskledger/filestore/memjournal"
	"taskledger/store"
	"taskledger/store/memarchive"
	"taskledger/store/membus"
	"taskledger/task"
)

// Config configures the node. The zero value works: it is in memory.
type Config struct {
	Dir     string            // directory of the files; "" = the store is in memory
	Journal journal.Journaler // takes the place of Dir; nil = none. The caller closes it after the node
	Store   filestore.Config
	Files   filejournal.Options // of a Dir

	// WholeHistory keeps all events of a node in memory, which grows with them. Default: those from before the snapshots
	// are forgotten.
	WholeHistory bool

	// StartWith sets Store and Bus of Node, Logs of a Dir unless they are set, and Archive of a Dir unless that is set or
	// Trimming is TrimAll: an archive beside the files, or in memory with WholeHistory. A Journal has none: where Archive
	// is not set, either, Trimming is TrimAll, or TrimNothing where that is set.
	Node engine.NodeConfig
}

// Node is an engine.Node whose store lives in this process. The caller closes it.
type Node struct {
	*engine.Node
	closers []func() error // they close the parts below the node; the first one opened is closed last
	stop    context.CancelFunc
	done    chan struct{} // closed when Run has returned; nil = it was not called
	err     error         // that Run returned; read once done is closed
	close   func() error
}

// Files runs a node on the files of a directory, which it makes where it is missing. It returns when the node is
// ready, and wraps filejournal.ErrInUse where another one runs on the directory.
func Files(ctx context.Context, dir string, behaviors ...task.Behavior) (*Node, error) {
	return StartWith(ctx, Config{Dir: dir, Node: engine.NodeConfig{Behaviors: behaviors}})
}

// Memory runs a node whose tasks end with it. Events from before the snapshots are forgotten, as with Journaler:
// see Config.WholeHistory.
func Memory(ctx context.Context, behaviors ...task.Behavior) (*Node, error) {
	return StartWith(ctx, Config{Node: engine.NodeConfig{Behaviors: behaviors}})
}

// Journaler runs a node on a journal, which the caller closes after the node. Events from before the snapshots are
// forgotten: there is no history of them.
func Journaler(ctx context.Context, j journal.Journaler, behaviors ...task.Behavior) (*Node, error) {
	return StartWith(ctx, Config{Journal: j, Node: engine.NodeConfig{Behaviors: behaviors}})
}

var errBoth = errors.New("both Dir and Journal are set")

// StartWith is Files, Memory or Journaler with a configuration. ctx bounds the start only; the caller ends the node
// with Close.
func StartWith(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Dir != "" && cfg.Journal != nil {
		return nil, fmt.Errorf("start node: %w", errBoth)
	}
	if cfg.Node.Log == nil {
		cfg.Node.Log = slog.Default()
	}
	if err := cfg.Node.Validate(); err != nil { // before the store is created
		return nil, fmt.Errorf("start node: %w", err)
	}
	n := &Node{}
	n.close = sync.OnceValue(n.shutDown)
	if err := n.start(ctx, cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("start node: %w", err), n.Close())
	}
	return n, nil
}

func (n *Node) start(ctx context.Context, cfg Config) (err error) {
	kept, archive, err := n.open(&cfg)
	if err != nil {
		return err
	}
	bus := membus.New()
	n.closers = append(n.closers, bus.Close)
	cfg.Node.Store, cfg.Node.Bus = kept, bus
	switch {
	case cfg.Node.Archive != nil || cfg.Node.Trimming == engine.TrimAll:
	case archive != nil:
		cfg.Node.Archive = archive
	case cfg.Node.Trimming == engine.TrimArchived:
		cfg.Node.Trimming = engine.TrimAll
	}
	if n.Node, err = engine.NewNode(cfg.Node); err != nil {
		return err
	}
	run, stop := context.WithCancel(context.Background())
	n.stop, n.done = stop, make(chan struct{})
	go func() {
		defer close(n.done)
		n.err = n.Run(run)
	}()
	select {
	case <-n.Ready():
		return nil
	case <-n.done:
		return errors.New("the node ended") // Close tells why
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open opens what the node stands on. The archive is nil where there is none.
func (n *Node) open(cfg *Config) (kept store.Store, archive store.Archive, err error) {
	switch {
	case cfg.Journal != nil:
		kept, err = filestore.New(cfg.Journal, cfg.Store)
		return kept, nil, err
	case cfg.Dir == "":
		kept, err = filestore.New(new(memjournal.Journal), cfg.Store)
		if cfg.WholeHistory {
			archive = memarchive.New()
		}
		return kept, archive, err
	}
	var a *filearchive.Archive
	cfg.Store.Beside = func(c store.Cluster) (begin func() error, err error) {
		a, begin, err = n.lookBeside(cfg, c.ID)
		return begin, err
	}
	s, err := filestore.Open(cfg.Dir, cfg.Store, cfg.Files)
	if err != nil {
		return nil, nil, err
	}
	n.closers = append(n.closers, s.Close)
	return s, a, nil
}

// lookBeside looks at archive and logs, which may be another cluster's than the store, and changes nothing. What it
// returns makes them ready to be written.
func (n *Node) lookBeside(cfg *Config, id string) (a *filearchive.Archive, begin func() error, err error) {
	if a, err = filearchive.Look(filepath.Join(cfg.Dir, "archive"), id); err != nil {
		return nil, nil, err
	}
	n.closers = append(n.closers, a.Close)
	if cfg.Node.Logs != nil {
		return a, a.Begin, nil
	}
	logs, err := filelogs.Look(filepath.Join(cfg.Dir, "logs"), filelogs.Config{Cluster: id})
	if err != nil {
		return nil, nil, err
	}
	n.closers = append(n.closers, logs.Close)
	cfg.Node.Logs = logs
	begin = func() error {
		if err := a.Begin(); err != nil {
			return err
		}
		return logs.Begin()
	}
	return a, begin, nil
}

// Done is closed when the node has ended: by Close, or by itself once its store writes nothing any more. Calls then end
// with Err. Whoever means to go on closes the node and starts another one.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why the node has ended by itself; nil while it runs, and after Close alone. It wraps store.ErrBroken
// where nobody knows what became of a write of the files or of the Journal.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

// Close drains the node and closes what it has opened. Calls after the first return what it returned.
func (n *Node) Close() error { return n.close() }

func (n *Node) shutDown() error {
	var errs []error
	if n.done != nil {
		n.stop()
		<-n.done
		errs = append(errs, n.err)
	}
	for i := len(n.closers) - 1; i >= 0; i-- {
		errs = append(errs, n.closers[i]())
	}
	return errors.Join(errs...)
}
