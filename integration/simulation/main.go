//go:build !faketime

// Command simulation makes simulated histories and checks them against the invariants of the design.
//
//	go run ./integration/simulation run --histories 5000 --seed 1     5,000 seeds from 1 on
//	go run ./integration/simulation replay 4711                       the history of one seed, and what is wrong with it
//
// A history is whole: three real nodes and two real clients on a modelled etcd, a modelled bus and archive, some hundred
// commands, half a dozen faults. The same seed and sources make the same history to the byte, so a red one is repeated at
// will. It ends with code 1 when a history is red, and with 2 when it cannot run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"taskledger/integration/robustness/history"
	"taskledger/integration/simulation/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "simulation:", err)
	}
	switch {
	case errors.Is(err, errRed):
		os.Exit(1)
	case err != nil:
		os.Exit(2)
	}
}

// errRed reports that an invariant is broken.
var errRed = errors.New("there are violations")

// options holds the settings of the command line.
type options struct {
	histories int
	seed      uint64
	parallel  int
	keep      string // folder for red histories; "" = they are not kept
	overlay   string // as go build takes it
	stop      bool   // at the first red history
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("want run or replay")
	}
	var o options
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.keep, "keep", "", "folder in which red histories, or the replayed one, are kept")
	flags.StringVar(&o.overlay, "overlay", "", "file that lays other sources over the tree, as go build takes it")
	switch args[0] {
	case "run":
		flags.IntVar(&o.histories, "histories", 1000, "how many")
		flags.Uint64Var(&o.seed, "seed", 1, "of the first; the others follow")
		flags.IntVar(&o.parallel, "parallel", 2, "how many at once")
		flags.BoolVar(&o.stop, "stop", false, "end with the first red one")
	case "replay":
	default:
		return fmt.Errorf("%q: want run or replay", args[0])
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if o.histories < 0 || o.parallel < 0 || args[0] == "run" && o.parallel == 0 {
		return errors.New("want at least one history at a time")
	}
	if args[0] == "replay" {
		seed, err := strconv.ParseUint(flags.Arg(0), 10, 64)
		if err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		o.seed, o.histories, o.parallel = seed, 1, 1
	}
	began := time.Now()
	dir, err := os.MkdirTemp("", "simulation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program, err := build.Build(ctx, dir, o.overlay)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "built in %s\n", time.Since(began).Round(time.Second))
	c := &campaign{
		options: o,
		program: program,
		history: func(ctx context.Context, program string, seed uint64) (*history.Run, error) {
			return build.History(ctx, program, seed)
		},
		out:    out,
		replay: args[0] == "replay",
	}
	return c.run(ctx)
}
