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

	"taskledger/cluster"
	"taskledger/cmd/node/internal/archiving"
	"taskledger/cmd/node/internal/certificates"
	"taskledger/cmd/node/internal/connect"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/guard"
	"taskledger/cmd/node/internal/httpd"
	"taskledger/cmd/node/internal/infiles"
	"taskledger/cmd/node/internal/monitor"
	"taskledger/cmd/node/internal/syncfile"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/internal/connection"
	"taskledger/internal/version"
	"taskledger/meter"
)

// headStart is the time that requests of the API get before the node begins to drain.
const headStart = 500 * time.Millisecond

func (a *app) addServeFlags(c *cobra.Command) {
	a.access.flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "timeout" && f.Name != "await-node" { // they are for whoever asks; a node runs until it is stopped
			c.Flags().AddFlag(f)
		}
	})
	c.Flags().AddFlagSet(a.serve.flags())
}

func (a *app) serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run a node: by itself, or as one more of a cluster",
		Long: `Serve runs a node until it gets an interrupt, SIGTERM or, without --sync, SIGHUP; it then drains:
running attempts get --grace, those that are left get 10 s more to return, its shards go to others. With the default
--grace it has ended within 28 s. A second interrupt or SIGTERM ends it at once, and nothing that was acknowledged is
lost.

By itself the node brings etcd and NATS along, for this user of this machine alone, with its data in --data. --join
adds a node to one that runs on this machine; --etcd and --nats join servers anywhere. --store files keeps everything
in files of --data instead, without servers, for one node that is alone: docs/files.md. Every node runs the behaviors
noop, sleep and http, checksum below --checksum-root, exec for the programs that --exec-allow names, and collection,
by these programs and by files that are fetched to below --sync-root. With --sync a SIGHUP, also that of a terminal
which is closed, reads the file of collections again.`,
		Args: flags.NoArguments,
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
	a.sync.path = a.serve.builtins.sync
	ctx, release := a.sync.untilHungUp(ctx) // before the file is read, which may be a pipe
	defer release()
	if err := a.sync.read(ctx, a.sync.path); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = &exitcode.ServeError{Err: err}
		}
	}()
	a.inBackground()
	log, err := a.serve.logger(a.Err)
	if err == nil {
		err = a.serve.shareFiles(len(a.access.addresses.Etcd) == 0 && a.serve.join == "", log)
	}
	if err != nil {
		return err
	}
	if err := a.serve.api.CheckFiles(); err != nil { // before the cluster is created
		return err
	}
	link, at, err := a.attach(ctx, log)
	if at != nil {
		defer func() { err = errors.Join(err, at.Close()) }()
	}
	if err != nil {
		return err
	}
	if !a.serve.inFiles() { // there the place closes store and bus among its other parts, in order
		defer func() { err = errors.Join(err, link.Close()) }()
	}
	a.warnOfExec(ctx, log)
	if a.serve.builtins.runPrograms() {
		programs, err := guard.Start(log)
		if err != nil {
			return err
		}
		defer programs.Close()
		a.serve.builtins.hold = programs.Hold
	}
	cfg, err := a.serve.node(a.secrets(), log)
	if err == nil {
		cfg.Store, cfg.Bus = link.Store, link.Bus
		err = a.chooseArchive(ctx, link, &cfg)
	}
	switch {
	case err != nil:
	case a.serve.inFiles():
		cfg.Logs = link.Logs
	default:
		err = a.serve.logs.choose(link, &cfg)
	}
	if err != nil {
		return err
	}
	if at != nil && !a.serve.inFiles() { // the sessions of a store in files end with the process
		cfg.SessionFile = filepath.Join(a.access.dir, "session.json")
	}
	return a.runListening(ctx, cfg, link, at, log)
}

// runListening opens the listeners, which close with the node, makes the node, and runs it.
func (a *app) runListening(ctx context.Context, cfg engine.NodeConfig, link *connect.Link, at httpd.Place, log *slog.Logger) error {
	web, err := httpd.Open(a.serve.api, at, a.serve.files.Connections, log)
	if err != nil {
		return err
	}
	watch, err := monitor.Open(monitor.Config{
		Address:  a.serve.metrics,
		Insecure: a.serve.metricsInsecure,
		Names:    a.serve.api.Hosts,
		TLS:      web.TLS(),
		Trusted:  web.Views,
		Cluster:  link.Store.Cluster().ID,

		Certificates: a.certificates(),
	}, log)
	if err != nil {
		return errors.Join(err, web.Close())
	}
	if a.serve.metrics != "" || web != nil {
		cfg.Meter = watch.Meter()
	}
	var node *engine.Node
	if err = web.Measure(watch.Registry()); err == nil {
		node, err = engine.NewNode(cfg)
	}
	if err == nil && at != nil { // before the node serves, which may take longer than the sessions of those who joined last
		err = at.Advertise(web.Advertised())
	}
	if err != nil {
		return errors.Join(err, watch.Close(), web.Close())
	}
	return a.runUntil(ctx, node, a.sync.applier(node, a.nodeName(), log), link, at, watch, web)
}

// warnOfExec says what programs of tasks may do here.
func (a *app) warnOfExec(ctx context.Context, log *slog.Logger) {
	for _, entry := range a.serve.builtins.execAllow {
		if name, _, fixed := strings.Cut(entry, "="); !fixed || strings.ContainsRune(name, filepath.Separator) {
			log.WarnContext(ctx, "all arguments of this program are the submitter's: where it reads files or starts others, it hands the node's user to every submitter",
				"exec-allow", entry)
		}
	}
}

// runUntil runs the node, and says where it listens once it serves.
func (a *app) runUntil(ctx context.Context, node *engine.Node, applier *syncfile.Applier, link *connect.Link, at httpd.Place, watch *monitor.Monitor, web *httpd.Server) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	watched, drained := context.WithCancel(context.WithoutCancel(ctx))
	g, running := errgroup.WithContext(running)
	vitals := func() meter.Vitals {
		v := node.Vitals()
		v.Draining = v.Draining || running.Err() != nil // requests have a moment before the node drains
		return v
	}
	figures := watch.Figures(vitals)
	nodes, drain := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error {
		defer stop()
		defer drained()
		return node.Run(nodes)
	})
	// The API closes beside the drain. Most requests that are under way end at once, and are answered by a node that
	// does not drain yet.
	defer context.AfterFunc(running, func() { time.AfterFunc(headStart, drain) })()
	g.Go(func() error {
		defer drain()
		if web != nil {
			web.Serve(running, node.Client, func() string { now := vitals(); return now.NotReady() }, func() bool { return node.Vitals().SlotsUsed > 0 }, figures)
		}
		<-running.Done()
		return nil
	})
	g.Go(func() error { // until the node has drained: readiness says that it does
		watch.Serve(watched, figures, vitals)
		return nil
	})
	g.Go(func() error {
		select {
		case <-node.Ready():
		case <-running.Done():
			return nil
		}
		a.greet(link, at, watch, web)
		if applier != nil {
			applier.Run(running)
		}
		<-running.Done()
		if ctx.Err() != nil {
			fmt.Fprintf(a.Err, "%s: draining: running attempts get %s, and then 10s to return; a second interrupt or SIGTERM ends it at once\n", a.Name, a.serve.grace)
		}
		return nil
	})
	return g.Wait()
}

// attach links to the cluster to serve in, and remembers it; the place is nil unless the node has data of its own.
func (a *app) attach(ctx context.Context, log *slog.Logger) (*connect.Link, httpd.Place, error) {
	if a.serve.inFiles() {
		return a.openFiles()
	}
	if len(a.access.addresses.Etcd) == 0 && a.serve.join == "" {
		holds, err := infiles.Holds(a.access.dir)
		if err != nil {
			return nil, nil, err
		}
		if holds {
			return nil, nil, otherStore(a.access.dir, "files", "give --store files")
		}
	}
	at := &a.access.addresses
	at.New = a.serve.newCluster
	if !a.remembers() {
		return a.attachTo(ctx, log)
	}
	was, err := a.expectRemembered()
	if err != nil {
		return nil, nil, err
	}
	link, place, err := a.attachTo(ctx, log)
	if was != "" && (errors.Is(err, etcdstore.ErrOtherCluster) || errors.Is(err, etcdstore.ErrNoCluster)) {
		err = fmt.Errorf("%w; %s says that this node is of cluster %s: look whether etcd is the one that is meant and has its data, or restore it; "+
			"where the cluster was made anew on purpose, start once with --new-cluster", err, connect.RememberedIn(a.access.dir, at.Cluster), was)
	}
	if err != nil {
		return link, place, err
	}
	if is := link.Store.Cluster().ID; is != was {
		if err = connect.Remember(a.access.dir, at.Cluster, is); err != nil {
			err = errors.Join(err, link.Close())
		}
	}
	return link, place, err
}

// remembers reports whether the node keeps the id of its cluster in its data directory.
func (a *app) remembers() bool {
	return a.serve.join == "" && (len(a.access.addresses.Etcd) == 0 || a.access.flags().Changed("data"))
}

// expectRemembered expects the cluster of which this node was last, if it remembers one, and returns its id.
func (a *app) expectRemembered() (was string, err error) {
	at := &a.access.addresses
	if was, err = connect.Remembered(a.access.dir, at.Cluster); err != nil {
		return "", err
	}
	if at.New || was == "" {
		return was, nil
	}
	if at.ID != "" && at.ID != was {
		return "", &exitcode.UsageError{Problem: fmt.Sprintf("--expect-cluster %s: %s says that this node is of cluster %s: remove that file to let it go into another one",
			at.ID, connect.RememberedIn(a.access.dir, at.Cluster), was)}
	}
	at.ID = was
	return was, nil
}

// attachTo links to the cluster to serve in; the place is nil unless its servers run in this process.
func (a *app) attachTo(ctx context.Context, log *slog.Logger) (*connect.Link, httpd.Place, error) {
	at := &a.access.addresses
	at.Private = a.serve.builtins.runPrograms()
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
		link, err := a.link(ctx, connect.Stopped, func(ctx context.Context) (*connect.Link, error) { // it may start, too
			return connect.In(ctx, a.serve.join,
				connect.Addresses{Cluster: at.Cluster, ID: at.ID, New: at.New, Shards: a.serve.shards, Private: at.Private, Log: log})
		})
		if errors.Is(err, cluster.ErrNoNode) {
			err = fmt.Errorf("%w; start one with: %s", err, a.command(append([]string{"serve"}, a.access.given("data")...)...))
		}
		return link, nil, ofExec(err)
	}
	servers, err := embedded.StartServers(ctx, embedded.ServersConfig{Dir: a.access.dir, EtcdPort: a.serve.etcdPort,
		NATSPort: a.serve.natsPort, NATSConnections: a.serve.files.NATS, ID: at.ID, New: at.New, Log: log, GaveUp: a.gaveUp})
	if errors.Is(err, embedded.ErrDirInUse) {
		join := a.command("serve", "--join", a.access.dir, "--name", "b")
		err = fmt.Errorf("%w: a node runs there, and another one of its cluster is started by: %s", err, join)
	}
	if err != nil {
		return nil, nil, err
	}
	link, err := connect.On(ctx, servers, a.access.addresses.Cluster, a.serve.shards, log)
	return link, servers, err
}

// gaveUp ends the process when the etcd inside cannot go on. The panic that it ends with else has the exit code of
// wrong usage.
func (a *app) gaveUp(problem string) {
	fmt.Fprintf(a.Err, "%s: the etcd inside has given up: %s\n", a.Name, problem)
	a.flush()
	os.Exit(exitcode.Unavailable)
}

// ofExec names the flag that an etcd was refused for.
func ofExec(err error) error {
	if errors.Is(err, connection.ErrNotPrivate) {
		return &exitcode.UsageError{Problem: "--exec-allow would let others run programs: " + err.Error()}
	}
	return err
}

// chooseArchive settles what becomes of entries that snapshots cover, and says so where nobody has.
func (a *app) chooseArchive(ctx context.Context, link *connect.Link, cfg *engine.NodeConfig) error {
	why, err := archiving.Choose(ctx, a.serve.archive, link.Archive, cfg)
	if why != "" {
		fmt.Fprintf(a.Err, "%s: the journal is kept in etcd, and grows: %s (--archive keep or drop says so on purpose)\n", a.Name, why)
	}
	return err
}

// nodeName returns the name of a node that was made.
func (a *app) nodeName() string {
	if a.serve.name != "" {
		return a.serve.name
	}
	name, _ := os.Hostname() // which the engine has asked for, too
	return name
}

// greet says where the node listens and what to type next.
func (a *app) greet(link *connect.Link, at httpd.Place, watch *monitor.Monitor, web *httpd.Server) {
	name := a.nodeName()
	var b strings.Builder
	fmt.Fprintf(&b, "taskledger %s: node %q is ready, in a cluster of %d shards\n", version.Version, name, link.Store.Cluster().Shards)
	if a.serve.inFiles() {
		fmt.Fprintf(&b, "  files  %s\n", a.serve.durability)
	} else {
		fmt.Fprintf(&b, "  etcd  %s\n", strings.Join(link.Etcd, " "))
	}
	if len(link.NATS) > 0 {
		fmt.Fprintf(&b, "  nats  %s\n", strings.Join(link.NATS, " "))
	}
	if url := watch.URL(); url != "" {
		fmt.Fprintf(&b, "  metrics  %s\n", url)
	}
	if web != nil {
		for _, listens := range []struct{ what, url string }{
			{"api", web.URL()},
			{"dashboard", a.dashboard(web)},
			{"store", web.StoreURL()},
			{"sync", web.SyncURL()},
		} {
			if listens.url != "" {
				fmt.Fprintf(&b, "  %s  %s\n", listens.what, listens.url)
			}
		}
	}
	where := a.access.given("data")
	if at != nil {
		fmt.Fprintf(&b, "  data  %s\n", at.Dir())
	}
	fmt.Fprintf(&b, "\nTry, from another terminal:\n")
	fmt.Fprintf(&b, "  %s\n", a.command(append([]string{"submit", "sleep", `{"duration":"1s"}`, "--wait"}, where...)...))
	fmt.Fprintf(&b, "  %s\n", a.command(append([]string{"list"}, where...)...))
	if !a.serve.inFiles() { // which no second node may have
		fmt.Fprintf(&b, "  %s\n", a.secondNode(name))
	}
	fmt.Fprintln(&b)
	fmt.Fprint(a.Out, b.String())
}

// secondNode returns the command that starts another node beside the one of a name.
func (a *app) secondNode(name string) string {
	next := "b"
	if name == next {
		next = "c"
	}
	args := slices.Concat([]string{"serve"}, a.access.given("join"), a.serve.builtins.given(a.serve.flags()))
	return a.command(append(args, "--name", next)...)
}

// certificates are the files of certificates that the flags name.
func (a *app) certificates() []certificates.File {
	at := &a.access.addresses
	return []certificates.File{
		{Name: "api-cert", Path: a.serve.api.Cert},
		{Name: "etcd-ca", Path: at.EtcdTLS.CA, Authorities: true},
		{Name: "etcd-cert", Path: at.EtcdTLS.Cert},
		{Name: "nats-ca", Path: at.NATSTLS.CA, Authorities: true},
		{Name: "nats-cert", Path: at.NATSTLS.Cert},
	}
}

// secrets are the files and directories that nobody may read, or replace, through a task: the data of a node here, what
// gets it in, and the file of collections, which may hold secrets of programs and says what runs.
func (a *app) secrets() (all []string) {
	c := &a.access
	for _, name := range []string{c.dir, c.etcdPasswordFile, c.natsPasswordFile, c.addresses.EtcdTLS.Key, c.addresses.NATSTLS.Key,
		c.addresses.NATSCreds, c.addresses.NATSNKey, a.serve.api.Tokens, a.serve.api.Key, a.serve.builtins.sync, a.settings.viper.ConfigFileUsed()} {
		if path, err := filepath.Abs(name); err == nil && name != "" {
			all = append(all, path)
		}
	}
	return all
}

// dashboard returns where the dashboard is: on a terminal alone a link that logs its user in, since a log is read by
// others.
func (a *app) dashboard(web *httpd.Server) string {
	if a.terminal {
		if link := web.LoginLink(); link != "" {
			return link + " (for one login, within ten minutes)"
		}
	}
	return web.DashboardURL()
}
