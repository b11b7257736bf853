// Package demo shows the engine at work: three nodes checksum every file of a directory, one of them is killed half
// way, and everything is checked afterwards.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/progress"
	"taskledger/cmd/node/internal/team"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

const (
	inFlight = 512 // submits and futures at once
	hold     = 8   // attempts that the doomed node has under way when it dies, if it gets so many
)

// Config says what to checksum and where to report.
type Config struct {
	Dir string
	Out io.Writer // the report
	Err io.Writer // a progress bar, if it is a terminal
	Log *slog.Logger
}

// ErrFailed reports that not every checksum is right, or that the ledger is not.
var ErrFailed = errors.New("demo: something is wrong, see the report")

// run is one demo under way.
type run struct {
	Config
	root  string
	files []file
	team  *team.Team
	bar   *progress.Bar

	outcomes []outcome     // by file
	doom     chan struct{} // closed when it is time to die

	mu      sync.Mutex // guards what follows
	ended   int        // outcomes
	held    int        // attempts that wait on the doomed node for its death
	doomed  bool
	death   time.Time
	reruns  int
	revived time.Time // when the first lost attempt was run again
}

// outcome holds the checksum or the error of a file, from its future.
type outcome struct {
	sum string
	err error
}

// Run makes the demo. It returns an error that wraps ErrFailed when a check failed.
func Run(ctx context.Context, cfg Config) error {
	root, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return err
	}
	files, unseen, err := collect(root)
	if err != nil {
		return err
	}
	r := &run{Config: cfg, root: root, files: files, outcomes: make([]outcome, len(files)), doom: make(chan struct{}),
		bar: progress.NewBar(cfg.Err, "files")}
	r.announce()
	servers, err := embedded.StartServers(ctx, embedded.ServersConfig{Log: cfg.Log})
	if err != nil {
		return err
	}
	if r.team, err = team.Start(ctx, servers, cfg.Log, r.behavior); err != nil {
		return errors.Join(err, servers.Close())
	}
	return errors.Join(r.play(ctx, unseen), r.team.Close(), servers.Close())
}

func (r *run) announce() {
	fmt.Fprintf(r.Out, "3 nodes, %d files below %s; node c is killed half way.\n", len(r.files), r.root)
}

// play runs every task, kills node c meanwhile, and reports.
func (r *run) play(ctx context.Context, unseen []error) error {
	begun := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	if len(r.files) == 0 {
		close(r.doom)
	}
	g.Go(func() error { return r.killHalfWay(ctx) })
	g.Go(func() error { return r.submitAll(ctx) })
	err := g.Wait()
	r.bar.Done()
	if err != nil {
		return err
	}
	took := time.Since(begun)
	ctx = context.WithoutCancel(ctx)
	counted, err := r.tally(ctx)
	if err != nil {
		return err
	}
	verified, err := r.verify(ctx)
	if err != nil {
		return err
	}
	return r.report(took, counted, verified, r.check(unseen))
}

func (r *run) submitAll(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	for i := range r.files {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { return r.one(ctx, i) })
	}
	return g.Wait()
}

// one submits the task of a file and waits for its outcome. A failed task is an outcome.
func (r *run) one(ctx context.Context, i int) error {
	f := r.files[i]
	params, err := json.Marshal(builtin.ChecksumParams{Path: f.path})
	if err != nil {
		return err
	}
	future, err := r.submit(ctx, f.id(), params)
	var result builtin.ChecksumResult
	if err == nil {
		var text []byte
		if text, err = future.Wait(ctx); err == nil {
			err = json.Unmarshal(text, &result)
		}
	}
	if _, failed := errors.AsType[*task.Error](err); err != nil && !failed {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	r.outcomes[i] = outcome{result.SHA256, err}
	r.advance()
	return nil
}

// submit asks again while the shard of the task is without an owner: the id makes that harmless.
func (r *run) submit(ctx context.Context, id events.TaskID, params []byte) (*engine.Future, error) {
	for {
		future, err := r.team.Members[0].Submit(ctx, r.behavior(""), params, task.SubmitOptions{ID: id})
		var overload *task.OverloadError
		again := errors.Is(err, store.ErrUnavailable) || errors.Is(err, task.ErrUnknown) || errors.As(err, &overload)
		if !again || ctx.Err() != nil {
			return future, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return future, context.Cause(ctx)
		}
	}
}

// advance counts an outcome.
func (r *run) advance() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended++
	r.bar.Show(int64(r.ended), int64(len(r.files)), "")
	r.judgeLocked()
}

// judgeLocked calls for the death when half of the outcomes are in, or when all the others wait for it.
func (r *run) judgeLocked() {
	half := len(r.files) > 1 && 2*r.ended >= len(r.files)
	if !r.doomed && (half || r.ended+r.held == len(r.files)) {
		r.doomed = true
		close(r.doom)
	}
}

// killHalfWay kills node c.
func (r *run) killHalfWay(ctx context.Context) error {
	select {
	case <-r.doom:
	case <-ctx.Done():
		return nil
	}
	r.mu.Lock()
	r.death = time.Now()
	r.mu.Unlock()
	r.team.Members[2].Crash()
	return nil
}

// behavior is checksum as a node runs it, or as the submitter ("") plans it. A checksum is over in no time: so that the
// doomed node dies with work in its hands, its first attempts wait for that.
func (r *run) behavior(node string) task.Behavior {
	return watched{checksum(r.root), func(ctx context.Context, a task.Attempt) {
		switch {
		case node == "c" && r.hold():
			<-ctx.Done()
		case a.Lost > 0:
			r.rerun()
		}
	}}
}

// hold reports whether an attempt of the doomed node shall wait.
func (r *run) hold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == hold {
		return false
	}
	r.held++
	r.judgeLocked()
	return true
}

func (r *run) rerun() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reruns == 0 {
		r.revived = time.Now()
	}
	r.reruns++
}
