// Package machine runs simulated histories: each in a WebAssembly instance of its own, whose clock and randomness come
// from a seed. Go's runtime for WebAssembly has one thread and never preempts, so a seed determines everything: the order
// of goroutines, of map keys and of select, every drawn id and every moment.
package machine

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"taskledger/integration/robustness/history"
)

const (
	// readTakes is how far the clock moves when it is read: work takes time, and who spins until a moment gets there.
	readTakes = 200 * time.Nanosecond
	// yieldTakes is how far it moves when the program has nothing to do for now.
	yieldTakes = time.Microsecond
	// lifetime bounds what the clock of an instance shows. A program that is still not done hangs.
	lifetime = 5 * time.Minute
	// patience bounds what an instance takes of the real time: a program that computes for ever does not read its clock.
	patience = 2 * time.Minute
	// memoryPages bounds the memory of an instance, in pages of 64 KiB: 256 MiB. It is reserved whole: growing would copy.
	memoryPages = 4 << 10
)

// epoch is what the clock shows first.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ErrHangs reports that the program was not done when its time was over.
var ErrHangs = errors.New("the program hangs")

// Machine is a compiled program. Its methods may be called concurrently.
type Machine struct {
	runtime wazero.Runtime
	program wazero.CompiledModule
}

// Load compiles the program, which takes seconds. The caller must Close the machine.
func Load(ctx context.Context, program []byte) (*Machine, error) {
	config := wazero.NewRuntimeConfigCompiler().WithMemoryLimitPages(memoryPages).WithMemoryCapacityFromMax(true).WithCloseOnContextDone(true)
	m := &Machine{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	_, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime)
	if err == nil {
		m.program, err = m.runtime.CompileModule(ctx, program)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load program: %w", err), m.Close(ctx))
	}
	return m, nil
}

// Close ends the machine; no Run may be under way.
func (m *Machine) Close(ctx context.Context) error { return m.runtime.Close(ctx) }

// Run runs the program once, with the seed as its argument, and returns what it printed. The same program and seed print
// the same. The error says what the program wrote about its end; it wraps ErrHangs when the program did not end.
func (m *Machine) Run(ctx context.Context, seed uint64) ([]byte, error) {
	var out, problem bytes.Buffer
	clock := new(clock)
	config := wazero.NewModuleConfig().WithName("").WithArgs("world", strconv.FormatUint(seed, 10)).
		WithStdout(&out).WithStderr(&problem).WithRandSource(random(seed)).
		WithNanotime(clock.nanotime, 1).WithWalltime(clock.walltime, 1).WithNanosleep(clock.sleep).WithOsyield(clock.yield)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, ErrHangs)
	defer cancel()
	instance, err := m.runtime.InstantiateModule(ctx, m.program, config)
	if instance != nil {
		err = errors.Join(err, instance.Close(context.WithoutCancel(ctx)))
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("seed %d, %s after its beginning: %w\n%s", seed, clock.passed, err, problem.Bytes())
	}
	return out.Bytes(), nil
}

func random(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

// clock is the time of one instance.
type clock struct{ passed time.Duration }

func (c *clock) pass(d time.Duration) time.Time {
	if c.passed += d; c.passed > lifetime {
		panic(ErrHangs) // ends the instance
	}
	return epoch.Add(c.passed)
}

func (c *clock) nanotime() int64 { return c.pass(readTakes).UnixNano() }

func (c *clock) walltime() (int64, int32) {
	now := c.pass(readTakes)
	return now.Unix(), int32(now.Nanosecond())
}

func (c *clock) sleep(ns int64) { c.pass(max(time.Duration(ns), yieldTakes)) }

func (c *clock) yield() { c.pass(yieldTakes) }

// History runs the program once and returns the history that it made. It notes among the problems of the history when
// too little happened to prove anything.
func (m *Machine) History(ctx context.Context, seed uint64) (*history.Run, error) {
	out, err := m.Run(ctx, seed)
	if err != nil {
		return nil, err
	}
	h := new(history.Run)
	if err := gob.NewDecoder(bytes.NewReader(out)).Decode(h); err != nil {
		return nil, fmt.Errorf("seed %d: read the history: %w", seed, err)
	}
	if n := Commands(h); n < minCommands {
		h.Info.Problems = append(h.Info.Problems, fmt.Sprintf("%d commands, want %d", n, minCommands))
	}
	bit := 0
	for _, f := range h.Faults {
		if f.Proof != "" {
			bit++
		}
	}
	if bit < minFaults {
		h.Info.Problems = append(h.Info.Problems, fmt.Sprintf("%d faults that bit, want %d", bit, minFaults))
	}
	return h, nil
}

// A history proves something from so many commands and faults on.
const (
	minCommands = 200
	minFaults   = 5
)

// Commands counts what clients asked for, waiting aside.
func Commands(h *history.Run) (n int) {
	for i := range h.Operations {
		if h.Operations[i].Verb != history.Wait {
			n++
		}
	}
	return n
}
