package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/record"
	"taskledger/integration/robustness/traffic"
)

// A round is two nodes, of which one leaves. Then a task of a shard drawn must run at once on the other, which has nothing else to do.

const (
	// leaversSlots is how many slots each of the two nodes has, unless told otherwise: fewer than there are shards.
	leaversSlots = 2
	// evenWithin bounds how long two nodes take to share the shards, and one to take over.
	evenWithin = 45 * time.Second
	// answerMost is how long an answer is waited for.
	answerMost = 15 * time.Second
)

// ways are how a node leaves, and comes back.
var ways = []struct {
	name        string
	leave, back func(ctx context.Context, r *run, n *node) error
}{
	{"in order", func(_ context.Context, _ *run, n *node) error { return n.running().Stop(stopWithin) }, startAgain},
	{"SIGKILL", func(_ context.Context, _ *run, n *node) error { return n.running().Kill() }, startAgain},
	{"SIGSTOP", func(_ context.Context, _ *run, n *node) error { return n.running().Signal(syscall.SIGSTOP) },
		func(_ context.Context, _ *run, n *node) error { return n.running().Signal(syscall.SIGCONT) }},
}

func startAgain(_ context.Context, r *run, n *node) error {
	n.calls.End()
	return r.startNode(n)
}

// roundsOptions are what the command rounds is told.
type roundsOptions struct {
	rounds, parallel, slots int
	within                  time.Duration
	seed                    uint64
}

func parseRounds(args []string, errs io.Writer) (o roundsOptions, err error) {
	flags := flag.NewFlagSet("rounds", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.IntVar(&o.rounds, "rounds", 200, "how many")
	flags.IntVar(&o.parallel, "parallel", 1, "clusters that share them")
	flags.IntVar(&o.slots, "slots", leaversSlots, "of each node")
	flags.DurationVar(&o.within, "within", time.Second, "after the take-over every task must have been answered")
	flags.Uint64Var(&o.seed, "seed", 1, "of the moments at which nodes leave")
	if err := flags.Parse(args); err != nil {
		return o, errors.Join(errUsage, err)
	}
	if flags.NArg() > 0 || o.rounds < 1 || o.parallel < 1 || o.parallel > o.rounds || o.slots < 1 || o.within <= 0 {
		return o, errUsage
	}
	return o, nil
}

// answersOf are the times that the slowest tasks of the rounds of a way took.
type answersOf struct {
	mu    sync.Mutex
	times map[string][]time.Duration
	late  []string
}

// roundsCommand makes rounds and prints what they came to. All must be in time.
func roundsCommand(ctx context.Context, args []string, out, errs io.Writer) (green bool, err error) {
	o, err := parseRounds(args, errs)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "robustness-")
	if err != nil {
		return false, err
	}
	all := &answersOf{times: map[string][]time.Duration{}}
	err = eachOf(make([]struct{}, o.parallel), sharing(o.parallel, func(i int) error { return makeRounds(ctx, o, i, dir, all) }))
	done := 0
	for _, way := range ways {
		times := slices.Sorted(slices.Values(all.times[way.name]))
		if done += len(times); len(times) > 0 {
			fmt.Fprintf(out, "%-10s %d rounds, answered after p50 %s, max %s\n", way.name, len(times),
				times[len(times)/2].Round(time.Millisecond), times[len(times)-1].Round(time.Millisecond))
		}
	}
	for _, late := range all.late {
		fmt.Fprintln(out, "late:", late)
	}
	fmt.Fprintf(out, "%d of %d rounds within %s of the take-over\n", done-len(all.late), o.rounds, o.within)
	if green = err == nil && done == o.rounds && len(all.late) == 0; green {
		return true, os.RemoveAll(dir)
	}
	fmt.Fprintln(out, "kept:", dir)
	return false, err
}

// sharing numbers calls that are made at a time.
func sharing(n int, f func(i int) error) func(struct{}) error {
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	return func(struct{}) error { return f(<-next) }
}

// makeRounds makes the rounds of one of several clusters that share them.
func makeRounds(ctx context.Context, o roundsOptions, cluster int, dir string, all *answersOf) (err error) {
	r, err := newRun(settings{seed: o.seed + uint64(cluster), nodes: 2, members: 1, slots: o.slots, silent: true, out: dir, kinds: []string{history.KillKind}})
	if err != nil {
		return err
	}
	watch, endWatch := context.WithCancel(ctx)
	defer r.recorder.Wait()
	defer endWatch()
	defer func() { err = errors.Join(err, r.endRounds()) }()
	if err := r.startServing(ctx, watch); err != nil {
		return err
	}
	for i := cluster; i < o.rounds; i += o.parallel {
		way := ways[i/o.parallel%len(ways)]
		last, err := r.leaving(ctx, i, r.nodes[r.random.IntN(2)], way.leave, way.back)
		if err != nil {
			return fmt.Errorf("round %d, %s: %w", i, way.name, err)
		}
		all.add(i, way.name, last, o.within)
	}
	return nil
}

func (a *answersOf) add(round int, way string, last answered, within time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times[way] = append(a.times[way], last.took)
	if last.took > within {
		a.late = append(a.late, fmt.Sprintf("round %d, %s: %s: %s", round, way, last.took.Round(time.Millisecond), last.how))
	}
}

// endRounds ends everything.
func (r *run) endRounds() error {
	err := r.observer.stop()
	return errors.Join(err, eachOf(r.nodes, func(n *node) error {
		if n.running() == nil {
			return nil
		}
		return n.running().Stop(stopWithin)
	}), r.cluster.stop())
}

// leaving makes a round: it returns how long after the take-over the last task was answered, at most answerMost.
func (r *run) leaving(ctx context.Context, round int, n *node, leave, back func(context.Context, *run, *node) error) (last answered, err error) {
	stays := r.nodes[0]
	if stays == n {
		stays = r.nodes[1]
	}
	even := func(owners [record.Shards]string) bool {
		mine, others := 0, 0
		for _, o := range owners {
			switch o {
			case n.sessionID():
				mine++
			case stays.sessionID():
				others++
			}
		}
		return mine > 0 && others > 0 && mine+others == record.Shards
	}
	if err := r.awaitOwners(ctx, even); err != nil {
		return last, err
	}
	if _, err := r.answers(ctx, fmt.Sprint("before-", round), r.random.Perm(record.Shards)...); err != nil { // both have something to do
		return last, err
	}
	clock.Sleep(ctx, time.Duration(rand.New(rand.NewPCG(r.random.Uint64(), 0)).Int64N(int64(time.Second))))
	if err := leave(ctx, r, n); err != nil {
		return last, err
	}
	all := func(owners [record.Shards]string) bool {
		return !slices.ContainsFunc(owners[:], func(o string) bool { return o != stays.sessionID() })
	}
	if err := r.awaitOwners(ctx, all); err != nil {
		return last, err
	}
	last, err = r.answers(ctx, fmt.Sprint("after-", round), r.random.IntN(record.Shards)) // alone: no other task gives slots back
	return last, errors.Join(err, back(ctx, r, n), r.awaitOwners(ctx, even))
}

// awaitOwners waits until the owners of the shards are so.
func (r *run) awaitOwners(ctx context.Context, so func([record.Shards]string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, evenWithin)
	defer cancel()
	for !so(r.recorder.Owners()) {
		if clock.Sleep(ctx, 5*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("the owners of the shards are %q: %w", r.recorder.Owners(), context.Cause(ctx))
		}
	}
	return nil
}

// answered is how long the last of some tasks took to be answered, and what became of it when.
type answered struct {
	took time.Duration
	how  string
}

// answers submits a task of each of the shards at once and returns how long it took until all were answered, at most answerMost.
func (r *run) answers(ctx context.Context, prefix string, of ...int) (last answered, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	var mu sync.Mutex
	var slowest string
	var accepted time.Duration
	err = eachOf(of, func(shard int) error {
		request := traffic.Request{Verb: history.Submit, Task: idIn(prefix, shard), Params: traffic.Params{Millis: 1}}
		op := request.Operation(0, r.begin)
		f := request.Do(ctx, r.observer.Client, &op, r.begin)
		after := time.Since(began)
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			if took := time.Since(began); took > last.took {
				last.took, slowest, accepted = took, request.Task, after
			}
		}()
		if op.Answer != history.OK {
			f.Close()
			if ctx.Err() == nil {
				return fmt.Errorf("submit %s: %s", request.Task, op.Error)
			}
			return nil
		}
		slow := time.AfterFunc(time.Second, func() {
			if why, failed := r.observer.Explain(ctx, events.TaskID(request.Task)); failed == nil {
				mu.Lock()
				defer mu.Unlock()
				last.how += fmt.Sprintf("; after a second %s waits: %s", request.Task, why.Text)
			}
		})
		defer slow.Stop()
		if err := traffic.Wait(ctx, f, &op); err != nil && ctx.Err() == nil {
			return fmt.Errorf("wait for %s: %w", request.Task, err)
		}
		return nil
	})
	mu.Lock()
	defer mu.Unlock()
	last.how = fmt.Sprintf("task %s was accepted after %s", slowest, accepted.Round(time.Millisecond)) + last.how
	if t, failed := r.observer.GetLinear(context.WithoutCancel(ctx), events.TaskID(slowest)); failed == nil {
		since := func(at events.Millis) time.Duration { return at.Time().Sub(began).Round(time.Millisecond) }
		last.how += fmt.Sprintf("; made after %s, attempt %d of %s started after %s, ended after %s", since(t.CreatedAt), t.Attempt, slowest, since(t.StartedAt), since(t.EndedAt))
	}
	return last, err
}
