package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// options holds the flags of a hunt.
type options struct {
	text     string // in the names of the bugs
	kind     string // of harness; "" = both
	seed     uint64
	most     int // histories for a bug; 0 = what the harness allows
	parallel int // simulated bugs at once
	limit    time.Duration
}

func parse(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("mutation hunt", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.kind, "harness", "", "simulated or real (default: both)")
	flags.Uint64Var(&o.seed, "seed", 1, "of the first history; the others follow")
	flags.IntVar(&o.most, "most", 0, "histories that a bug may take (default: 5,000 simulated, or 200 real ones)")
	flags.IntVar(&o.parallel, "parallel", runtime.GOMAXPROCS(0), "simulated bugs at once")
	flags.DurationVar(&o.limit, "limit", 90*time.Minute, "time for all")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.text = strings.Join(flags.Args(), " ")
	if o.most < 0 || o.parallel < 1 || o.limit <= 0 || o.kind != "" && o.kind != simulated && o.kind != real {
		return o, errors.New("want positive numbers, a positive time, and a harness that there is")
	}
	return o, nil
}

// hunt lets the harnesses that run the product under faults look for planted bugs: first for those that are simulated,
// side by side, and then for the others, which want the processors for themselves, one after another.
func hunt(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(plantedBugs), func(p planted) bool {
		return !strings.Contains(p.name, o.text) || o.kind != "" && o.kind != p.harness()
	})
	if len(chosen) == 0 {
		return fmt.Errorf("no bug for this harness is named like %q", o.text)
	}
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	laid, err := lay(dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	c := &court{log: log.New(out, "", 0), places: make(chan struct{}, o.parallel)}
	for _, h := range []hunter{{o, c, simulation{}}, {o, c, realProcesses{}}} {
		if err = h.find(ctx, dir, laid, chosen); err != nil {
			break
		}
		c.places = make(chan struct{}, 1)
	}
	return errors.Join(err, c.close(ctx))
}
