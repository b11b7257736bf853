// Command proof makes the long proof of a tree, part by part, and notes what each part came to. The gate, .ci/run, is
// fast and draws nothing; whatever needs hours, new seeds or a quiet machine is here. Run it from the root of the
// module:
//
//	go run ./integration/proof                   every part that is not green for this tree yet
//	go run ./integration/proof faults fuzz       these two, unless they are green for this tree
//	go run ./integration/proof -again faults     once more, with a new seed
//	go run ./integration/proof -list             the parts, and what each came to for this tree
//
// A note is a file below proof/, named by the tree of git that it is about: so one proof can be made piece by piece,
// on several days or machines, and a change of any file begins a new one. A tree with changes that are not committed
// has no name, and no proof.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], parts, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

// partMost bounds the time of a part: an hour is enough to make one.
const partMost = 45 * time.Minute

// part is a piece of the proof.
type part struct {
	name string
	// commands are run by a shell from the root of the module, all of them, also after one has failed. The
	// environment has SEED, which is new for each run of the part, RAPID_SEED, which is the same, and DIR, a folder
	// that is removed at the end. With PROOF=1 tests do in full what they repeat.
	commands []string
}

func run(ctx context.Context, args []string, all []part, out io.Writer) error {
	flags := flag.NewFlagSet("proof", flag.ContinueOnError)
	flags.SetOutput(out)
	again := flags.Bool("again", false, "also run parts that are green for this tree")
	list := flags.Bool("list", false, "print what is noted for this tree, and run nothing")
	seed := flags.Uint64("seed", 0, "of whatever is drawn; 0 = a new one for each part")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(all, flags.Args())
	if err != nil {
		return err
	}
	tree, err := cleanTree(ctx)
	if err != nil {
		return err
	}
	notes := notesOf(tree)
	var errs []error
	for _, p := range chosen {
		noted, err := notes.read(p.name)
		switch {
		case err != nil:
			return err
		case *list:
			fmt.Fprintf(out, "%-20s %s\n", p.name, noted)
			continue
		case noted.green() && !*again:
			fmt.Fprintf(out, "%-20s %s, as noted\n", p.name, noted)
			continue
		case ctx.Err() != nil:
			return errors.Join(append(errs, ctx.Err())...)
		}
		drawn := *seed
		if drawn == 0 {
			drawn = rand.Uint64N(1e9) + 1
		}
		fmt.Fprintf(out, "%-20s runs, seed %d: %s\n", p.name, drawn, notes.log(p.name))
		n, err := notes.make(ctx, &p, drawn, partMost)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		fmt.Fprintf(out, "%-20s %s\n", p.name, n)
		if !n.green() {
			errs = append(errs, fmt.Errorf("%s is %s; see %s", p.name, n, notes.log(p.name)))
		}
	}
	return errors.Join(errs...)
}

// choose returns the parts of these names, or all.
func choose(all []part, names []string) ([]part, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []part
	for _, name := range names {
		i := slices.IndexFunc(all, func(p part) bool { return p.name == name })
		if i < 0 {
			var known []string
			for _, p := range all {
				known = append(known, p.name)
			}
			return nil, fmt.Errorf("no part is named %q: there are %s", name, strings.Join(known, ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// cleanTree returns the hash of the tree that is checked out, and an error where files differ from it.
func cleanTree(ctx context.Context) (string, error) {
	changed, err := git(ctx, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return "", fmt.Errorf("a proof is of a tree that git knows: commit or stash\n%s", changed)
	}
	return git(ctx, "rev-parse", "HEAD^{tree}")
}

func git(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSpace(string(out)), nil
}
