package demo

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"taskledger/cmd/node/internal/team"
	"taskledger/events"
	"taskledger/ledger"
)

// tally counts the events of the demo in the journal.
type tally struct {
	share map[string]int // successful attempts by name of the node
	lost  int            // attempts
}

// tally counts from the history, which records the node of each attempt: for large trees the journals have been
// trimmed.
func (r *run) tally(ctx context.Context) (t tally, err error) {
	names := map[string]string{} // by session
	t.share = map[string]int{}
	for _, m := range r.team.Members {
		names[m.Session] = m.Name
	}
	for ev, err := range r.team.Members[0].Ledger().Replay(ctx, ledger.ReplayOptions{}) {
		if err != nil {
			return t, fmt.Errorf("count the events: %w", err)
		}
		switch ev.Body.(type) {
		case *events.Lost:
			t.lost++
		case *events.Succeeded:
			t.share[names[ev.Node]]++
		}
	}
	return t, nil
}

// verify checks the whole ledger, the archive included.
func (r *run) verify(ctx context.Context) ([]ledger.Verification, error) {
	return r.team.Members[0].Ledger().Verify(ctx, ledger.VerifyOptions{Archive: true})
}

// findings holds the result of the comparison with direct checksums.
type findings struct {
	right             int
	wrong             []string // a checksum differs from the direct one
	failed            []string // the task failed although the file is there
	changed, vanished []string // meanwhile, so that nothing can be said
	unseen            []error  // what could not be looked at
}

// check computes every checksum directly and compares.
func (r *run) check(unseen []error) findings {
	found := findings{unseen: unseen}
	for i, f := range r.files {
		got := r.outcomes[i]
		want, err := f.sum(r.root)
		switch fate := f.look(r.root); {
		case fate == vanished:
			found.vanished = append(found.vanished, f.path)
		case fate == changed:
			found.changed = append(found.changed, f.path)
		case got.err != nil:
			found.failed = append(found.failed, fmt.Sprintf("%s: %v", f.path, got.err))
		case err != nil:
			found.failed = append(found.failed, fmt.Sprintf("%s: direct checksum: %v", f.path, err))
		case got.sum != want:
			found.wrong = append(found.wrong, fmt.Sprintf("%s: %s, want %s", f.path, got.sum, want))
		default:
			found.right++
		}
	}
	return found
}

func (r *run) report(took time.Duration, t tally, verified []ledger.Verification, found findings) error {
	table := tabwriter.NewWriter(r.Out, 0, 0, 2, ' ', 0)
	line := func(what string, format string, args ...any) {
		fmt.Fprintf(table, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	line("tasks", "%d", len(r.files))
	for _, m := range r.team.Members {
		died := ""
		if m == r.team.Members[2] {
			died = " (killed)"
		}
		line("node "+m.Name, "%d%s", t.share[m.Name], died)
	}
	line("attempts lost", "%d", t.lost)
	line("run again", "%d", r.reruns)
	if r.reruns > 0 {
		line("death to first re-run", "%.2f s (session TTL %s)", r.revived.Sub(r.death).Seconds(), team.TTL)
	}
	line("time", "%.2f s", took.Seconds())
	line("tasks/s", "%.0f", float64(len(r.files))/took.Seconds())
	line("checksums", "%d equal to those computed directly", found.right)
	entries, problems := verifiedEntries(verified)
	line("ledger", "%d entries in %d shards verified, %d problems", entries, len(verified), len(problems))
	err := table.Flush()
	for _, list := range []struct {
		what  string
		names []string
	}{{"wrong", found.wrong}, {"failed", found.failed}, {"changed meanwhile", found.changed}, {"vanished meanwhile", found.vanished},
		{"unreadable", texts(found.unseen)}, {"ledger", problems}} {
		for _, name := range list.names {
			fmt.Fprintf(r.Out, "%s: %q\n", list.what, name)
		}
	}
	if len(found.wrong)+len(found.failed)+len(found.unseen)+len(problems) > 0 {
		err = errors.Join(err, ErrFailed)
	}
	return err
}

func verifiedEntries(verified []ledger.Verification) (entries uint64, problems []string) {
	for _, v := range verified {
		entries += v.Entries
		if v.Problem != "" {
			problems = append(problems, fmt.Sprintf("shard %d: %s", v.Shard, v.Problem))
		}
	}
	return entries, problems
}

func texts(errs []error) (all []string) {
	for _, err := range errs {
		all = append(all, err.Error())
	}
	return all
}
