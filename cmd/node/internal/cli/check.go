package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/pflag"

	"taskledger/events"
	"taskledger/natsbus"
	"taskledger/store"
)

// notEmpty refuses a flag that was given without a value, as by "$ID" of a variable that is not set: what would be done by
// default is not what its user means. Lists refuse that themselves.
func notEmpty(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if err == nil && f.Changed && f.Value.String() == "" {
			err = &usageError{fmt.Sprintf("--%s is empty: leave it out for the default", f.Name)}
		}
	})
	return err
}

// list is a flag that may be given again and again, each time with items that are not empty.
type list struct {
	pflag.Value
	pflag.SliceValue
}

func listVar(f *pflag.FlagSet, to *[]string, name, usage string) {
	f.StringSliceVar(to, name, nil, usage)
	flag := f.Lookup(name)
	flag.DefValue = "" // the help would show brackets
	flag.Value = list{flag.Value, flag.Value.(pflag.SliceValue)}
}

func (l list) Set(text string) error {
	before := len(l.GetSlice())
	if err := l.Value.Set(text); err != nil {
		return err
	}
	if added := l.GetSlice()[before:]; len(added) == 0 || slices.Contains(added, "") {
		return errors.New("it is empty, or an item of it is: leave it out for the default")
	}
	return nil
}

// clusterName is what etcdstore and natsbus take.
var clusterName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// check refuses what no cluster can be reached with, and what would be left out without a word.
func (c *access) check() error {
	switch {
	case c.timeout < 0:
		return &usageError{fmt.Sprintf("--timeout %s: want more than 0", c.timeout)}
	case c.addresses.Cluster != "" && !clusterName.MatchString(c.addresses.Cluster):
		return &usageError{fmt.Sprintf("--cluster %q: want 1 to 64 of [a-z0-9-]", c.addresses.Cluster)}
	case len(c.addresses.Etcd) == 0 && len(c.addresses.NATS) > 0:
		return &usageError{"--nats needs --etcd"}
	}
	return errors.Join(c.needs("etcd", c.addresses.Etcd), c.needs("nats", c.addresses.NATS))
}

// needs refuses flags that say how to get into servers when these are not named.
func (c *access) needs(servers string, named []string) (err error) {
	c.flags().VisitAll(func(f *pflag.Flag) {
		if err == nil && f.Changed && len(named) == 0 && strings.HasPrefix(f.Name, servers+"-") {
			err = &usageError{fmt.Sprintf("--%s needs --%s", f.Name, servers)}
		}
	})
	return err
}

// check refuses what no node can be started with.
func (o *serveOptions) check(c *access) error {
	nats := len(c.addresses.NATS) > 0
	wrong := func(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }
	switch {
	case o.join != "" && len(c.addresses.Etcd) > 0:
		return wrong("--join and --etcd name two clusters: want one")
	case o.join != "" && c.flags().Changed("data"):
		return wrong("--data is what a node serves by itself, and with --join it serves what another one has: want one of the two")
	case !slices.Contains([]string{"", archiveJetStream, archiveKeep, archiveDrop}, o.archive):
		return wrong("--archive %s: want jetstream, keep or drop", o.archive)
	case o.archiving.Replicas < 1 || o.archiving.Replicas > natsbus.MaxReplicas:
		return wrong("--archive-replicas: %d, want 1 to %d", o.archiving.Replicas, natsbus.MaxReplicas)
	case !nats && o.set.Lookup("archive-replicas").Changed:
		return wrong("--archive-replicas needs --nats: the NATS inside keeps one copy")
	case !nats && o.set.Lookup("archive-settle").Changed:
		return wrong("--archive-settle needs --nats: the NATS inside writes before it acknowledges")
	case o.archiving.DurableAfter < 0:
		return wrong("--archive-settle %s: want 0 or more", o.archiving.DurableAfter)
	case o.slots < 0:
		return wrong("--slots %d: want 0 to 65536", o.slots)
	case o.grace < 0:
		return wrong("--grace %s: want 0 or more", o.grace)
	case o.shards != 0 && (o.shards < 1 || o.shards > 256 || o.shards&(o.shards-1) != 0), o.shards == 0 && o.set.Lookup("shards").Changed:
		return wrong("--shards %d: want a power of two from 1 to 256", o.shards)
	case o.etcdPort != 0 && len(o.execAllow) > 0:
		return wrong("--etcd-port opens etcd to every user of this machine, and with --exec-allow they would run programs: want one of the two")
	case strings.ContainsFunc(o.name, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
		return wrong("--name %q: want no blanks and no control characters", o.name)
	case len(o.name) > events.MaxNameBytes:
		return wrong("--name: %d bytes exceed the limit of %d", len(o.name), events.MaxNameBytes)
	}
	if err := o.checkPorts(len(c.addresses.Etcd) > 0); err != nil {
		return err
	}
	for _, program := range o.execAllow {
		if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
			return wrong("--exec-allow %s: want a name or an absolute path", program)
		}
		if _, err := exec.LookPath(program); err != nil {
			return wrong("--exec-allow %s: %v", program, err)
		}
	}
	if info, err := os.Stat(o.checksumRoot); err != nil {
		return wrong("--checksum-root: %v", err)
	} else if !info.IsDir() {
		return wrong("--checksum-root %s: want a directory", o.checksumRoot)
	}
	return nil
}

// checkPorts refuses what are no ports, and ports of servers that a node does not have.
func (o *serveOptions) checkPorts(elsewhere bool) error {
	for _, port := range []struct {
		flag   string
		number int
	}{{"--etcd-port", o.etcdPort}, {"--nats-port", o.natsPort}} {
		const inside = "%s is of servers inside, and with %s this node has none: want one of the two"
		switch {
		case port.number < 0 || port.number > math.MaxUint16:
			return &usageError{fmt.Sprintf("%s %d: want 0 to %d", port.flag, port.number, math.MaxUint16)}
		case port.number != 0 && o.join != "":
			return &usageError{fmt.Sprintf(inside, port.flag, "--join")}
		case port.number != 0 && elsewhere:
			return &usageError{fmt.Sprintf(inside, port.flag, "--etcd")}
		}
	}
	return nil
}

// check refuses what no submit can mean.
func (o *submitOptions) check() error {
	switch {
	case o.delay < 0:
		return &usageError{fmt.Sprintf("--delay %s: want 0 or more", o.delay)}
	case o.priority < 0 || o.priority > events.MaxPriority:
		return &usageError{fmt.Sprintf("--priority %d: want 0 to %d", o.priority, int64(events.MaxPriority))}
	case o.requestID != "" && o.id == "":
		return &usageError{"--request-id needs --id: it counts together with the id only"}
	}
	return nil
}

// runs reports whether any of the nodes has the code of a behavior.
func runs(nodes []store.NodeInfo, behavior string) bool {
	return slices.ContainsFunc(nodes, func(n store.NodeInfo) bool { return slices.Contains(n.Behaviors, behavior) })
}
