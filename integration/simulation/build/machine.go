package build

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"taskledger/integration/robustness/history"
)

const (
	// timeout bounds the real time that a history takes: a busy machine stretches its seconds of a processor to any
	// length.
	timeout = 10 * time.Minute
	// lastWords bounds the time in which a program that is ended may print its stacks.
	lastWords = 5 * time.Second
)

// environment of the program: one thread, UTC, and no garbage collection, which would depend on more than the seed,
// before a program is larger than any sound one.
var environment = []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=1GiB", "GODEBUG=asyncpreemptoff=1", "GOTRACEBACK=all", "TZ=UTC"}

// hangs begins the last words of a program that computes for ever: it bounds its time of a processor itself.
const hangs = "SIGXCPU:"

// computes is the time of a processor after which a program that is killed computed for ever, and found no time for
// last words: the kernel kills it at twice its own bound.
var computes = time.Minute

// ErrHangs reports that a program was not done when its time was over.
var ErrHangs = errors.New("the program hangs")

// Run runs the program, as Build makes it, with the seed as its argument and returns what it printed. The same
// program and seed print the same wherever the program lies, on processors of one kind. The error says what the program
// wrote about its end; it wraps ErrHangs when the program did not end. env is added to the environment of the program.
func Run(ctx context.Context, program string, seed uint64, env ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, ErrHangs)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, strconv.FormatUint(seed, 10))
	var out, problem bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = append(env, environment...), &out, &problem
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it prints its goroutines
	cmd.WaitDelay = lastWords
	err := cmd.Run()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		told := unframe(problem.Bytes())
		if bytes.Contains(told, []byte(hangs)) || killedComputing(cmd.ProcessState) {
			err = ErrHangs
		}
		return nil, fmt.Errorf("seed %d: %w\n%s", seed, err, told)
	}
	return unframe(out.Bytes()), nil
}

// killedComputing reports whether a program was killed that had computed for too long. s may be nil.
func killedComputing(s *os.ProcessState) bool {
	if s == nil {
		return false
	}
	how, known := s.Sys().(syscall.WaitStatus)
	return known && how.Signal() == syscall.SIGKILL && s.UserTime()+s.SystemTime() >= computes
}

// unframe joins what was written. Under a virtual clock each write is framed: a mark of 4 bytes, the time in 8, the
// length in 4, and the bytes written.
func unframe(framed []byte) (written []byte) {
	const header = 16
	for len(framed) >= header {
		n := min(int(binary.BigEndian.Uint32(framed[header-4:])), len(framed)-header)
		written, framed = append(written, framed[header:header+n]...), framed[header+n:]
	}
	return written
}

// History runs the program once and returns the history that it made. It notes among the problems of the history when
// too little happened to prove anything.
func History(ctx context.Context, program string, seed uint64, env ...string) (*history.Run, error) {
	out, err := Run(ctx, program, seed, env...)
	if err != nil {
		return nil, err
	}
	h := new(history.Run)
	if err := gob.NewDecoder(bytes.NewReader(out)).Decode(h); err != nil {
		return nil, fmt.Errorf("seed %d: read the history: %w", seed, err)
	}
	judge(h)
	return h, nil
}

// A history proves something from so many commands on, so many that were acknowledged, so many acknowledged changes of
// task stores, and so many faults that bit.
const (
	minCommands = 200
	minDone     = 50
	minStored   = 1
	bitLeast    = 5
)

// judge notes among the problems of a history that too little happened.
func judge(h *history.Run) {
	want := func(what string, n, least int) {
		if n < least {
			h.Info.Problems = append(h.Info.Problems, fmt.Sprintf("%d %s, want %d", n, what, least))
		}
	}
	commands, done := Commands(h)
	want("commands", commands, minCommands)
	want("commands that were acknowledged", done, minDone)
	want("changes of task stores that were acknowledged", Stored(h)[history.OK], minStored)
	bit := 0
	for _, f := range h.Faults {
		if f.Proof != "" {
			bit++
		}
	}
	want("faults that bit", bit, bitLeast)
}

// Commands counts what clients asked for to be changed, and what of that was acknowledged. Waits and reads change
// nothing.
func Commands(h *history.Run) (asked, done int) {
	for i := range h.Operations {
		op := &h.Operations[i]
		if op.Verb == history.Wait || op.Verb == history.Get || op.Verb == history.List || op.Verb.Asks() {
			continue
		}
		asked++
		if op.Answer == history.OK {
			done++
		}
	}
	return asked, done
}

// Stored counts the calls of clients of task stores that ask for something to be changed, by their answers.
func Stored(h *history.Run) map[history.Answer]int {
	n := map[history.Answer]int{}
	for i := range h.Items {
		if c := &h.Items[i]; c.Changes() {
			n[c.Answer]++
		}
	}
	return n
}
