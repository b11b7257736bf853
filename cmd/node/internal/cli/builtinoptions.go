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
	"taskledger/task"
)

// builtinOptions are the flags of serve that allow tasks of built-in behaviors to run and to read something.
type builtinOptions struct {
	execAllow, execEnv []string
	httpAllowPrivate   bool
	checksumRoot       string
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
may submit learns size and SHA-256 of every file there (default: none)`)
}

// given returns those of the flags that were given, which all nodes should have alike.
func (o *builtinOptions) given(f *pflag.FlagSet) (args []string) {
	for _, name := range []string{"exec-allow", "exec-env", "http-allow-private", "checksum-root"} {
		if flag := f.Lookup(name); flag.Changed {
			args = append(args, "--"+name+"="+strings.TrimSuffix(strings.TrimPrefix(flag.Value.String(), "["), "]"))
		}
	}
	return args
}

// runPrograms reports whether tasks may run any program.
func (o *builtinOptions) runPrograms() bool { return len(o.execAllow) > 0 }

// behaviors returns the built-in behaviors, which read none of the secrets.
func (o *builtinOptions) behaviors(secrets []string) ([]task.Behavior, error) {
	root := o.checksumRoot
	if root != "" {
		var err error
		if root, err = filepath.Abs(root); err != nil {
			return nil, fmt.Errorf("--checksum-root: %w", err)
		}
	}
	return builtin.Behaviors(builtin.Options{
		Exec:     builtin.ExecOptions{Allow: o.execAllow, Env: o.execEnv, Hold: o.hold},
		HTTP:     builtin.HTTPOptions{AllowPrivate: o.httpAllowPrivate},
		Checksum: builtin.ChecksumOptions{Root: root, Exclude: secrets},
	}), nil
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
	if o.checksumRoot == "" {
		return nil
	}
	if info, err := os.Stat(o.checksumRoot); err != nil {
		return wrong("--checksum-root: %v", err)
	} else if !info.IsDir() {
		return wrong("--checksum-root %s: want a directory", o.checksumRoot)
	}
	return nil
}
