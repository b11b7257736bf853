package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	library "taskledger/cluster"
	"taskledger/cmd/node/internal/cluster"
	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
)

const (
	defaultDir = "./taskledger-data"
	// answerWithin is how long the cluster may take to answer when --timeout does not say: longer than it takes, with the
	// usual --ttl, until another node serves the shards of one that has died.
	answerWithin = 30 * time.Second
)

// access says where the cluster is and how to get in.
type access struct {
	set     *pflag.FlagSet
	dir     string
	timeout time.Duration

	logLevel         slog.Level // --log-level of the commands that ask a cluster
	addresses        cluster.Addresses
	etcdPasswordFile string
	natsPasswordFile string
}

// flags returns the same set each time.
func (c *access) flags() *pflag.FlagSet {
	if c.set != nil {
		return c.set
	}
	f := pflag.NewFlagSet("access", pflag.ContinueOnError)
	at := &c.addresses
	f.StringVar(&c.dir, "data", defaultDir, "directory of the node to ask, or of the data to serve")
	listVar(f, &at.Etcd, "etcd", "endpoints of etcd `host:port,...`, instead of --data")
	listVar(f, &at.NATS, "nats", "`URLs` of NATS, beside --etcd; without it everything goes by way of etcd")
	f.StringVar(&at.Cluster, "cluster", "", "`name` of the cluster in etcd and NATS, which can hold several (default taskledger)")
	f.StringVar(&at.EtcdTLS.CA, "etcd-ca", "", "PEM `file` of the authorities that etcd's certificate is checked against")
	f.StringVar(&at.EtcdTLS.Cert, "etcd-cert", "", "PEM `file` of the certificate to show to etcd")
	f.StringVar(&at.EtcdTLS.Key, "etcd-key", "", "PEM `file` of its key")
	f.StringVar(&at.EtcdUser, "etcd-user", "", "user of etcd; the password is TASKLEDGER_ETCD_PASSWORD")
	f.StringVar(&c.etcdPasswordFile, "etcd-password-file", "", "`file` that holds the password instead")
	f.StringVar(&at.NATSTLS.CA, "nats-ca", "", "PEM `file` of the authorities that the certificate of NATS is checked against")
	f.StringVar(&at.NATSTLS.Cert, "nats-cert", "", "PEM `file` of the certificate to show to NATS")
	f.StringVar(&at.NATSTLS.Key, "nats-key", "", "PEM `file` of its key")
	f.StringVar(&at.NATSCreds, "nats-creds", "", "credentials `file` of NATS")
	f.StringVar(&at.NATSNKey, "nats-nkey", "", "`file` that holds the seed of an nkey of NATS")
	f.StringVar(&at.NATSUser, "nats-user", "", "user of NATS; the password is TASKLEDGER_NATS_PASSWORD")
	f.StringVar(&c.natsPasswordFile, "nats-password-file", "", "`file` that holds the password instead")
	f.DurationVar(&c.timeout, "timeout", 0, `longest time for the whole command (default 30s, and none where it waits for an outcome); shards of
a node that has died are served again after its --ttl and a second`)
	c.set = f
	return f
}

// given returns the flags that a further command needs to reach the same cluster, without passwords. It names the
// directory, if there is one, in the flag dir: data or join.
func (c *access) given(dir string) (args []string) {
	if len(c.addresses.Etcd) == 0 && (dir == "join" || c.dir != defaultDir) {
		args = append(args, "--"+dir, c.dir)
	}
	c.set.VisitAll(func(f *pflag.Flag) {
		value := f.Value.String()
		switch f.Name {
		case "timeout", "data":
			return
		case "etcd":
			value = strings.Join(c.addresses.Etcd, ",")
		case "nats":
			value = strings.Join(cluster.Bare(c.addresses.NATS), ",")
		}
		if f.Changed {
			args = append(args, "--"+f.Name, value)
		}
	})
	return args
}

// open links to the cluster that is meant; existing refuses to create it.
func (c *access) open(ctx context.Context, log *slog.Logger, existing bool) (*cluster.Link, error) {
	if len(c.addresses.Etcd) == 0 {
		return cluster.In(ctx, c.dir, cluster.Addresses{Cluster: c.addresses.Cluster, Existing: existing, Log: log})
	}
	at := c.addresses
	at.Log, at.Existing = log, existing
	var err error
	if at.EtcdPassword, err = secret("TASKLEDGER_ETCD_PASSWORD", c.etcdPasswordFile); err != nil {
		return nil, err
	}
	if at.NATSPassword, err = secret("TASKLEDGER_NATS_PASSWORD", c.natsPasswordFile); err != nil {
		return nil, err
	}
	return cluster.At(ctx, at)
}

// secrets are the files and directories that nobody may read through a task: the data of a node here, and what gets it in.
func (a *app) secrets() (all []string) {
	c := &a.access
	for _, name := range []string{c.dir, c.etcdPasswordFile, c.natsPasswordFile, c.addresses.EtcdTLS.Key, c.addresses.NATSTLS.Key,
		c.addresses.NATSCreds, c.addresses.NATSNKey, a.settings.viper.ConfigFileUsed()} {
		if path, err := filepath.Abs(name); err == nil && name != "" {
			all = append(all, path)
		}
	}
	return all
}

// secret returns what the file holds, if one is named, else the variable.
func secret(variable, file string) (string, error) {
	if file == "" {
		return os.Getenv(variable), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", &engine.InvalidError{Field: "read password", Problem: err.Error()}
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// clientCommand makes a command that asks a cluster. waits says that it may take as long as a task does.
func (a *app) clientCommand(c *cobra.Command, waits func() bool, run func(ctx context.Context, c Client, args []string) error) *cobra.Command {
	c.Flags().AddFlagSet(a.access.flags())
	c.Flags().TextVar(&a.access.logLevel, "log-level", slog.LevelError, "least `level` to log on standard error: debug, info, warn or error")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		limit, over := a.access.timeout, errNoOutcome
		if !waits() {
			limit, over = cmp.Or(limit, answerWithin), errTimeout
		}
		ctx := cmd.Context()
		if limit > 0 {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeoutCause(ctx, limit, over)
			defer stop()
		}
		return a.withRemedy(a.withClient(ctx, func(c Client) error { return run(ctx, c, args) }))
	}
	return c
}

// withRemedy adds to damage that a command has met itself what to do about it. Who is told of it by the owner of the shard is told that,
// too.
func (a *app) withRemedy(err error) error {
	if !errors.Is(err, events.ErrDamaged) {
		return err
	}
	given := a.access.given("data")
	return fmt.Errorf("%w; remedy: %s tells it of a shard that is quarantined; else restore from a backup what %s names", err,
		a.command(append([]string{"shards"}, given...)...), a.command(append([]string{"verify"}, given...)...))
}

func never() bool  { return false }
func always() bool { return true }

// errTimeout is the cause of an end by --timeout.
var errTimeout = errors.New("no answer within --timeout")

// errNoOutcome is the same where an outcome is waited for, which may simply take longer.
var errNoOutcome = errors.New("no outcome within --timeout")

// withClient runs fn with a client that leaves nothing behind.
func (a *app) withClient(ctx context.Context, fn func(Client) error) (err error) {
	log := slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: min(a.access.logLevel, slog.LevelWarn)}))
	link, err := a.access.open(ctx, log, true)
	if errors.Is(err, library.ErrNoNode) {
		dir := "data"
		if errors.Is(err, etcdstore.ErrNoCluster) { // a node of another one runs there
			dir = "join"
		}
		return fmt.Errorf("%w; start one with: %s", err, a.command(append([]string{"serve"}, a.access.given(dir)...)...))
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	client, err := engine.NewClient(engine.ClientConfig{Store: link.Store, Bus: link.Bus, Archive: link.Archive, Name: principal(),
		Log: slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: a.access.logLevel}))})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- client.Run(run) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	return fn(direct{client})
}

var discard = slog.New(slog.DiscardHandler)

// principal is whom the ledger names as the one who asked.
func principal() string {
	name := "cli"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name[:min(len(name), 256)]
}
