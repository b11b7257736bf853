package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"taskledger/behaviors"
	library "taskledger/cluster"
	"taskledger/cmd/node/internal/cluster"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/internal/version"
	"taskledger/natsbus"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	set                *pflag.FlagSet
	name, join         string
	slots, shards      int
	limits             map[string]int
	owner              bool
	ttl, grace         time.Duration
	execAllow, execEnv []string
	httpAllowPrivate   bool
	checksumRoot       string
	etcdPort, natsPort int
	logLevel           slog.Level
	logFormat          string
	archive            string
	archiving          natsbus.ArchiveConfig
}

// What becomes of entries that snapshots cover.
const (
	archiveJetStream = "jetstream"
	archiveKeep      = "keep"
	archiveDrop      = "drop"
)

// flags returns the same set each time.
func (o *serveOptions) flags() *pflag.FlagSet {
	if o.set != nil {
		return o.set
	}
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.StringVar(&o.name, "name", "", "name of the node, for people (default: the host's)")
	f.StringVar(&o.join, "join", "", "`directory` of a running node on this machine whose cluster to join, instead of serving data")
	f.IntVar(&o.slots, "slots", 512, "attempts at once; 0 runs nothing")
	f.StringToIntVar(&o.limits, "limit", nil, "attempts of a behavior at once, `behavior=N,...`")
	f.Lookup("limit").DefValue = "" // the help would show brackets
	f.BoolVar(&o.owner, "owner", true, "own shards; false only runs attempts")
	f.DurationVar(&o.ttl, "ttl", 10*time.Second, "time until the node's death is noticed, 3s to 1m")
	f.DurationVar(&o.grace, "grace", 30*time.Second, "time that running attempts get when the node stops")
	f.IntVar(&o.shards, "shards", 0, "shards of a cluster that is created, a power of two to 256, fixed for ever (default 16)")
	f.StringVar(&o.archive, "archive", "", `what becomes of entries that snapshots cover: jetstream archives them in NATS, keep
keeps them in etcd, drop forgets them (default: jetstream as soon as NATS has it, until then keep)`)
	f.IntVar(&o.archiving.Replicas, "archive-replicas", 1, "copies of the archive that NATS keeps, 1 to 5, when its stream is made; with --nats")
	f.DurationVar(&o.archiving.DurableAfter, "archive-settle", 3*time.Minute, `time after which NATS has surely written what it acknowledged, before it is trimmed from
etcd; with --nats`)
	listVar(f, &o.execAllow, "exec-allow", "`programs` that tasks of behavior exec may run: names or absolute paths; not where others can\n"+
		"write etcd: with --etcd give --etcd-cert or --etcd-user, or a socket in a directory of yours (default: none)")
	listVar(f, &o.execEnv, "exec-env", "`names` of variables that tasks of behavior exec may set, beside LANG, LC_ALL and TZ")
	f.BoolVar(&o.httpAllowPrivate, "http-allow-private", false, "let tasks of behavior http reach addresses that are not public")
	f.StringVar(&o.checksumRoot, "checksum-root", ".", "`directory` that tasks of behavior checksum may read, but for the node's own data and secrets")
	f.IntVar(&o.etcdPort, "etcd-port", 0, `loopback port on which the etcd inside listens as well, open to every user of this machine;
not with --exec-allow (default: none)`)
	f.IntVar(&o.natsPort, "nats-port", 0, "loopback port of the NATS inside (default: that of the last start if it is free, else a free one)")
	f.TextVar(&o.logLevel, "log-level", slog.LevelWarn, "least `level` to log on standard error: debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	o.set = f
	return f
}

func (a *app) addServeFlags(c *cobra.Command) {
	c.Flags().AddFlagSet(a.access.flags())
	c.Flags().AddFlagSet(a.serve.flags())
}

func (a *app) serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run a node: by itself, or as one more of a cluster",
		Long: `Serve runs a node until it gets an interrupt or SIGTERM; it then drains: running attempts get --grace, its shards go to
others. A second signal ends it at once, and nothing that was acknowledged is lost.

By itself the node brings etcd and NATS along, for this user of this machine alone, with its data in --data. --join adds a node to one that
runs on this machine; --etcd and --nats join servers anywhere. Every node runs the behaviors noop, sleep and http, checksum
below --checksum-root, and exec for the programs that --exec-allow names.`,
		Args: cobra.NoArgs,
		Example: a.examples(
			example{"a second node beside one that runs here", []string{"serve", "--join", defaultDir, "--name", "b"}},
			example{"a member of a cluster elsewhere", []string{"serve", "--etcd", "etcd-1:2379,etcd-2:2379", "--nats", "nats://nats:4222"}},
			example{"one that only submits, waits and owns shards", []string{"serve", "--slots", "0"}}),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runNode(cmd.Context()) },
	}
	a.addServeFlags(c)
	return c
}

// runNode serves until ctx ends and the node has drained.
func (a *app) runNode(ctx context.Context) (err error) {
	if err := a.serve.check(&a.access); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = &serveError{err}
		}
	}()
	log, err := a.serve.logger(a)
	if err != nil {
		return err
	}
	link, servers, err := a.attach(ctx, log)
	if servers != nil {
		defer func() { err = errors.Join(err, servers.Close()) }()
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	cfg, err := a.serve.node(link, a.secrets(), log)
	if err == nil {
		err = a.chooseArchive(ctx, link, &cfg)
	}
	if err != nil {
		return err
	}
	if servers != nil {
		cfg.SessionFile = filepath.Join(a.access.dir, "session.json")
	}
	node, err := engine.NewNode(cfg)
	if err != nil {
		return err
	}
	if servers != nil { // before the node serves, which may take longer than the sessions of those who joined last
		if err := servers.Advertise(); err != nil {
			return err
		}
	}
	return a.runUntil(ctx, node, link, servers)
}

// runUntil runs the node, and says where it listens once it serves.
func (a *app) runUntil(ctx context.Context, node *engine.Node, link *cluster.Link, servers *embedded.Servers) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	g, running := errgroup.WithContext(running)
	g.Go(func() error {
		defer stop()
		return node.Run(ctx)
	})
	g.Go(func() error {
		select {
		case <-node.Ready():
		case <-running.Done():
			return nil
		}
		a.greet(link, servers)
		<-running.Done()
		if ctx.Err() != nil {
			fmt.Fprintf(a.Err, "%s: draining, for at most %s; a second signal ends it at once\n", a.Name, max(a.serve.grace, 0))
		}
		return nil
	})
	return g.Wait()
}

// attach links to the cluster to serve in; servers is nil unless they run in this process.
func (a *app) attach(ctx context.Context, log *slog.Logger) (*cluster.Link, *embedded.Servers, error) {
	a.access.addresses.Private = len(a.serve.execAllow) > 0
	if len(a.access.addresses.Etcd) > 0 {
		if a.serve.archiving.DurableAfter == 0 {
			a.serve.archiving.DurableAfter = -1 // in natsbus 0 is the default
		}
		a.access.addresses.Shards, a.access.addresses.Archive = a.serve.shards, a.serve.archiving
		link, err := a.access.open(ctx, log, false)
		return link, nil, ofExec(err)
	}
	if a.serve.join != "" {
		a.access.dir = a.serve.join
		link, err := cluster.In(ctx, a.serve.join,
			cluster.Addresses{Cluster: a.access.addresses.Cluster, Shards: a.serve.shards, Private: a.access.addresses.Private, Log: log})
		if errors.Is(err, library.ErrNoNode) {
			err = fmt.Errorf("%w; start one with: %s", err, a.command(append([]string{"serve"}, a.access.given("data")...)...))
		}
		return link, nil, ofExec(err)
	}
	servers, err := embedded.StartServers(ctx, embedded.ServersConfig{Dir: a.access.dir, EtcdPort: a.serve.etcdPort,
		NATSPort: a.serve.natsPort, Log: log, GaveUp: a.gaveUp})
	if err != nil {
		return nil, nil, err
	}
	link, err := cluster.On(ctx, servers, a.access.addresses.Cluster, a.serve.shards, log)
	return link, servers, err
}

// gaveUp ends the process when the etcd inside cannot go on. The panic that it ends with else has the exit code of wrong usage.
func (a *app) gaveUp(problem string) {
	fmt.Fprintf(a.Err, "%s: the etcd inside has given up: %s\n", a.Name, problem)
	os.Exit(exitUnavailable)
}

// ofExec names the flag that an etcd was refused for.
func ofExec(err error) error {
	if errors.Is(err, library.ErrNotPrivate) {
		return &usageError{"--exec-allow would let others run programs: " + err.Error()}
	}
	return err
}

// node makes the configuration of the node from the flags.
func (o *serveOptions) node(link *cluster.Link, secrets []string, log *slog.Logger) (engine.NodeConfig, error) {
	root, err := filepath.Abs(o.checksumRoot)
	if err != nil {
		return engine.NodeConfig{}, fmt.Errorf("--checksum-root: %w", err)
	}
	builtin := behaviors.Builtin(behaviors.BuiltinOptions{
		Exec:     behaviors.ExecOptions{Allow: o.execAllow, Env: o.execEnv},
		HTTP:     behaviors.HTTPOptions{AllowPrivate: o.httpAllowPrivate},
		Checksum: behaviors.ChecksumOptions{Root: root, Exclude: secrets},
	})
	cfg := engine.NodeConfig{Store: link.Store, Bus: link.Bus, Behaviors: builtin, Name: o.name, Slots: o.slots,
		Limits: o.limits, Owner: &o.owner, TTL: o.ttl, Grace: o.grace, Log: log}
	if o.slots == 0 {
		cfg.Slots = -1 // in the engine 0 is the default
	}
	if o.grace == 0 {
		cfg.Grace = -1
	}
	return cfg, nil
}

// chooseArchive settles what becomes of entries that snapshots cover. Unless the operator has said so, the node does.
func (a *app) chooseArchive(ctx context.Context, link *cluster.Link, cfg *engine.NodeConfig) error {
	switch a.serve.archive {
	case archiveKeep:
		cfg.Archive, cfg.Trimming = link.Archive, engine.TrimNothing
	case archiveDrop:
		cfg.Trimming = engine.TrimAll
	case archiveJetStream:
		if link.Archive == nil {
			return &usageError{"--archive jetstream: there is no NATS"}
		}
		cfg.Archive = link.Archive
	case "":
		why := "there is no NATS"
		if link.Archive != nil {
			cfg.Archive = link.Archive // also where JetStream is not to be seen: it may be about to start
			_, err := link.Archive.Head(ctx, 0)
			if err == nil {
				return nil
			}
			why = "until there is an archive, " + err.Error()
		} else {
			cfg.Trimming = engine.TrimNothing // said here, so not by the engine as well
		}
		fmt.Fprintf(a.Err, "%s: the journal is kept in etcd, and grows: %s (--archive keep or drop says so on purpose)\n", a.Name, why)
	}
	return nil
}

func (o *serveOptions) logger(a *app) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: o.logLevel}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(a.Err, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(a.Err, options)), nil
	}
	return nil, &usageError{"--log-format: want text or json"}
}

// greet says where the node listens and what to type next.
func (a *app) greet(link *cluster.Link, servers *embedded.Servers) {
	name := a.serve.name
	if name == "" {
		name, _ = os.Hostname() // what the engine has shown by now
	}
	var b strings.Builder
	fmt.Fprintf(&b, "taskledger %s: node %q is ready, in a cluster of %d shards\n", version.Version, name, link.Store.Cluster().Shards)
	fmt.Fprintf(&b, "  etcd  %s\n", strings.Join(link.Etcd, " "))
	if len(link.NATS) > 0 {
		fmt.Fprintf(&b, "  nats  %s\n", strings.Join(link.NATS, " "))
	}
	where := a.access.given("data")
	if servers != nil {
		fmt.Fprintf(&b, "  data  %s\n", servers.Dir())
	}
	fmt.Fprintf(&b, "\nTry, from another terminal:\n")
	fmt.Fprintf(&b, "  %s\n", a.command(append([]string{"submit", "sleep", `{"duration":"1s"}`, "--wait"}, where...)...))
	fmt.Fprintf(&b, "  %s\n", a.command(append([]string{"list"}, where...)...))
	next := "b"
	if name == next {
		next = "c"
	}
	fmt.Fprintf(&b, "  %s\n\n", a.command(slices.Concat([]string{"serve"}, a.access.given("join"), []string{"--name", next})...))
	fmt.Fprint(a.Out, b.String())
}
