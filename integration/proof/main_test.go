package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// repository makes a repository with one commit the working directory. It ignores notes, as that of the project does.
func repository(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, command := range []string{
		"git init -q",
		"echo /proof/ >.gitignore",
		"git add .gitignore",
		"git -c user.name=a -c user.email=a@example.org commit -q -m first",
	} {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
}

// prove runs the command and returns what it prints.
func prove(t *testing.T, all []part, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), args, all, &out)
	return out.String(), err
}

// counting is a part that leaves a line for each of its runs in a file outside of the tree.
func counting(t *testing.T, name string, more ...string) (p part, runs func() int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "runs")
	runs = func() int {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
	return part{name, append([]string{"echo $SEED >>" + file}, more...)}, runs
}

func TestProof_IsMadePieceByPiece(t *testing.T) {
	repository(t)
	one, ones := counting(t, "one")
	two, twos := counting(t, "two")
	all := []part{one, two}
	for _, args := range [][]string{{"one"}, nil, {"two"}, {"-list"}} {
		if out, err := prove(t, all, args...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	if ones() != 1 || twos() != 1 {
		t.Errorf("the parts ran %d and %d times, want once each", ones(), twos())
	}
	if out, err := prove(t, all, "-again", "one"); err != nil || ones() != 2 {
		t.Errorf("again: %v, %d runs\n%s", err, ones(), out)
	}
}

func TestProof_OfAnotherTreeBeginsAnew(t *testing.T) {
	repository(t)
	p, runs := counting(t, "one")
	for range 2 {
		if out, err := prove(t, []part{p}); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		commit := `date +%N >file && git add file && git -c user.name=a -c user.email=a@example.org commit -q -m more`
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", commit).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if runs() != 2 {
		t.Errorf("%d runs for two trees", runs())
	}
}

func TestProof_OfARedPartIsRedUntilItIsGreen(t *testing.T) {
	repository(t)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, runs := counting(t, "one", "test ! -e "+broken, "echo later")
	if out, err := prove(t, []part{p}); err == nil || !strings.Contains(out, "red in") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := prove(t, []part{p}, "-list"); err != nil || !strings.Contains(out, "red in") {
		t.Errorf("list: %v\n%s", err, out)
	}
	if log, err := filepath.Glob("proof/*/one.log"); err != nil || len(log) != 1 {
		t.Errorf("logs: %q, %v", log, err)
	} else if text, err := os.ReadFile(log[0]); err != nil || !strings.HasSuffix(string(text), "later\n") {
		t.Errorf("the commands after a failed one did not run: %v\n%s", err, text)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	if out, err := prove(t, []part{p}); err != nil || runs() != 2 {
		t.Errorf("mended: %v, %d runs\n%s", err, runs(), out)
	}
}

func TestProof_IsOfNothingThatGitDoesNotKnow(t *testing.T) {
	repository(t)
	if err := os.WriteFile("new.go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, runs := counting(t, "one")
	if out, err := prove(t, []part{p}); err == nil || !strings.Contains(err.Error(), "new.go") || runs() != 0 {
		t.Errorf("%v, %d runs\n%s", err, runs(), out)
	}
}

func TestProof_NotesNothingOfAPartThatIsInterrupted(t *testing.T) {
	repository(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := notesOf("tree").make(ctx, &part{"one", []string{"true"}}, 1, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("make: %v", err)
	}
	if n, err := notesOf("tree").read("one"); err != nil || n.Verdict != "" {
		t.Errorf("noted: %v, %v", n, err)
	}
}

func TestProof_EndsAPartThatTakesTooLongWithWhatItStarted(t *testing.T) {
	repository(t)
	n, err := notesOf("tree").make(t.Context(), &part{"one", []string{"sleep 3600 & sleep 3600"}}, 1, 100*time.Millisecond)
	if err != nil || n.green() || !strings.Contains(n.String(), "longer than 100ms") {
		t.Errorf("%v, %v", n, err)
	}
}

func TestProof_NamesThePartsThatThereAre(t *testing.T) {
	if _, err := prove(t, parts, "fault"); err == nil || !strings.Contains(err.Error(), "faults") {
		t.Errorf("%v", err)
	}
}
