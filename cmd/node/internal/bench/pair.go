package bench

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/task"
)

// Pair holds two nodes on temporary data: callers submit at the first one, which runs nothing, and the second one runs
// noop tasks and the behaviors that StartPair was given.
type Pair struct {
	*engine.Client // of the first
	servers        *servers
	a, b           *node
}

// StartPair starts them, with slots for so many callers. Close ends them.
func StartPair(ctx context.Context, callers int, others ...task.Behavior) (*Pair, error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return nil, err
	}
	a, b, err := startNodes(ctx, s, callers, engine.NodeConfig{Behaviors: []task.Behavior{builtin.Noop()}}, nil, others...)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return &Pair{a.Client, s, a, b}, nil
}

// OwnsHere reports whether a session is that of the first node.
func (p *Pair) OwnsHere(session string) bool { return strings.HasPrefix(session, "a-") }

// Other is the client of the node that runs tasks.
func (p *Pair) Other() *engine.Client { return p.b.Client }

// Close ends the nodes and their servers.
func (p *Pair) Close() error { return errors.Join(p.a.close(), p.b.close(), p.servers.close()) }

// SubmitAndWait is one turn of a caller.
func (p *Pair) SubmitAndWait() func(context.Context, int) error { return submitAndWait(p.a) }

// Loop keeps workers busy with op for d. It returns how often it was done, in which time, and the p99 in milliseconds.
func Loop(ctx context.Context, workers int, d time.Duration, op func(ctx context.Context, worker int) error) (count int, took time.Duration, p99 float64, err error) {
	w, err := closedLoop(ctx, workers, d, op)
	return w.count, w.took, quantile(w.times, 0.99), err
}

// CPU is the processor time that this process has used.
func CPU() (time.Duration, error) { return processCPU() }

// Median returns the median of values.
func Median(values []float64) float64 { return median(values) }

// Child is a process of this program that ends with its standard input.
type Child struct {
	In    io.Writer
	Out   interface{ ReadBytes(byte) ([]byte, error) }
	Close func() error
}

// Spawn starts a process by its command line.
func Spawn(self []string) (Child, error) {
	c, err := spawn(self)
	if err != nil {
		return Child{}, err
	}
	return Child{c.in, c.out, c.close}, nil
}
