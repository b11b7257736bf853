// Command robustness runs a cluster of real processes under faults, records what clients are told, what functions do
// and what etcd holds, and has the record checked. Run it from anywhere inside the module:
//
//	go run ./integration/robustness run                 one history, with faults drawn by a seed of the day
//	go run ./integration/robustness run --seed 7        that one again: the same faults and requests, at other moments
//	go run ./integration/robustness run --all-faults    as many histories as it takes for every kind of fault
//	go run ./integration/robustness run --all-faults --parallel 2    two of them at a time
//	go run ./integration/robustness rounds --rounds 200    one of two nodes leaves, the other runs everything at once
//	go run ./integration/robustness check DIR           checks a kept history again
//	go run ./integration/robustness faults              what can be done to the cluster
//
// It ends with 1 when an invariant is violated or a history proves nothing, and with 2 when it is used wrongly.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.uber.org/goleak"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/fault"
	"taskledger/integration/robustness/history"
)

func main() {
	if isChild, code := cluster.RunRole(); isChild {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const (
	exitOK    = 0
	exitRed   = 1
	exitUsage = 2
)

var errUsage = errors.New("usage: robustness run [flags] | rounds [flags] | check DIR | faults")

// command carries out a command line and returns what the process ends with.
func command(ctx context.Context, args []string, out, errs io.Writer) int {
	green, err := false, errUsage
	switch {
	case len(args) > 0 && args[0] == "run":
		green, err = runCommand(ctx, args[1:], out, errs)
	case len(args) > 0 && args[0] == "rounds":
		green, err = roundsCommand(ctx, args[1:], out, errs)
	case len(args) == 2 && args[0] == "check":
		green, err = checkCommand(args[1], out)
	case len(args) == 1 && args[0] == "faults":
		green, err = true, listFaults(out)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.Is(err, errUsage):
		fmt.Fprintln(errs, err)
		return exitUsage
	case err != nil:
		fmt.Fprintln(errs, "robustness:", err)
		return exitRed
	case !green:
		return exitRed
	}
	return exitOK
}

// options holds the flags of the command run.
type options struct {
	cluster.Settings
	histories int
	parallel  int
	all       bool
	json      string
	keep      bool
}

func parse(args []string, errs io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixMilli()), "of the first history; the next ones have the next seeds")
	flags.IntVar(&o.histories, "histories", 1, "how many")
	flags.IntVar(&o.parallel, "parallel", 1, "how many at a time; goroutines that remain are then looked for once, at the end")
	flags.IntVar(&o.Settings.Nodes, "nodes", 3, "3 to 5")
	flags.IntVar(&o.Members, "etcd", 1, "members of etcd: 1 or 3")
	flags.DurationVar(&o.Duration, "duration", 10*time.Second, "how long each is disturbed")
	kinds := flags.String("faults", "", "kinds, separated by commas; two at a time where they can be (default: drawn by the seed)")
	flags.BoolVar(&o.all, "all-faults", false, "as many histories as it takes for every kind, two at a time")
	flags.StringVar(&o.Out, "out", "", "directory that keeps all histories (default: a temporary one that keeps those that are not green)")
	flags.StringVar(&o.json, "json", "", "file for the summary, as JSON")
	flags.StringVar(&o.Program, "program", "", "path of the program whose commands are typed (default: it is built)")
	if err := flags.Parse(args); err != nil {
		return o, errors.Join(errUsage, err)
	}
	if *kinds != "" {
		o.Kinds = strings.Split(*kinds, ",")
	}
	switch {
	case flags.NArg() > 0, o.Duration <= 0, o.Nodes < 3, o.Nodes > 5, o.Members != 1 && o.Members != 3, o.histories < 1, o.parallel < 1, o.all && *kinds != "":
		return o, errUsage
	}
	if _, err := fault.NewPlan(rand.New(rand.NewPCG(o.Seed, 0)), o.Settings); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if o.keep = o.Out != ""; !o.keep {
		o.Out, err = os.MkdirTemp("", "robustness-")
	}
	return o, err
}

// runCommand makes and checks histories.
func runCommand(ctx context.Context, args []string, out, errs io.Writer) (green bool, err error) {
	o, err := parse(args, errs)
	if err != nil {
		return false, err
	}
	total := newSummary()
	total.Parallel = o.parallel
	dir, err := os.MkdirTemp("", "robustness-program-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.Program == "" {
		o.Program, err = cluster.BuildProgram(ctx, dir)
	} else {
		o.Program, err = filepath.Abs(o.Program)
	}
	if err != nil {
		return false, err
	}
	before := goleak.IgnoreCurrent()
	err = makeAll(ctx, o.plan(total), o.parallel, redrawing(makeOne), func(m made) error { return o.tell(ctx, m, total, out) })
	if o.parallel > 1 {
		err = errors.Join(err, leakedSince(before))
	}
	err = errors.Join(err, total.write(out))
	if o.json != "" {
		text, failed := json.MarshalIndent(total, "", "  ")
		err = errors.Join(err, failed, os.WriteFile(o.json, text, 0o600))
	}
	green = err == nil && total.green()
	if !o.keep && green {
		err = os.RemoveAll(o.Out)
	}
	return green, err
}

// plan returns the settings of every history, and notes the kinds of faults that are impossible.
func (o *options) plan(total *summary) (all []cluster.Settings) {
	var kinds []string
	for _, f := range fault.Kinds {
		if why := f.Cannot(o.Members); why != "" {
			total.NotRun[f.Name] = why
		} else {
			kinds = append(kinds, f.Name)
		}
	}
	s := o.Settings
	s.Beside = o.parallel > 1
	if o.all {
		o.histories = (len(kinds) + 1) / 2
	}
	for i := range o.histories {
		s.Seed = o.Seed + uint64(i)
		if o.all {
			s.Kinds = kinds[2*i : min(2*i+2, len(kinds))]
		}
		s.Command = again(s)
		all = append(all, s)
		if p, err := fault.NewPlan(rand.New(rand.NewPCG(s.Seed, 0)), s); err == nil { // else the history says so
			for _, kind := range p.Names() {
				total.Planned[kind]++
			}
		}
	}
	return all
}

// again is the command that repeats the history.
func again(s cluster.Settings) string {
	text := fmt.Sprintf("go run ./integration/robustness run --seed %d --nodes %d --etcd %d --duration %s", s.Seed, s.Nodes, s.Members, s.Duration)
	if len(s.Kinds) > 0 {
		text += " --faults " + strings.Join(s.Kinds, ",")
	}
	return text
}

// made is a history that was checked and kept.
type made struct {
	cluster.Settings
	dir     string
	took    time.Duration
	history *history.Run // nil when not even its directory could be made
	check.Judgement
	err error
}

// historyWithin bounds the time that a history takes beyond its disturbances; then something hangs for ever.
const historyWithin = fault.PlanWithin + 10*time.Minute

func makeOne(ctx context.Context, s cluster.Settings) made {
	watchdog := time.AfterFunc(s.Duration+historyWithin, func() {
		fmt.Fprintf(os.Stderr, "robustness: the history of seed %d hangs\n", s.Seed)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		os.Exit(exitRed) // the other processes end when their orders do
	})
	defer watchdog.Stop()
	m := made{Settings: s}
	began := time.Now()
	if m.history, m.dir, m.err = makeHistory(ctx, s); m.err == nil {
		m.Judgement = check.Judge(m.history)
		m.err = errors.Join(history.Save(m.dir, m.history), writeReport(m.dir, m.history, &m.Judgement))
	}
	m.took = time.Since(began)
	return m
}

// tell adds a history to the summary and prints what it came to. It removes what need not be kept. A history that was
// interrupted is not told of.
func (o *options) tell(ctx context.Context, m made, total *summary, out io.Writer) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case m.history == nil:
		total.Histories, total.Rejected = total.Histories+1, total.Rejected+1
		fmt.Fprintf(out, "%-8s %v\n  again: %s\n", check.Rejected, m.err, m.Command)
		return nil
	}
	if err := errors.Join(m.err, total.add(m.history, &m.Judgement, m.dir)); err != nil {
		return err
	}
	verdict(out, m.history, &m.Judgement)
	fmt.Fprintf(out, "  %s\n", m.took.Round(100*time.Millisecond))
	if m.Verdict() != check.Passed {
		fmt.Fprintf(out, "  again: %s\n  kept:  %s\n", m.Command, m.dir)
		return nil
	}
	if !o.keep {
		return os.RemoveAll(m.dir)
	}
	return os.RemoveAll(filepath.Join(m.dir, cluster.DataDir))
}

// verdict prints what a history came to.
func verdict(out io.Writer, h *history.Run, j *check.Judgement) {
	var kinds []string
	for _, f := range h.Faults {
		kinds = append(kinds, f.Kind)
	}
	slices.Sort(kinds)
	fmt.Fprintf(out, "%-8s seed %d: %d operations, %d executions, faults: %s\n", j.Verdict(), h.Info.Seed, len(h.Operations), len(h.Executions),
		strings.Join(kinds, ", "))
	for _, p := range j.Problems {
		fmt.Fprintln(out, "  problem:", p)
	}
	for _, v := range j.Violations[:min(len(j.Violations), maxShown)] {
		fmt.Fprintln(out, "  violation:", v)
	}
	if more := len(j.Violations) - maxShown; more > 0 {
		fmt.Fprintf(out, "  and %d violations more\n", more)
	}
}

// maxShown bounds the violations of a history that are printed; the report has all.
const maxShown = 10

// checkCommand checks a kept history again.
func checkCommand(dir string, out io.Writer) (green bool, err error) {
	h, err := history.Load(dir)
	if err != nil {
		return false, err
	}
	j := check.Judge(h)
	verdict(out, h, &j)
	return j.Verdict() == check.Passed, writeReport(dir, h, &j)
}

// listFaults prints every kind, and whether this machine can do it.
func listFaults(out io.Writer) error {
	var errs []error
	for _, f := range fault.Kinds {
		can := "yes"
		if why := f.Cannot(3); why != "" {
			can = "no: it " + why
		} else if f.Cannot(1) != "" {
			can = "with --etcd 3"
		}
		_, err := fmt.Fprintf(out, "%-28s %s\n", f.Name, can)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// writeReport writes the report for people.
func writeReport(dir string, h *history.Run, j *check.Judgement) error {
	f, err := os.Create(filepath.Join(dir, "report.txt"))
	if err != nil {
		return err
	}
	return errors.Join(Write(f, h, j), f.Close())
}
