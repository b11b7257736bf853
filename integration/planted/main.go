// Command planted breaks the product in ways that its promises forbid, one at a time, and lets the harnesses that run it
// under faults look for what is wrong. It prints how many histories each bug took, and fails when one is not found. A bug is
// found by a history that breaks one of the invariants that are named for it, and that the product as it is makes under the
// same seed with nothing broken. Run it from the root of the module:
//
//	go run ./integration/planted              every bug; those that are simulated side by side
//	go run ./integration/planted commit       those whose name contains the text
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

// options holds the flags of the command line.
type options struct {
	filter   string
	kind     string // of harness; "" = both
	seed     uint64
	most     int // histories for a bug; 0 = what the harness allows
	parallel int // simulated bugs at once
	limit    time.Duration
}

func parse(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("planted", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.kind, "harness", "", "simulated or real (default: both)")
	flags.Uint64Var(&o.seed, "seed", 1, "of the first history; the others follow")
	flags.IntVar(&o.most, "most", 0, "histories that a bug may take (default: 5,000 simulated, or 200 real ones)")
	flags.IntVar(&o.parallel, "parallel", runtime.GOMAXPROCS(0), "simulated bugs at once")
	flags.DurationVar(&o.limit, "limit", 90*time.Minute, "time for all")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.filter = strings.Join(flags.Args(), " ")
	if o.most < 0 || o.parallel < 1 || o.limit <= 0 || o.kind != "" && o.kind != simulated && o.kind != real {
		return o, errors.New("want positive numbers, a positive time, and a harness that there is")
	}
	return o, nil
}

// choose returns the bugs that the options name.
func (o *options) choose() ([]planted, error) {
	chosen := slices.DeleteFunc(slices.Clone(list), func(p planted) bool {
		return !strings.Contains(p.name, o.filter) || o.kind != "" && o.kind != p.harness()
	})
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no bug for this harness is named like %q", o.filter)
	}
	return chosen, nil
}

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	chosen, err := o.choose()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "planted-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	began := time.Now()
	h := &hunt{options: o, dir: dir, out: out, harnesses: map[string]harness{simulated: simulation{}, real: realProcesses{}}}
	rows := h.run(ctx, chosen)
	return errors.Join(table(out, rows, time.Since(began)), missed(rows))
}

// table prints what each hunt came to, in Markdown.
func table(out io.Writer, rows []row, took time.Duration) error {
	text := "\n| bug | harness | histories | noticed by | seconds |\n|---|---|---|---|---|\n"
	found := 0
	for i := range rows {
		r := &rows[i]
		noticed := strings.Join(r.noticed, ", ")
		if r.err != nil {
			noticed = "**not found**"
		} else {
			found++
		}
		text += fmt.Sprintf("| %s | %s | %d | %s | %.0f |\n", r.name, r.harness(), r.histories, noticed, r.took.Seconds())
	}
	_, err := fmt.Fprintf(out, "%s\n%d of %d found in %s\n", text, found, len(rows), took.Round(time.Second))
	return err
}

// missed returns why bugs were not found.
func missed(rows []row) (err error) {
	for i := range rows {
		if rows[i].err != nil {
			err = errors.Join(err, fmt.Errorf("%s, %s: %w", rows[i].name, rows[i].harness(), rows[i].err))
		}
	}
	return err
}
