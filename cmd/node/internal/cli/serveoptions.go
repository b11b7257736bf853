package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"taskledger/cmd/node/internal/archiving"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/httpd"
	"taskledger/cmd/node/internal/monitor"
	"taskledger/cmd/node/internal/openfiles"
	"taskledger/collections"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/natsbus"
	"taskledger/store"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	set                *pflag.FlagSet
	name, join         string
	newCluster         bool
	slots, shards      int
	limits             map[string]int
	owner              bool
	ttl, grace         time.Duration
	builtins           builtinOptions
	etcdPort, natsPort int
	logLevel           slog.Level
	logFormat          string
	archive            string
	metrics            string
	metricsInsecure    bool
	api                httpd.Options
	archiving          natsbus.ArchiveConfig
	logs               logOptions
	files              openfiles.Plan // made from the others
	fileOptions
}

// flags returns the same set each time.
func (o *serveOptions) flags() *pflag.FlagSet {
	if o.set != nil {
		return o.set
	}
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.StringVar(&o.name, "name", "",
		"name of the node, for people; its first 16 characters should tell it from others (default: the host's)")
	f.StringVar(&o.join, "join", "", "`directory` of a running node on this machine whose cluster to join, instead of serving data")
	f.IntVar(&o.slots, "slots", 512, "attempts that the node runs at once, up to 65536; 0 runs none")
	f.StringToIntVar(&o.limits, "concurrency", nil,
		"attempts at once of single behaviors, as `behavior=N,...`; 0 runs none (default: up to --slots)")
	f.Lookup("concurrency").DefValue = "" // the help would show brackets
	flags.Say(f, "concurrency", "behavior=N,... with whole numbers")
	f.BoolVar(&o.newCluster, "new-cluster", false, `create the cluster also where NATS holds the archive of another one of this name, or where this node
was of another one before; archiving begins when that stream is removed`)
	f.BoolVar(&o.owner, "owner", true, "let the node own shards; false: it only runs attempts")
	f.DurationVar(&o.ttl, "ttl", 10*time.Second,
		"time after which the other nodes notice the death of this one, 3s to 1m")
	f.DurationVar(&o.grace, "grace", 15*time.Second,
		`time that running attempts get when the node stops, 0 or more; the node has ended 13s later, or 22s
where requests hang`)
	f.IntVar(&o.shards, "shards", 0, "shards of a cluster that is created, a power of two to 256, fixed for ever (default 16)")
	o.fileOptions.flags(f)
	f.StringVar(&o.archive, "archive", "", `what becomes of entries that snapshots cover: jetstream archives them in NATS, files
in files of --data with --store files, keep keeps them in etcd or the journal in files, drop forgets them (default:
files with --store files, else jetstream as soon as NATS has it, until then keep)`)
	f.IntVar(&o.archiving.Replicas, "archive-replicas", 1, "copies of the archive that NATS keeps, 1 to 5, when its stream is made; with --nats")
	f.DurationVar(&o.archiving.DurableAfter, "archive-settle", 3*time.Minute, `time after which NATS has surely written what it acknowledged, before it is trimmed from
etcd; with --nats`)
	o.logs.flags(f)
	o.builtins.flags(f)
	f.IntVar(&o.etcdPort, "etcd-port", 0, `loopback port on which the etcd inside listens as well, open to every user of this machine;
not with --exec-allow (default: none)`)
	f.IntVar(&o.natsPort, "nats-port", 0, "loopback port of the NATS inside (default: that of the last start if it is free, else a free one)")
	f.StringVar(&o.metrics, "metrics", "", "`address`"+` and port on which /metrics, /healthz and /readyz are served; beyond loopback by the certificate of
--api-cert, and metrics to tokens of viewers alone (default: none)`)
	f.BoolVar(&o.metricsInsecure, "metrics-insecure", false, "let --metrics listen beyond loopback without a certificate: whoever reaches it reads everything there")
	o.api.Flags(f)
	flags.LevelVar(f, &o.logLevel, slog.LevelWarn)
	f.StringVar(&o.logFormat, "log-format", "text", "form of the log on standard error: text or json")
	o.set = f
	return f
}

// shareFiles plans who gets how many of the files that the process may open, and lowers the limits of behaviors to
// what fits.
func (o *serveOptions) shareFiles(inside bool, log *slog.Logger) error {
	limit, err := openfiles.Limit()
	if err != nil {
		return err
	}
	o.limits = o.allLimits()
	atOnce := func(behavior string) int {
		if n, limited := o.limits[behavior]; limited && n < o.slots {
			return max(n, 0)
		}
		return o.slots
	}
	w := openfiles.Wanted{Inside: inside, Slots: o.slots}
	runs := 0 // of collections
	if o.builtins.syncWorkers > 0 {
		runs = atOnce(collections.Behavior)
	}
	if o.builtins.runPrograms() {
		w.Exec = min(atOnce("exec")+runs, o.slots)
	}
	if o.files, err = openfiles.Share(limit, w); err != nil {
		return err
	}
	programs := o.files.Exec
	runs = min(runs, o.files.Others)
	if programs < w.Exec { // of tasks and of collections, each of which has a half if it wants that
		runs = min(runs, (programs+1)/2)
		programs = max(1, programs-runs)
	}
	share := map[string]int{"http": o.files.Others}
	if w.Exec > 0 {
		share["exec"] = programs
	}
	if o.builtins.syncWorkers > 0 {
		share[collections.Behavior] = runs
	}
	if o.builtins.checksumRoot != "" {
		share["checksum"] = o.files.Others
	}
	for behavior, fits := range share {
		if wanted := atOnce(behavior); fits < wanted {
			o.limits[behavior] = fits
			log.Warn("the limit of open files lowers how many attempts of a behavior are made at once", "behavior", behavior, "attempts", fits,
				"wanted", wanted, "open_files", limit)
		}
	}
	return nil
}

// allLimits returns the limits of behaviors, with that of collections.
func (o *serveOptions) allLimits() map[string]int {
	all := maps.Clone(o.limits)
	if all == nil {
		all = map[string]int{}
	}
	if _, has := all[collections.Behavior]; !has && o.builtins.syncWorkers > 0 {
		all[collections.Behavior] = o.builtins.syncWorkers
	}
	return all
}

// node makes the configuration of the node from the flags; Store and Bus are to be set.
func (o *serveOptions) node(secrets []string, log *slog.Logger) (engine.NodeConfig, error) {
	name := o.name
	if name == "" {
		name, _ = os.Hostname() // the engine, which wants it, says why it has none
	}
	offer, err := o.builtins.offer(name, secrets)
	if err != nil {
		return engine.NodeConfig{}, err
	}
	cfg := engine.NodeConfig{
		Behaviors: offer.behaviors,
		Questions: offer.questions,
		Name:      o.name,
		Slots:     o.slots,
		Limits:    o.allLimits(),
		Owner:     &o.owner,
		TTL:       o.ttl,
		Grace:     o.grace,
		Log:       log,
	}
	if o.slots == 0 {
		cfg.Slots = -1 // in the engine 0 is the default
	}
	if o.grace == 0 {
		cfg.Grace = -1
	}
	return cfg, nil
}

func (o *serveOptions) logger(to io.Writer) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: o.logLevel}
	switch o.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(to, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, options)), nil
	}
	return nil, &exitcode.UsageError{Problem: "--log-format: want text or json"}
}

// check refuses what no node can be started with.
func (o *serveOptions) check(c *access) error {
	nats := len(c.addresses.NATS) > 0
	wrong := func(format string, args ...any) error {
		return &exitcode.UsageError{Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case o.join != "" && len(c.addresses.Etcd) > 0:
		return wrong("--join and --etcd name two clusters: want one")
	case o.join != "" && c.flags().Changed("data"):
		return wrong("--data is what a node serves by itself, and with --join it serves what another one has: want one of the two")
	case o.newCluster && c.addresses.ID != "":
		return wrong("--new-cluster takes any cluster, and --expect-cluster one: want one of the two")
	case !archiving.Known(o.archive):
		return wrong("--archive %s: want jetstream, files, keep or drop", o.archive)
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
	case o.etcdPort != 0 && o.builtins.runPrograms():
		return wrong("--etcd-port opens etcd to every user of this machine, and with --exec-allow they would run programs: want one of the two")
	case strings.ContainsFunc(o.name, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }):
		return wrong("--name %q: want no blanks and no control characters", o.name)
	case len(o.name) > events.MaxNameBytes:
		return wrong("--name: %d bytes exceed the limit of %d", len(o.name), events.MaxNameBytes)
	}
	if problem := o.checkStore(c); problem != "" {
		return wrong("%s", problem)
	}
	if err := o.logs.check(o.set, nats); err != nil {
		return err
	}
	if err := o.checkPorts(len(c.addresses.Etcd) > 0); err != nil {
		return err
	}
	inside := o.join == "" && len(c.addresses.Etcd) == 0
	if problem := o.api.Check(inside); problem != "" {
		return wrong("%s", problem)
	}
	switch {
	case o.metrics != "":
		if err := monitor.Check(o.metrics, o.metricsInsecure, o.api.Cert != ""); err != nil {
			return wrong("--metrics %s: %v", o.metrics, err)
		}
	case o.metricsInsecure:
		return wrong("--metrics-insecure is of --metrics, which is not given")
	case len(o.api.Hosts) > 0 && !o.api.Has(inside):
		return wrong("--api-host is of the API and of --metrics, of which this node has neither")
	}
	if err := o.builtins.check(); err != nil {
		return err
	}
	if n, given := o.limits[collections.Behavior]; given {
		return wrong("--concurrency %s=%d: give --sync-workers %[2]d", collections.Behavior, n)
	}
	return o.checkNode()
}

// checkNode refuses what the engine would refuse once the cluster is open, which may have been created by then.
func (o *serveOptions) checkNode() error {
	cfg, err := o.node(nil, slog.New(slog.DiscardHandler))
	if err == nil && o.ttl == 0 {
		cfg.TTL = -1 // in the engine 0 is the default
	}
	if err == nil {
		err = cfg.Validate()
	}
	if invalid, is := errors.AsType[*store.InvalidError](err); is {
		flag := invalid.Field
		if flag == "limits" {
			flag = "concurrency"
		}
		return &exitcode.UsageError{Problem: fmt.Sprintf("--%s: %s", flag, invalid.Problem)}
	}
	return err
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
			return &exitcode.UsageError{Problem: fmt.Sprintf("%s %d: want 0 to %d", port.flag, port.number, math.MaxUint16)}
		case port.number != 0 && o.join != "":
			return &exitcode.UsageError{Problem: fmt.Sprintf(inside, port.flag, "--join")}
		case port.number != 0 && elsewhere:
			return &exitcode.UsageError{Problem: fmt.Sprintf(inside, port.flag, "--etcd")}
		}
	}
	return nil
}
