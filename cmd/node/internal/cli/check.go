package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"taskledger/cmd/node/internal/archiving"
	"taskledger/cmd/node/internal/connect"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/httpd"
)

func (a *app) checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check",
		Short: "Connect to everything that a configuration names, and say what it may do there",
		Long: `Check takes the flags, variables and file of settings of serve, and starts nothing. It reads the files
of certificates and tokens, listens for a moment where the node is to, and asks each member of etcd and each server of
NATS, as a node would, for what a node needs there, or the node that --join names; with --store files it reads the
files of --data. Nothing is changed. A line tells of each what works, or what does not. Exit code 1 means that
something does not work, and 2 wrong usage, or that nothing is named that can be checked.`,
		Args: flags.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.check(cmd.Context()) },
	}
	a.addServeFlags(c)
	return c
}

// check prints what it finds of each thing, and returns an error that names those which do not work.
func (a *app) check(ctx context.Context) error {
	if err := a.serve.check(&a.access); err != nil {
		return err
	}
	if err := a.sync.read(ctx, a.serve.builtins.sync); err != nil {
		return err
	}
	all := append(a.checkFiles(), a.checkListening()...)
	if len(a.access.addresses.Etcd) > 0 {
		a.access.addresses.New = a.serve.newCluster
		if a.remembers() {
			if _, err := a.expectRemembered(); err != nil {
				return err
			}
		}
		at, err := a.access.named()
		if err != nil {
			return err
		}
		at.Log = slog.New(slog.DiscardHandler) // what goes wrong is in the lines
		at.Shards = a.serve.shards
		at.Private = a.serve.builtins.runPrograms()
		all = append(all, connect.Check(ctx, at, a.serve.needsJetStream())...)
	}
	if a.serve.inFiles() {
		says, err := a.checkFilesOfStore()
		all = append(all, connect.Found("data "+a.access.dir, says, err))
	}
	if a.serve.join != "" {
		all = append(all, connect.CheckIn(ctx, a.serve.join, connect.Addresses{
			Cluster: a.access.addresses.Cluster,
			Shards:  a.serve.shards,
			ID:      a.access.addresses.ID,
			Private: a.serve.builtins.runPrograms(),
			Log:     slog.New(slog.DiscardHandler),
		}))
	}
	if len(all) == 0 {
		return &exitcode.UsageError{Problem: "nothing is named that can be checked: name what serve is to use, " +
			"such as --etcd and --nats, --join, --api and --metrics, or files of certificates and tokens"}
	}
	p := a.print("WHAT", "WORKS", "SAYS")
	failed := ""
	for _, f := range all {
		if f.Problem != "" {
			failed += "; " + f.What
		}
		if err := p.Row(f, f.What, f.Problem == "", f.Says+f.Problem); err != nil {
			return err
		}
	}
	if err := p.Flush(); err != nil {
		return err
	}
	if failed != "" {
		return fmt.Errorf("does not work: %s", failed[len("; "):])
	}
	return nil
}

// needsJetStream grades JetStream by --archive.
func (o *serveOptions) needsJetStream() connect.Need {
	switch o.archive {
	case archiving.JetStream:
		return connect.Needed
	case "":
		return connect.Useful
	}
	return connect.Unneeded
}

// checkFiles looks at the files that the flags name.
func (a *app) checkFiles() (all []connect.Finding) {
	for _, f := range a.certificates() {
		if f.Path == "" {
			continue
		}
		until, err := f.Until()
		if left := time.Until(until); err == nil && left < 0 {
			err = fmt.Errorf("%s: it has expired, at %s", f.Path, until.Format(time.RFC3339))
		}
		all = append(all, connect.Found(f.Name, fmt.Sprintf("%d days left", int(time.Until(until).Hours()/24)), err))
	}
	o := &a.serve.api
	if o.Cert != "" {
		all = append(all, connect.Found("api-key", "it fits the certificate", httpd.CheckPair(o.Cert, o.Key)))
	}
	if o.Tokens != "" {
		n, err := httpd.CheckTokens(o.Tokens)
		all = append(all, connect.Found("api-tokens", fmt.Sprintf("%d tokens", n), err))
	}
	return all
}

// checkListening listens for a moment wherever the node is to listen, and shares out the files that the process may
// open.
func (a *app) checkListening() (all []connect.Finding) {
	inside := len(a.access.addresses.Etcd) == 0 && a.serve.join == "" // or in files, which take no more open files
	if err := a.serve.shareFiles(inside, slog.New(slog.DiscardHandler)); err != nil {
		all = append(all, connect.Found("open files", "", err))
	}
	loopback := func(port int) string {
		if port == 0 {
			return ""
		}
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	for _, at := range []struct{ what, address string }{
		{"api", a.serve.api.Address},
		{"store-listen", a.serve.api.Store.Address},
		{"sync-listen", a.serve.api.Sync},
		{"metrics", a.serve.metrics},
		{"etcd-port", loopback(a.serve.etcdPort)},
		{"nats-port", loopback(a.serve.natsPort)},
	} {
		if at.address == "" || at.what == "api" && !a.serve.api.Has(inside) {
			continue
		}
		l, err := net.Listen("tcp", at.address)
		if err == nil {
			defer func() { _ = l.Close() }() // not before the others: two flags may name one port
		}
		all = append(all, connect.Found(at.what, "may listen at "+at.address, err))
	}
	return all
}
