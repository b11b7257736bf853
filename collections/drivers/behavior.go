package drivers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os/exec"
	"strings"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/collections"
)

// MaxFileBytes bounds a file that is fetched, unless Options say otherwise.
const MaxFileBytes = 1 << 30

// Options say what a node has for its runs.
type Options struct {
	Node string              // the name of the node, for failures
	Exec builtin.ExecOptions // programs of driver exec
	HTTP builtin.HTTPOptions // addresses of the URLs that are fetched
	// Files say what driver fetch reads where a collection has a path: nothing without a Root. What they exclude is not
	// written to, either.
	Files builtin.ChecksumOptions
	// Root is the directory below which driver fetch writes; "" = none, so that nothing is fetched. Folders in it are
	// made as needed, with mode 0755, and files with mode 0644, less the umask. Several nodes that run a collection
	// need one directory that they share.
	Root         string
	MaxFileBytes int64             // of a file that is fetched; 0 = MaxFileBytes
	Go           map[string]Driver // by name, without collections.GoPrefix
}

// Behavior returns the behavior "collection". Programs that the options allow are looked up now.
func Behavior(o Options) *behaviors.Bound[collections.Params, behaviors.None] {
	r := &runner{
		node:     o.Node,
		programs: builtin.NewPrograms(o.Exec),
		fetcher: &fetcher{
			from:     sources{builtin.NewGetter(o.HTTP), o.Files},
			to:       builtin.ChecksumOptions{Root: o.Root, Exclude: o.Files.Exclude},
			maxBytes: cmp.Or(o.MaxFileBytes, MaxFileBytes),
		},
		inGo: o.Go,
	}
	b := behaviors.Define(collections.Behavior,
		&behaviors.Rules[collections.Params, behaviors.None]{DisallowUnknownFields: true})
	return b.Bind(r.run).(*behaviors.Bound[collections.Params, behaviors.None])
}

// runner makes runs.
type runner struct {
	node     string
	programs *builtin.Programs
	fetcher  *fetcher
	inGo     map[string]Driver
}

func (r *runner) run(ctx context.Context, p collections.Params) (none behaviors.None, err error) {
	if err = r.sync(ctx, p); err != nil {
		say(ctx, slog.LevelError, err.Error())
	}
	return none, err
}

func (r *runner) sync(ctx context.Context, p collections.Params) error {
	name, inGo := strings.CutPrefix(p.Driver.Driver, collections.GoPrefix)
	switch driver := r.inGo[name]; {
	case inGo && driver != nil:
		return driver.Sync(ctx, Run{p.Source, p.Collection, p.Params})
	case name == collections.Exec && !inGo:
		return r.exec(ctx, p.Driver)
	case name == collections.Fetch && !inGo:
		return r.fetch(ctx, p.Driver)
	case name == collections.Noop && !inGo:
		say(ctx, slog.LevelInfo, "driver noop: nothing is done")
		return nil
	}
	return r.lacks("no driver %s: its program does not bring it along", p.Driver.Driver)
}

// exec runs a program.
func (r *runner) exec(ctx context.Context, d collections.Driver) error {
	params := builtin.ExecParams{
		Program: d.Program,
		Args:    d.Args,
		Env:     d.Env,
		Dir:     d.Dir,
	}
	if err := params.Validate(); err != nil {
		return refuse(builtin.CodeInvalid, err)
	}
	_, err := r.programs.Run(ctx, params)
	if missing, is := errors.AsType[*builtin.NotAllowedError](err); is {
		flag := "--exec-allow"
		if missing.What == "variable" {
			flag = "--exec-env"
		}
		return r.lacks("no %s %q: %s does not name it", missing.What, missing.Name, flag)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("node %q cannot run program %q of --exec-allow: %w", r.node, d.Program, err)
	}
	return err
}

// fetch brings a file to the node.
func (r *runner) fetch(ctx context.Context, d collections.Driver) error {
	switch {
	case r.fetcher.to.Root == "":
		return r.lacks("no directory to fetch to: --sync-root is not given")
	case d.URL == "" && r.fetcher.from.files.Root == "":
		return r.lacks("no directory to fetch from: --checksum-root is not given")
	}
	told, err := r.fetcher.fetch(ctx, d)
	if err == nil {
		say(ctx, slog.LevelInfo, told)
	}
	return err
}

// lacks returns the final failure of a run that needs what the node does not have.
func (r *runner) lacks(format string, args ...any) error {
	return refuse(builtin.CodeRefused, fmt.Errorf("node %q has %s", r.node, fmt.Sprintf(format, args...)))
}

// say writes a line to the log of the attempt, which waits for it.
func say(ctx context.Context, level slog.Level, line string) {
	attempt, _ := behaviors.Attempt(ctx)
	_, _ = fmt.Fprintln(attempt.Output(level, true), line) // it fails once ctx has ended
}
