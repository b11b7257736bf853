package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"taskledger/cmd/node/internal/connect"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/engine"
	"taskledger/natsbus"
)

// What an operator may choose of the logs of tasks; "" leaves it to the node.
const (
	logsInJetStream = "jetstream"
	logsInFiles     = "files"
	noLogs          = "none"
)

// logOptions are the flags of serve for the logs of tasks.
type logOptions struct {
	where string
	natsbus.LogsConfig
}

func (o *logOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.where, "logs", "", `what becomes of what tasks write and log: jetstream keeps it in NATS, files in files of --data
with --store files, none forgets it (default: files with --store files, else jetstream where there is NATS)`)
	f.Int64Var(&o.MaxBytes, "log-bytes", natsbus.DefaultLogBytes,
		`bytes of the logs of all tasks, 1048576 or more, beyond which the oldest lines go; NATS sets them aside on
disk, --store files does not`)
	f.DurationVar(&o.MaxAge, "log-age", natsbus.DefaultLogAge,
		"time after which lines of the logs of tasks go, 1s or more")
	f.IntVar(&o.Replicas, "log-replicas", 1, "copies of the logs of tasks that NATS keeps, 1 to 5; with --nats")
}

// check refuses what no node can be started with. nats tells whether NATS is elsewhere.
func (o *logOptions) check(set *pflag.FlagSet, nats bool) error {
	changed := func(name string) bool { return set.Lookup(name).Changed }
	problem := ""
	switch {
	case !slices.Contains([]string{"", logsInJetStream, logsInFiles, noLogs}, o.where):
		problem = fmt.Sprintf("--logs %s: want jetstream, files or none", o.where)
	case o.where == noLogs && (changed("log-bytes") || changed("log-age") || changed("log-replicas")):
		problem = "--log-bytes, --log-age and --log-replicas are of the logs of tasks, which --logs none does without"
	case o.MaxBytes < natsbus.MinLogBytes:
		problem = fmt.Sprintf("--log-bytes %d: want %d or more", o.MaxBytes, natsbus.MinLogBytes)
	case o.MaxAge < natsbus.MinLogAge:
		problem = fmt.Sprintf("--log-age %s: want %s or more", o.MaxAge, natsbus.MinLogAge)
	case o.Replicas < 1 || o.Replicas > natsbus.MaxReplicas:
		problem = fmt.Sprintf("--log-replicas %d: want 1 to %d", o.Replicas, natsbus.MaxReplicas)
	case !nats && changed("log-replicas"):
		problem = "--log-replicas needs --nats: the NATS inside keeps one copy"
	}
	if problem != "" {
		return &exitcode.UsageError{Problem: problem}
	}
	return nil
}

// choose sets the logs of a node whose store is in etcd. Nothing is asked of NATS: JetStream may be about to start.
func (o *logOptions) choose(link *connect.Link, cfg *engine.NodeConfig) error {
	if o.where == noLogs {
		return nil
	}
	bus, has := link.Bus.(*natsbus.Bus)
	if !has {
		if o.where == logsInJetStream {
			return &exitcode.UsageError{Problem: "--logs jetstream: there is no NATS"}
		}
		return nil
	}
	of := o.LogsConfig
	of.Cluster = link.Store.Cluster().ID
	logs, err := bus.Logs(of)
	if err != nil {
		return err
	}
	cfg.Logs = logs
	return nil
}
