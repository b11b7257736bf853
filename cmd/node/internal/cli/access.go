package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"taskledger/cmd/node/internal/connect"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/store"
)

const (
	defaultDir = "./taskledger-data"
	// answerWithin bounds the wait for an answer of the cluster when --timeout does not say: longer than it takes, with
	// the usual --ttl, until another node serves the shards of one that has died.
	answerWithin = 30 * time.Second
)

// access says where the cluster is and how to get in.
type access struct {
	set     *pflag.FlagSet
	dir     string
	timeout time.Duration
	await   bool // a node, where none is alive

	logLevel         slog.Level // --log-level of the commands that ask a cluster
	addresses        connect.Addresses
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
	flags.ListVar(f, &at.Etcd, "etcd", "endpoints of etcd, as `host:port,...`, instead of --data")
	flags.ListVar(f, &at.NATS, "nats", "`URLs` of NATS, beside --etcd; without it everything goes by way of etcd")
	f.StringVar(&at.Cluster, "cluster", "", "`name` of the cluster in etcd and NATS, which can hold several (default taskledger)")
	f.StringVar(&at.ID, "expect-cluster", "",
		"`id` that the cluster must have, as checkpoints tell it: refuse another one, and create none")
	f.StringVar(&at.EtcdTLS.CA, "etcd-ca", "", "PEM `file` of the authorities that etcd's certificate is checked against")
	f.StringVar(&at.EtcdTLS.Cert, "etcd-cert", "", "PEM `file` of the certificate to show to etcd")
	f.StringVar(&at.EtcdTLS.Key, "etcd-key", "", "PEM `file` of the key of --etcd-cert")
	f.StringVar(&at.EtcdUser, "etcd-user", "", "user of etcd; the password is TASKLEDGER_ETCD_PASSWORD")
	f.StringVar(&c.etcdPasswordFile, "etcd-password-file", "",
		"`file` that holds the password of --etcd-user, instead of TASKLEDGER_ETCD_PASSWORD")
	f.StringVar(&at.NATSTLS.CA, "nats-ca", "", "PEM `file` of the authorities that the certificate of NATS is checked against")
	f.StringVar(&at.NATSTLS.Cert, "nats-cert", "", "PEM `file` of the certificate to show to NATS")
	f.StringVar(&at.NATSTLS.Key, "nats-key", "", "PEM `file` of the key of --nats-cert")
	f.StringVar(&at.NATSCreds, "nats-creds", "", "credentials `file` of NATS")
	f.StringVar(&at.NATSNKey, "nats-nkey", "", "`file` that holds the seed of an nkey of NATS")
	f.StringVar(&at.NATSUser, "nats-user", "", "user of NATS; the password is TASKLEDGER_NATS_PASSWORD")
	f.StringVar(&c.natsPasswordFile, "nats-password-file", "",
		"`file` that holds the password of --nats-user, instead of TASKLEDGER_NATS_PASSWORD")
	f.DurationVar(&c.timeout, "timeout", 0,
		`longest time for the whole command (default 30s; none where it waits for outcomes, reads whole
journals or takes --filter); shards of a node that has died are served again after its --ttl and a second`)
	f.BoolVar(&c.await, "await-node", false,
		`while no node is alive, wait for one as long as --timeout allows; without it a command ends at once,
with --etcd after 3s`)
	f.VisitAll(mark)
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
		case "timeout", "await-node", "data":
			return
		case "etcd":
			value = strings.Join(c.addresses.Etcd, ",")
		case "nats":
			value = strings.Join(connect.Bare(c.addresses.NATS), ",")
		}
		if f.Changed {
			args = append(args, "--"+f.Name, value)
		}
	})
	return args
}

// open links to the cluster that is meant; existing refuses to create it.
func (c *access) open(ctx context.Context, log *slog.Logger, existing bool) (*connect.Link, error) {
	if len(c.addresses.Etcd) == 0 {
		return connect.In(ctx, c.dir, connect.Addresses{Cluster: c.addresses.Cluster, ID: c.addresses.ID, Existing: existing, Log: log})
	}
	at, err := c.named()
	if err != nil {
		return nil, err
	}
	at.Log, at.Existing = log, existing
	return connect.At(ctx, at)
}

// ask links a command that only reads to its cluster; where the store is in files, through the API of the node.
func (c *access) ask(ctx context.Context, log *slog.Logger) (*connect.Link, error) {
	if len(c.addresses.Etcd) == 0 {
		if link, err := connect.ToFiles(ctx, c.dir, c.addresses); link != nil || err != nil {
			return link, err
		}
	}
	return c.open(ctx, log, true)
}

// named are the addresses that the flags name, with the passwords.
func (c *access) named() (at connect.Addresses, err error) {
	at = c.addresses
	if at.EtcdPassword, err = secret("TASKLEDGER_ETCD_PASSWORD", c.etcdPasswordFile); err != nil {
		return at, err
	}
	at.NATSPassword, err = secret("TASKLEDGER_NATS_PASSWORD", c.natsPasswordFile)
	return at, err
}

// secret returns what the file holds, if one is named, else the variable.
func secret(variable, file string) (string, error) {
	if file == "" {
		return os.Getenv(variable), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", &store.InvalidError{Field: "read password", Problem: err.Error()}
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// clusterName matches the names that etcdstore and natsbus accept.
var clusterName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// check refuses flags with which no cluster can be reached, and flags that would be ignored.
func (c *access) check() error {
	switch {
	case c.timeout < 0 || c.timeout == 0 && c.flags().Changed("timeout"):
		return &exitcode.UsageError{Problem: fmt.Sprintf("--timeout %s: want more than 0", c.timeout)}
	case c.addresses.Cluster != "" && !clusterName.MatchString(c.addresses.Cluster):
		return &exitcode.UsageError{Problem: fmt.Sprintf("--cluster %q: want 1 to 64 of [a-z0-9-]", c.addresses.Cluster)}
	case len(c.addresses.Etcd) == 0 && len(c.addresses.NATS) > 0:
		return &exitcode.UsageError{Problem: "--nats needs --etcd"}
	}
	return errors.Join(c.needs("etcd", c.addresses.Etcd), c.needs("nats", c.addresses.NATS))
}

// needs refuses flags that say how to get into servers when these are not named.
func (c *access) needs(servers string, named []string) (err error) {
	c.flags().VisitAll(func(f *pflag.Flag) {
		if err == nil && f.Changed && len(named) == 0 && strings.HasPrefix(f.Name, servers+"-") {
			err = &exitcode.UsageError{Problem: fmt.Sprintf("--%s needs --%s", f.Name, servers)}
		}
	})
	return err
}
