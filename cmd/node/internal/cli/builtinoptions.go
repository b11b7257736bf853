package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/collections"
	"taskledger/collections/drivers"
	"taskledger/engine"
	"taskledger/task"
)

const (
	defaultSyncWorkers = 16
	maxSyncWorkers     = 65_536
)

// builtinOptions are the flags of serve that allow tasks of built-in behaviors to run and to read something.
type builtinOptions struct {
	execAllow, execEnv []string
	httpAllowPrivate   bool
	checksumRoot       string
	syncRoot           string
	syncWorkers        int
	sync               string                           // the file of collections
	hold               func(group int) (release func()) // sees to it that programs end with the node
}

func (o *builtinOptions) flags(f *pflag.FlagSet) {
	flags.ListVar(f, &o.execAllow, "exec-allow", "`programs`"+` that tasks of behavior exec may run: a name or an absolute path, whose arguments are the submitter's, so
that any program which reads files or starts others hands this user to every submitter; or "name=/path arg {}", with fixed
arguments, and the submitter's in place of {}; not where others can write etcd: with --etcd give --etcd-cert or --etcd-user,
or a socket in a directory of yours (default: none)`)
	flags.ListVar(f, &o.execEnv, "exec-env", "`names` of variables that tasks of behavior exec may set, beside LANG, LC_ALL and TZ")
	f.BoolVar(&o.httpAllowPrivate, "http-allow-private", false, "let tasks of behavior http reach addresses that are not public")
	f.StringVar(&o.checksumRoot, "checksum-root", "", "`directory`"+` that tasks of behavior checksum may read, but for the node's own data and secrets: whoever
may submit learns size and SHA-256 of every file there; collections may fetch what is here (default: none)`)
	f.StringVar(&o.syncRoot, "sync-root", "", "`directory`"+` to which collections are fetched, but for the node's own data and secrets; nodes that run one
collection need one directory that they share (default: none)`)
	f.StringVar(&o.sync, "sync", "", "`file`"+` of collections that is applied at start, unless it was applied before, and at SIGHUP, which then ends
no node: see sync apply (default: none)`)
	f.IntVar(&o.syncWorkers, "sync-workers", defaultSyncWorkers,
		"runs of collections that the node makes at once; 0 makes none")
}

// alike lists the flags of what all nodes should do alike.
var alike = []string{
	"exec-allow", "exec-env", "http-allow-private", "checksum-root", "sync", "sync-root", "sync-workers",
	"logs", "log-bytes", "log-age", "log-replicas",
}

// given returns those of the flags that were given, which all nodes should have alike.
func (o *builtinOptions) given(f *pflag.FlagSet) (args []string) {
	for _, name := range alike {
		if flag := f.Lookup(name); flag.Changed {
			args = append(args, "--"+name+"="+strings.TrimSuffix(strings.TrimPrefix(flag.Value.String(), "["), "]"))
		}
	}
	return args
}

// runPrograms reports whether tasks may run any program.
func (o *builtinOptions) runPrograms() bool { return len(o.execAllow) > 0 }

// offer holds what a node does for others, by its flags.
type offer struct {
	behaviors []task.Behavior
	questions map[string]engine.Question
}

// offer returns the built-in behaviors, and that of collections, which read and write none of the secrets, with the
// answers about what the node has.
func (o *builtinOptions) offer(node string, secrets []string) (offer, error) {
	checksumRoot, err := absolute("checksum-root", o.checksumRoot)
	if err != nil {
		return offer{}, err
	}
	syncRoot, err := absolute("sync-root", o.syncRoot)
	if err != nil {
		return offer{}, err
	}
	of := builtin.Options{
		Exec:     builtin.ExecOptions{Allow: o.execAllow, Env: o.execEnv, Hold: o.hold},
		HTTP:     builtin.HTTPOptions{AllowPrivate: o.httpAllowPrivate},
		Checksum: builtin.ChecksumOptions{Root: checksumRoot, Exclude: secrets},
	}
	all := offer{behaviors: builtin.Behaviors(of)}
	if o.syncWorkers > 0 {
		has := drivers.Options{
			Node:  node,
			Exec:  of.Exec,
			HTTP:  of.HTTP,
			Files: of.Checksum,
			Root:  syncRoot,
		}
		all.behaviors = append(all.behaviors, drivers.Behavior(has))
		all.questions = map[string]engine.Question{collections.Question: drivers.Answer(has)}
	}
	return all, nil
}

// absolute returns the path of a directory that a flag names, "" for none.
func absolute(flag, dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("--%s: %w", flag, err)
	}
	return at, nil
}

// check refuses what tasks cannot be allowed to run and to read.
func (o *builtinOptions) check() error {
	wrong := func(format string, args ...any) error {
		return &exitcode.UsageError{Problem: fmt.Sprintf(format, args...)}
	}
	allowed := map[string]bool{}
	for _, entry := range o.execAllow {
		if err := builtin.CheckAllow(entry); err != nil {
			return wrong("--exec-allow %s: %v", entry, err)
		}
		name, _, _ := strings.Cut(entry, "=")
		if allowed[name] {
			return wrong("--exec-allow %s: %s is allowed twice", entry, name)
		}
		allowed[name] = true
	}
	switch {
	case o.syncWorkers < 0 || o.syncWorkers > maxSyncWorkers:
		return wrong("--sync-workers %d: want 0 to %d", o.syncWorkers, maxSyncWorkers)
	case o.syncWorkers == 0 && o.syncRoot != "":
		return wrong("--sync-root is of collections, of which a node with --sync-workers 0 runs none: want one of the two")
	}
	for _, root := range []struct{ flag, dir string }{{"checksum-root", o.checksumRoot}, {"sync-root", o.syncRoot}} {
		if root.dir == "" {
			continue
		}
		if info, err := os.Stat(root.dir); err != nil {
			return wrong("--%s: %v", root.flag, err)
		} else if !info.IsDir() {
			return wrong("--%s %s: want a directory", root.flag, root.dir)
		}
	}
	return nil
}
