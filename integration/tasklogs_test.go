package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/natsbus"
	"taskledger/task"
	"taskledger/tasklog"
)

// keepsLogs makes a node that runs so many programs at once and keeps what they write.
func keepsLogs(t *testing.T, slots int, how natsbus.LogsConfig) func(*engine.NodeConfig) {
	return func(cfg *engine.NodeConfig) {
		logs, err := cfg.Bus.(*natsbus.Bus).Logs(how)
		ok(t, err)
		cfg.Logs, cfg.Slots = logs, slots
	}
}

// shell runs scripts.
func shell() task.Behavior { return builtin.Exec(builtin.ExecOptions{Allow: []string{"sh"}}) }

// startScript submits a script that runs in a directory.
func startScript(t *testing.T, n *testcluster.Node, b task.Behavior, id, dir, script string) *engine.Future {
	t.Helper()
	params := fmt.Appendf(nil, `{"program":"sh","args":["-c",%q],"dir":%q}`, script, dir)
	f, err := n.Submit(within(t, soon), b, params, task.SubmitOptions{ID: events.TaskID(id)})
	ok(t, err)
	return f
}

// numbered holds what is told of a log whose line n reads n.
type numbered struct {
	lines, missing uint64
	gaps           int
	marked         bool // its end is said to be missing
}

// upTo returns the number of the last line that is told, by itself or in a gap.
func (n *numbered) upTo() uint64 { return n.lines + n.missing }

// readNumbered reads a log from its beginning, and fails the test where a line is told twice, or neither by itself nor
// in a gap.
func readNumbered(t *testing.T, from *engine.Client, id events.TaskID) (got numbered, err error) {
	t.Helper()
	for s := (tasklog.Selection{}); ; {
		told, err := from.Log(within(t, soon), id, s)
		if err != nil {
			return got, err
		}
		for _, l := range told.Lines {
			switch first := l.Number - max(l.Missing, 1) + 1; {
			case got.marked:
				t.Fatalf("%s: %q stands behind the end of the log", id, l.Text)
			case first != got.upTo()+1:
				t.Fatalf("%s: line %d where %d is due", id, first, got.upTo()+1)
			case l.Missing > 0 && l.Level == tasklog.Error:
				got.gaps++
				got.missing += l.Missing
			case l.Text == fmt.Sprint(l.Number):
				got.lines++
			case l.Level == tasklog.Error && strings.HasPrefix(l.Text, "the log ends here"):
				got.marked = true
			default:
				t.Fatalf("%s: line %d reads %q", id, l.Number, l.Text)
			}
		}
		if s.Cursor = told.Cursor; !told.More {
			return got, nil
		}
	}
}

// Programs that write faster than JetStream stores are held: of none of them a line is lost, or kept twice.
func TestLogs_OfManyProgramsAreWholeWhileJetStreamIsUp(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	programs, lines := testkit.Times(4, 16), testkit.Times(20_000, 90_000)
	c, sh := testcluster.New(t, testcluster.Options{JetStream: true}), shell()
	n := c.StartNode("a", keepsLogs(t, programs, natsbus.LogsConfig{}), sh)
	var all []*engine.Future
	for i := range programs {
		all = append(all, startScript(t, n, sh, fmt.Sprint("seq-", i), t.TempDir(), fmt.Sprint("seq ", lines)))
	}
	for _, f := range all {
		_, err := f.Wait(within(t, soon))
		ok(t, err)
		testcluster.Await(t, "the whole log", func() bool { // its last lines may be stored once the task has ended
			got, err := readNumbered(t, n.Client, f.ID())
			ok(t, err)
			if got.missing > 0 || got.marked || got.lines > uint64(lines) {
				t.Fatalf("%s: %+v, want %d lines", f.ID(), got, lines)
			}
			return got.lines == uint64(lines)
		})
	}
}

// What programs write while JetStream is away is kept or in a gap, which the log tells, also where nothing is written
// afterwards.
func TestLogs_OfManyProgramsTellEveryGapWhenJetStreamWasAway(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	const third = 30_000 // lines: more than the pipe of a program takes, and its node
	programs := testkit.Times(4, 16)
	c, sh, dir := testcluster.New(t, testcluster.Options{JetStream: true}), shell(), t.TempDir()
	n := c.StartNode("a", keepsLogs(t, programs, natsbus.LogsConfig{}), sh)
	touch := func(name string) { ok(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600)) }
	const script = `
		seq 1 $A; while [ ! -e AWAY ]; do sleep 0.1; done
		seq $((A+1)) $B; : > $NAME; while [ ! -e $NEXT ]; do sleep 0.1; done
		if [ $NEXT = BACK ]; then seq $((B+1)) $C; fi`
	var all []*engine.Future
	for i := range programs {
		next := [...]string{"AWAY", "BACK"}[i%2] // half of them end while JetStream is away
		set := fmt.Sprintf("A=%d B=%d C=%d NAME=wrote-%d NEXT=%s", third, 2*third, 3*third, i, next)
		all = append(all, startScript(t, n, sh, fmt.Sprint("seq-", i), dir, set+script))
	}
	for _, f := range all {
		testcluster.Await(t, "the first lines", func() bool {
			got, err := readNumbered(t, n.Client, f.ID())
			return err == nil && got.lines == uint64(third)
		})
	}
	c.NATS.Stop()
	touch("AWAY")
	for i := range all {
		testcluster.Await(t, "a program that was not held for good", func() bool {
			_, err := os.Stat(filepath.Join(dir, fmt.Sprint("wrote-", i)))
			return err == nil
		})
	}
	c.NATS.Start()
	for i, f := range all {
		testcluster.Await(t, "what has waited for JetStream", func() bool {
			got, err := readNumbered(t, n.Client, f.ID())
			return err == nil && (i%2 == 0 || got.upTo() == uint64(2*third))
		})
	}
	touch("BACK")
	for i, f := range all {
		_, err := f.Wait(within(t, soon))
		ok(t, err)
		goesOn := i%2 == 1
		lines := map[bool]uint64{true: uint64(3 * third), false: uint64(2 * third)}[goesOn]
		var got numbered
		testcluster.Await(t, "a log that tells of each line", func() bool {
			got, err = readNumbered(t, n.Client, f.ID())
			return err == nil && got.upTo() == lines
		})
		if got.gaps == 0 || got.marked && goesOn {
			t.Errorf("%s: %+v, want a gap of what was written while JetStream was away", f.ID(), got)
		}
		t.Logf("%s: %+v", f.ID(), got)
	}
}

// The streams are on the same disk: the oldest lines go, and the archive takes what journals are to lose.
func TestLogs_ThatFillTheirStreamLeaveJournalsToBeTrimmed(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	c, l, sh := testcluster.New(t, testcluster.Options{JetStream: true, Shards: 1}), bulkyTally(), shell()
	a := c.StartNode("a", func(cfg *engine.NodeConfig) {
		archives(t)(cfg)
		keepsLogs(t, 8, natsbus.LogsConfig{MaxBytes: natsbus.MinLogBytes})(cfg)
	}, l.run(), sh)
	f := startFlowOf(t, l, megabytes, a)
	const noise = `head -c 3000000 /dev/urandom | base64
		while [ ! -e END ]; do head -c 100000 /dev/urandom | base64; sleep 0.05; done`
	dir := t.TempDir()
	writer := startScript(t, a, sh, "noise", dir, noise)
	full := func() bool {
		told, err := a.Log(within(t, soon), "noise", tasklog.Selection{Limit: 1})
		return err == nil && len(told.Lines) == 1 && told.Lines[0].Missing > 0
	}
	testcluster.Await(t, "a full stream", full)
	before := testcluster.AwaitShards(t, a.Client, "a trimmed journal", trimmedBeyond(1))[0]
	f.await(t, 20)
	after := testcluster.AwaitShards(t, a.Client, "a journal that is trimmed on", trimmedBeyond(before.First))[0]
	if after.Archived < after.First-1 || !full() {
		t.Errorf("the journal begins with entry %d, and the archive ends with %d", after.First, after.Archived)
	}
	ok(t, os.WriteFile(filepath.Join(dir, "END"), nil, 0o600))
	_, err := writer.Wait(within(t, soon))
	ok(t, err)
	l.wantOnce(t, a.Client, f.end())
	wantWhole(t, a.Client)
}
