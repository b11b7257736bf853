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
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
)

// A round is two nodes, of which one leaves. Then a task of a shard drawn must run at once on the other, which has
// nothing else to do.

const (
	// leaversSlots is the default number of slots of each of the two nodes: fewer than there are shards.
	leaversSlots = 2
	// evenWithin bounds how long two nodes take to share the shards, and one to take over.
	evenWithin = 45 * time.Second
	// answerMost bounds the wait for an answer.
	answerMost = 15 * time.Second
)

// ways lists the ways in which a node leaves, and comes back.
var ways = []struct {
	name        string
	leave, back func(ctx context.Context, r *cluster.Cluster, n *cluster.Node) error
}{
	{"in order", func(_ context.Context, _ *cluster.Cluster, n *cluster.Node) error {
		return n.Running().Stop(cluster.StopWithin)
	}, startAgain},
	{"SIGKILL", func(_ context.Context, _ *cluster.Cluster, n *cluster.Node) error { return n.Running().Kill() }, startAgain},
	{"SIGSTOP", func(_ context.Context, _ *cluster.Cluster, n *cluster.Node) error {
		return n.Running().Signal(syscall.SIGSTOP)
	},
		func(_ context.Context, _ *cluster.Cluster, n *cluster.Node) error {
			return n.Running().Signal(syscall.SIGCONT)
		}},
}

func startAgain(_ context.Context, r *cluster.Cluster, n *cluster.Node) error {
	n.Calls.End()
	return r.StartNode(n)
}

// roundsOptions holds the flags of the command rounds.
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
	err = cluster.AtOnce(o.parallel, func(i int) error { return makeRounds(ctx, o, i, dir, all) })
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

// makeRounds makes the rounds of one of several clusters that share them.
func makeRounds(ctx context.Context, o roundsOptions, share int, dir string, all *answersOf) (err error) {
	s := cluster.Settings{Seed: o.seed + uint64(share), Nodes: 2, Members: 1, Slots: o.slots, Silent: true, Out: dir}
	r, err := cluster.New(s, 0, rand.New(rand.NewPCG(s.Seed, 0)))
	if err != nil {
		return err
	}
	watch, endWatch := context.WithCancel(ctx)
	defer r.Keys.Wait()
	defer endWatch()
	defer func() { err = errors.Join(err, endRounds(r)) }()
	if err := r.StartServing(ctx, watch); err != nil {
		return err
	}
	for i := share; i < o.rounds; i += o.parallel {
		way := ways[i/o.parallel%len(ways)]
		last, err := leaving(ctx, r, i, r.Nodes[r.Random.IntN(2)], way.leave, way.back)
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
func endRounds(r *cluster.Cluster) error {
	err := r.Observer.Close()
	return errors.Join(err, cluster.EachOf(r.Nodes, func(n *cluster.Node) error {
		if n.Running() == nil {
			return nil
		}
		return n.Running().Stop(cluster.StopWithin)
	}), r.Servers.Stop())
}

// leaving makes a round: it returns how long after the take-over the last task was answered, at most answerMost.
func leaving(ctx context.Context, r *cluster.Cluster, round int, n *cluster.Node, leave, back func(context.Context, *cluster.Cluster, *cluster.Node) error) (last answered, err error) {
	stays := r.Nodes[0]
	if stays == n {
		stays = r.Nodes[1]
	}
	even := func(owners [cluster.Shards]string) bool {
		mine, others := 0, 0
		for _, o := range owners {
			switch o {
			case n.SessionID():
				mine++
			case stays.SessionID():
				others++
			}
		}
		return mine > 0 && others > 0 && mine+others == cluster.Shards
	}
	if err := awaitOwners(ctx, r, even); err != nil {
		return last, err
	}
	if _, err := askShards(ctx, r, fmt.Sprint("before-", round), r.Random.Perm(cluster.Shards)...); err != nil { // both have something to do
		return last, err
	}
	cluster.Sleep(ctx, time.Duration(rand.New(rand.NewPCG(r.Random.Uint64(), 0)).Int64N(int64(time.Second))))
	if err := leave(ctx, r, n); err != nil {
		return last, err
	}
	all := func(owners [cluster.Shards]string) bool {
		return !slices.ContainsFunc(owners[:], func(o string) bool { return o != stays.SessionID() })
	}
	if err := awaitOwners(ctx, r, all); err != nil {
		return last, err
	}
	last, err = askShards(ctx, r, fmt.Sprint("after-", round), r.Random.IntN(cluster.Shards)) // alone: no other task gives slots back
	return last, errors.Join(err, back(ctx, r, n), awaitOwners(ctx, r, even))
}

// awaitOwners waits until the owners of the shards are so.
func awaitOwners(ctx context.Context, r *cluster.Cluster, so func([cluster.Shards]string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, evenWithin)
	defer cancel()
	for !so(r.Keys.Owners()) {
		if cluster.Sleep(ctx, 5*time.Millisecond); ctx.Err() != nil {
			return fmt.Errorf("the owners of the shards are %q: %w", r.Keys.Owners(), context.Cause(ctx))
		}
	}
	return nil
}

// answered holds the time that the last of some tasks took to be answered, and what became of it when.
type answered struct {
	took time.Duration
	how  string
}

// askShards submits a task of each of the shards at once and returns how long it took until all were answered, at most
// answerMost.
func askShards(ctx context.Context, r *cluster.Cluster, prefix string, of ...int) (last answered, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	var mu sync.Mutex
	var slowest string
	var accepted time.Duration
	err = cluster.EachOf(of, func(shard int) error {
		request := traffic.Request{Verb: history.Submit, Task: cluster.IDIn(prefix, shard), Params: traffic.Params{Millis: 1}}
		op := request.Operation(0, r.Begin)
		f := request.Do(ctx, r.Observer.Client, &op, r.Begin)
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
			if why, failed := r.Observer.Explain(ctx, events.TaskID(request.Task)); failed == nil {
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
	if t, failed := r.Observer.GetLinear(context.WithoutCancel(ctx), events.TaskID(slowest)); failed == nil {
		since := func(at events.Millis) time.Duration { return at.Time().Sub(began).Round(time.Millisecond) }
		last.how += fmt.Sprintf("; made after %s, attempt %d of %s started after %s, ended after %s", since(t.CreatedAt), t.Attempt, slowest, since(t.StartedAt), since(t.EndedAt))
	}
	return last, err
}
