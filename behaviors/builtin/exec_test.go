//go:build unix

package builtin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

// shell allows sh, so that tests can say in a line what a program does.
func shell(grace time.Duration) task.Behavior {
	return builtin.Exec(builtin.ExecOptions{Allow: []string{"sh"}, Grace: grace})
}

func script(text string) builtin.ExecParams {
	return builtin.ExecParams{Program: "sh", Args: []string{"-c", text}}
}

// pipe makes a named pipe that a script writes to. The reader sees its end when every process that has it open is gone.
func pipe(t *testing.T) (path string, open func() *bufio.Reader) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	return path, func() *bufio.Reader {
		f, err := os.Open(path)
		must(t, err)
		t.Cleanup(func() { f.Close() })
		must(t, f.SetReadDeadline(time.Now().Add(10*time.Second)))
		return bufio.NewReader(f)
	}
}

// start runs an attempt and returns where its outcome comes.
func start(ctx context.Context, t *testing.T, b task.Behavior, p builtin.ExecParams) <-chan task.Outcome {
	t.Helper()
	a := testkit.Attempt(t, p)
	outcome := make(chan task.Outcome, 1)
	go func() { outcome <- b.Run(ctx, a) }()
	return outcome
}

func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	text, err := r.ReadString('\n')
	must(t, err)
	return strings.TrimSpace(text)
}

// wantEnd checks that every process that has the pipe open has ended.
func wantEnd(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	rest, err := io.ReadAll(r)
	if err != nil {
		t.Errorf("a process lives on: %v", err)
	}
	return string(rest)
}

func TestExec_ReturnsOutputsAndExitCode(t *testing.T) {
	got, o := run[builtin.ExecResult](t.Context(), t, shell(0), script("echo out; echo err >&2"))
	if want := (builtin.ExecResult{Stdout: "out\n", Stderr: "err\n"}); o.Err != nil || got != want {
		t.Errorf("result %+v, failure %+v", got, o.Err)
	}
}

func TestExec_AnotherExitCodeIsAFailureThatIsRetried(t *testing.T) {
	_, o := run[builtin.ExecResult](t.Context(), t, shell(0), script("echo out; echo why >&2; exit 3"))
	e := testkit.WantFailure(t, o, builtin.CodeExit, false)
	if e.Properties["exit_code"] != "3" || e.Properties["stderr"] != "why\n" || e.Properties["stdout"] != "out\n" {
		t.Errorf("properties %v", e.Properties)
	}
	_, o = run[builtin.ExecResult](t.Context(), t, shell(0), script("kill -9 $$"))
	e = testkit.WantFailure(t, o, builtin.CodeExit, false)
	if e.Properties["exit_code"] != "-1" || !strings.Contains(e.Message, "killed") {
		t.Errorf("error %+v", e)
	}
}

func TestExec_TheEnvironmentIsWhatIsGivenAndPATH(t *testing.T) {
	t.Setenv("SECRET", "s")
	b := builtin.Exec(builtin.ExecOptions{Allow: []string{"env"}, Env: []string{"A", "B"}})
	params := builtin.ExecParams{Program: "env", Env: map[string]string{"A": "1", "B": ""}}
	got, o := run[builtin.ExecResult](t.Context(), t, b, params)
	if want := "PATH=" + os.Getenv("PATH") + "\nA=1\nB=\n"; o.Err != nil || got.Stdout != want {
		t.Errorf("environment %q, want %q; failure %+v", got.Stdout, want, o.Err)
	}
}

// With each of these many a program runs code of whoever sets it; no list of them is complete.
func TestExec_AVariableThatIsNotAllowedIsRefused(t *testing.T) {
	b := builtin.Exec(builtin.ExecOptions{Allow: []string{"env"}, Env: []string{"HOME"}})
	with := func(name string) task.Outcome {
		params := builtin.ExecParams{Program: "env", Env: map[string]string{name: "x"}}
		return b.Run(t.Context(), testkit.Attempt(t, params))
	}
	for _, name := range []string{
		"LD_PRELOAD", "BASH_ENV", "GCONV_PATH", "GIT_SSH_COMMAND", "OPENSSL_CONF", "PYTHONPATH", "home", "X",
	} {
		testkit.WantFailure(t, with(name), builtin.CodeRefused, true)
	}
	for _, name := range []string{"HOME", "LANG", "LC_ALL", "TZ"} {
		if o := with(name); o.Err != nil {
			t.Errorf("%s is refused: %+v", name, o.Err)
		}
	}
}

func TestExec_RunsInTheDirectoryGiven(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for given, want := range map[string]string{"": "/", dir: dir} {
		p := script("pwd -P")
		p.Dir = given
		if got, o := run[builtin.ExecResult](t.Context(), t, shell(0), p); o.Err != nil || got.Stdout != want+"\n" {
			t.Errorf("ran in %q, want %q; failure %+v", got.Stdout, want, o.Err)
		}
	}
}

func TestExec_WhatCannotBeStartedIsAFinalFailure(t *testing.T) {
	dir := t.TempDir()
	plain, silent, broken := filepath.Join(dir, "plain"), filepath.Join(dir, "silent"), filepath.Join(dir, "broken")
	must(t,
		os.WriteFile(plain, []byte("text"), 0o600),
		os.WriteFile(silent, []byte("#!/bin/sh\n"), 0o700),
		os.WriteFile(broken, []byte("no format at all"), 0o700),
	)
	allow := []string{"sh", "no-such-program", plain, "./silent", "/missing", broken, silent}
	b := builtin.Exec(builtin.ExecOptions{Allow: allow})
	must(t, os.Remove(silent))
	for _, c := range []struct {
		name   string
		params builtin.ExecParams
		code   string
	}{
		{"not allowed", builtin.ExecParams{Program: "ls"}, builtin.CodeRefused},
		{"allowed by another name", builtin.ExecParams{Program: "/bin/sh"}, builtin.CodeRefused},
		{"path that climbs", builtin.ExecParams{Program: "../bin/sh"}, builtin.CodeRefused},
		{"not found", builtin.ExecParams{Program: "no-such-program"}, builtin.CodeNotFound},
		{"no such path", builtin.ExecParams{Program: "/missing"}, builtin.CodeNotFound},
		{"removed since", builtin.ExecParams{Program: silent}, builtin.CodeNotFound},
		{"not executable", builtin.ExecParams{Program: plain}, builtin.CodePermission},
		{"no program", builtin.ExecParams{Program: broken}, builtin.CodeInvalid},
		{"relative", builtin.ExecParams{Program: "./silent"}, builtin.CodeInvalid},
		{"zero byte", builtin.ExecParams{Program: "sh", Args: []string{"a\x00b"}}, builtin.CodeInvalid},
		{"no such directory", builtin.ExecParams{Program: "sh", Dir: filepath.Join(dir, "none")}, builtin.CodeNotFound},
		{"file as directory", builtin.ExecParams{Program: "sh", Dir: plain}, builtin.CodeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, o := run[builtin.ExecResult](t.Context(), t, b, c.params)
			testkit.WantFailure(t, o, c.code, true)
		})
	}
}

func TestExec_RefusesParametersThatNoNodeCouldRun(t *testing.T) {
	env := func(name string) builtin.ExecParams {
		return builtin.ExecParams{Program: "sh", Env: map[string]string{name: "x"}}
	}
	for name, params := range map[string]builtin.ExecParams{
		"no program":     {},
		"relative dir":   {Program: "sh", Dir: "tmp"},
		"timeout":        {Program: "sh", Timeout: -1},
		"no name":        env(""),
		"equals in name": env("A=B"),
		"PATH":           env("PATH"),
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(params)
			must(t, err)
			_, err = shell(0).Plan(raw, epoch)
			if _, ok := errors.AsType[*store.InvalidError](err); !ok {
				t.Errorf("error %v, want an InvalidError", err)
			}
		})
	}
}

func TestExec_OutputsAreCutToTheirEnds(t *testing.T) {
	for name, char := range map[string]string{"plain": "x", "binary": `\001`} {
		t.Run(name, func(t *testing.T) {
			got, o := run[builtin.ExecResult](t.Context(), t, shell(0),
				script(`head -c 400000 /dev/zero | tr '\000' '`+char+`' | tee /dev/stderr; echo end; echo end >&2`))
			if o.Err != nil || len(o.Result) > events.MaxPayloadBytes {
				t.Fatalf("result of %d bytes, failure %+v", len(o.Result), o.Err)
			}
			for _, text := range []string{got.Stdout, got.Stderr} {
				const most = builtin.ExcerptBytes
				if len(text) > most || len(text) < most/4 || !strings.HasSuffix(text, "end\n") {
					t.Errorf("output of %d bytes that ends in %q", len(text), text[len(text)-4:])
				}
			}
			if !got.StdoutTruncated || !got.StderrTruncated {
				t.Error("a cut output is not said to be")
			}
		})
	}
}

func TestExec_CancelEndsTheProgramAndItsChildren(t *testing.T) {
	path, open := pipe(t)
	cause := errors.New("cancelled by Ada")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	outcome := start(ctx, t, shell(0), script("exec >"+path+"; sh -c 'sleep 60; :' & echo ready; wait"))
	r := open()
	line(t, r)
	cancel(cause)
	if e := testkit.WantFailure(t, <-outcome, "failed", false); e.Message != cause.Error() {
		t.Errorf("message %q, want the cause", e.Message)
	}
	wantEnd(t, r)
}

func TestExec_AProgramMayCleanUpWithinTheGrace(t *testing.T) {
	path, open := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	cleans := script("exec >" + path + "; trap 'echo bye; exit 0' TERM; sleep 60 & echo ready; wait")
	outcome := start(ctx, t, shell(time.Minute), cleans)
	r := open()
	line(t, r)
	cancel()
	// A program that was told to stop has not succeeded, whatever it says.
	testkit.WantFailure(t, <-outcome, "failed", false)
	if rest := wantEnd(t, r); rest != "bye\n" {
		t.Errorf("program wrote %q at its end", rest)
	}
}

func TestExec_TheWholeGroupIsAskedToEnd(t *testing.T) {
	path, open := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	outcome := start(ctx, t, shell(5*time.Second), script("exec >"+path+`; trap : TERM
		sh -c 'trap "echo bye; exit" TERM; sleep 60 & echo ready; wait' & wait; wait`))
	r := open()
	line(t, r)
	cancel()
	testkit.WantFailure(t, <-outcome, "failed", false)
	if rest := wantEnd(t, r); rest != "bye\n" {
		t.Errorf("the child wrote %q at its end", rest)
	}
}

func TestExec_NothingStartsOnceTheContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := script("")
	p.Dir = filepath.Join(t.TempDir(), "none") // an attempt to start would fail for this
	_, o := run[builtin.ExecResult](ctx, t, shell(0), p)
	if e := testkit.WantFailure(t, o, "failed", false); e.Message != context.Canceled.Error() {
		t.Errorf("message %q", e.Message)
	}
}

func TestExec_WhatIgnoresSIGTERMIsKilledAfterTheGrace(t *testing.T) {
	path, open := pipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	outcome := start(ctx, t, shell(50*time.Millisecond),
		script("exec >"+path+"; trap '' TERM; (while :; do sleep 60; done) & echo ready; while :; do sleep 60; done"))
	r := open()
	line(t, r)
	cancel()
	testkit.WantFailure(t, <-outcome, "failed", false)
	wantEnd(t, r)
}

func TestExec_ATimeoutIsAFailureWithTheOutput(t *testing.T) {
	p := script("echo started; sleep 60")
	p.Timeout = builtin.Duration(100 * time.Millisecond)
	_, o := run[builtin.ExecResult](t.Context(), t, shell(0), p)
	if e := testkit.WantFailure(t, o, events.CodeTimeout, false); !strings.Contains(e.Message, "100ms") {
		t.Errorf("error %+v", e)
	}
}

func TestExec_NothingOfTheGroupOutlivesTheProgram(t *testing.T) {
	path, open := pipe(t)
	outcome := start(t.Context(), t, shell(0), script("exec 3>"+path+"; sleep 60 & echo done"))
	r := open()
	o := <-outcome
	if o.Err != nil || !strings.Contains(string(o.Result), "done") {
		t.Errorf("outcome %s, %+v", o.Result, o.Err)
	}
	wantEnd(t, r)
}

func TestExec_AProcessThatLeftTheGroupHoldsNobodyUp(t *testing.T) {
	path, open := pipe(t)
	must(t, syscall.Mkfifo(path+".go", 0o600))
	// The inner shell keeps the program's output open. The program ends only when the inner one has left the group.
	outcome := start(t.Context(), t, shell(0),
		script("echo done; setsid sh -c 'echo $$ >"+path+"; exec sleep 60' & read go <"+path+".go"))
	r := open()
	escaped, err := strconv.Atoi(line(t, r))
	must(t, err)
	defer func() { must(t, syscall.Kill(escaped, syscall.SIGKILL)) }()
	must(t, os.WriteFile(path+".go", []byte("go\n"), 0))
	if o := <-outcome; o.Err != nil || !strings.Contains(string(o.Result), "done") {
		t.Errorf("outcome %s, %+v", o.Result, o.Err)
	}
}

// What an operator fixes no submitter changes.
func TestExec_FixedArgumentsLeaveTheirPlaceAloneToTheSubmitter(t *testing.T) {
	b := builtin.Exec(builtin.ExecOptions{Allow: []string{"around=echo a {} z", "alone=/bin/echo fixed"}})
	for _, c := range []struct {
		params builtin.ExecParams
		want   string // "" = it is refused
	}{
		{builtin.ExecParams{Program: "around", Args: []string{"{}", "b c"}}, "a {} b c z\n"},
		{builtin.ExecParams{Program: "around"}, "a z\n"},
		{builtin.ExecParams{Program: "alone"}, "fixed\n"},
		{builtin.ExecParams{Program: "alone", Args: []string{"more"}}, ""},
		{builtin.ExecParams{Program: "echo"}, ""},
		{builtin.ExecParams{Program: "/bin/echo"}, ""},
		{builtin.ExecParams{Program: "alone", Dir: "/tmp"}, ""},
	} {
		got, o := run[builtin.ExecResult](t.Context(), t, b, c.params)
		if c.want == "" {
			testkit.WantFailure(t, o, builtin.CodeRefused, true)
		} else if o.Err != nil || got.Stdout != c.want {
			t.Errorf("%+v: %q, %+v; want %q", c.params, got.Stdout, o.Err, c.want)
		}
	}
	for _, entry := range []string{"=echo", "a=", "a= ", "a=echo {} {}", "a=./echo", "./echo", "a=no-such-program"} {
		if builtin.CheckAllow(entry) == nil {
			t.Errorf("%q is allowed", entry)
		}
	}
}

// Programs that are many choose by the name under which they were called.
func TestExec_AProgramWithFixedArgumentsIsCalledByItsOwnName(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Log("nothing tells here how a program was called")
		return
	}
	b := builtin.Exec(builtin.ExecOptions{Allow: []string{"rm=/bin/cat /proc/self/cmdline"}})
	got, o := run[builtin.ExecResult](t.Context(), t, b, builtin.ExecParams{Program: "rm"})
	if o.Err != nil || !strings.HasPrefix(got.Stdout, "/bin/cat") {
		t.Errorf("%q, %+v; want its own name", got.Stdout, o.Err)
	}
}

// written is a log in the making: the lines of each output.
type written struct {
	mu    sync.Mutex
	lines map[slog.Level]*strings.Builder
	took  func() // called by each Write
	err   error
}

func (w *written) output(level slog.Level, held bool) io.Writer {
	if !held {
		panic("a program is not held")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lines == nil {
		w.lines = map[slog.Level]*strings.Builder{}
	}
	b := &strings.Builder{}
	w.lines[level] = b
	return writerFunc(func(p []byte) (int, error) {
		if w.took != nil {
			w.took()
		}
		if w.err != nil {
			return 0, w.err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return b.Write(p)
	})
}

type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// logTo runs a script in an attempt with a log.
func logTo(t *testing.T, w *written, text string) (r builtin.ExecResult, o task.Outcome) {
	t.Helper()
	a := testkit.Attempt(t, script(text))
	a.Output = w.output
	o = shell(0).Run(t.Context(), a)
	if o.Err == nil {
		must(t, json.Unmarshal(o.Result, &r))
	}
	return r, o
}

func TestExec_OutputsGoToTheLogByTheirLevels(t *testing.T) {
	var log written
	r, o := logTo(t, &log, "for i in 1 2 3; do echo out $i; echo err $i >&2; done")
	const out, err = "out 1\nout 2\nout 3\n", "err 1\nerr 2\nerr 3\n"
	if o.Err != nil || r.Stdout != out || r.Stderr != err {
		t.Errorf("result %+v, failure %+v", r, o.Err)
	}
	if got := log.lines[slog.LevelInfo].String(); got != out {
		t.Errorf("information %q, want %q", got, out)
	}
	if got := log.lines[slog.LevelError].String(); got != err {
		t.Errorf("errors %q, want %q", got, err)
	}
}

// A log that takes nothing any more, as after the attempt, must not fill the pipe of a program that goes on.
func TestExec_AProgramGoesOnWithoutALog(t *testing.T) {
	log := written{err: io.ErrClosedPipe}
	const many = "i=0; while [ $i -lt 3000 ]; do echo a line of forty bytes and some more of them; i=$((i+1)); done; echo end"
	r, o := logTo(t, &log, many)
	if o.Err != nil || !strings.HasSuffix(r.Stdout, "end\n") {
		t.Errorf("result ends with %.20q, failure %+v", r.Stdout[max(0, len(r.Stdout)-20):], o.Err)
	}
}

// A log may take its time until nobody reads the pipe any more. What the program has written is lost neither to the
// log nor to the result.
func TestExec_AllOutputIsKeptHoweverLongTheLogTakes(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	b := builtin.Exec(builtin.ExecOptions{
		Allow: []string{"sh"},
		Hold:  func(int) func() { return func() { close(ended) } },
	})
	first := true
	log := written{took: func() {
		if !first {
			return
		}
		first = false
		<-ended
		late, cancel := context.WithTimeout(t.Context(), builtin.DrainTime*3/2)
		defer cancel()
		<-late.Done()
	}}
	a := testkit.Attempt(t, script("echo first; sleep 0.3; echo second; echo last"))
	a.Output = log.output
	o := b.Run(t.Context(), a)
	var r builtin.ExecResult
	must(t, json.Unmarshal(o.Result, &r))
	const all = "first\nsecond\nlast\n"
	if got := log.lines[slog.LevelInfo].String(); o.Err != nil || r.Stdout != all || got != all {
		t.Errorf("result %q, log %q, failure %+v; want %q", r.Stdout, got, o.Err, all)
	}
}
