// Package cluster runs the processes of a history: servers, nodes, clients and who types commands, with the links
// between them and what they tell of themselves. Each process is this same binary in a Role. What disturbs them, and
// what becomes of their record, is left to others.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/task"
)

const (
	slots = 64
	// TTL is the time to live of the sessions of nodes: the shortest that they accept.
	TTL = 3 * time.Second
	// EndWithin bounds the time after the last fault within which every acknowledged task must have ended.
	EndWithin = 60 * time.Second
	// warmWithin bounds how long traffic takes to flow.
	warmWithin = 30 * time.Second
	// addedFor bounds the wait for traffic before delayed tasks are added, and is half of their delay.
	addedFor = 5 * time.Second
	// enoughInFlight are waited for: until the second fault of a round begins, some of them end.
	enoughInFlight = 25
	// farAhead is the time by which a task must be due after the time of its shard to count as scheduled for later,
	// where a wrong clock may have done that.
	farAhead = 5 * time.Minute
	// smallQuota is the quota, in bytes, of members that faults fill.
	smallQuota = 24 << 20
	// growingQuota is the quota, in bytes, of members whose shards grow until they take snapshots, and are trimmed: to
	// about growingBytes in all, by submits that carry growingPad more at most.
	growingQuota = 96 << 20
	growingBytes = 24 << 20
	growingPad   = 48 << 10
	// submitsPerSecond is about how many all clients make.
	submitsPerSecond = 40
)

// crowdedWithin bounds that time where slots are few.
const crowdedWithin = 2 * time.Minute

// Settings holds the settings of one history.
type Settings struct {
	Seed     uint64
	Nodes    int
	Members  int
	Slots    int           // of each node; 0 = drawn by the seed
	Silent   bool          // nodes submit nothing
	Duration time.Duration // of the time with faults
	Kinds    []string      // of faults; none: drawn by the seed
	Out      string        // directory, with a folder for each history
	Command  string        // that repeats it
	Program  string        // path of the one whose commands are typed; "" = nobody types
	Beside   bool          // others are made at the same time: whose a goroutine is that remains, cannot be told
}

// Cluster is one history in the making: its processes, and what is recorded of them. What others note of it is under a
// lock while the run lasts, and to be read when all has ended.
type Cluster struct {
	*Servers
	Settings   Settings
	Needs      Need // of its faults
	Random     *rand.Rand
	Keys       *Keys
	Operations *traffic.Operations
	Executions *traffic.Executions
	Nodes      []*Node
	Clients    []*Client
	Terminal   *Terminal   // nil where nobody types
	Observer   *Connection // nil before the servers serve

	notes    sync.Mutex
	Faults   []history.Fault
	Problems []string
	Damage   []history.Finding
	Killed   []string        // sources of the processes of nodes and clients that could not clean up
	Aliens   map[int]bool    // shards where an alien entry was written
	Later    map[string]bool // tasks that a wrong clock has scheduled for much later, by the time of their shards
}

// DataDir is where servers keep their data, inside the directory of a history.
const DataDir = "data"

// New prepares a run that draws from random. Its directory must not be there yet.
func New(s Settings, needs Need, random *rand.Rand) (*Cluster, error) {
	r := &Cluster{Settings: s, Needs: needs, Random: random, Operations: traffic.NewOperations(), Executions: traffic.NewExecutions(), Aliens: map[int]bool{},
		Keys: &Keys{}, Later: map[string]bool{}}
	dir := filepath.Join(s.Out, fmt.Sprint("seed-", s.Seed))
	if err := os.MkdirAll(s.Out, 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil { // servers would go on with what an earlier history has left
		return nil, err
	}
	r.Servers = &Servers{Dir: dir, Data: filepath.Join(dir, DataDir), Begin: history.Now()}
	return r, nil
}

// Submit has clients and nodes make requests, or returns when they have made their last one.
func (r *Cluster) Submit(ctx context.Context, on bool) error {
	order := func(p *Process) error {
		_, err := p.Order(ctx, Order{Submit: &on})
		return UnlessReplaced(err)
	}
	err := EachOf(r.Clients, func(c *Client) error { return order(c.Process) })
	return errors.Join(err, EachOf(r.Nodes, func(n *Node) error { return order(n.Running()) }))
}

// Start starts the servers, the nodes and the clients. Keys are followed until watch ends.
func (r *Cluster) Start(ctx, watch context.Context) error {
	if err := r.StartServing(ctx, watch); err != nil {
		return err
	}
	for i := range 2 {
		if err := r.NewClient(i); err != nil {
			return err
		}
	}
	if err := r.startTerminal(); err != nil {
		return err
	}
	return EachOf(r.Clients, func(c *Client) error { return r.StartClient(ctx, c) })
}

// StartServing starts all but the clients, and follows the keys until watch ends.
func (r *Cluster) StartServing(ctx, watch context.Context) error {
	quota := int64(0)
	if r.pad() > 0 {
		quota = growingQuota
	}
	if r.Needs.Has(NeedQuota) {
		quota = smallQuota
	}
	if err := StartServers(ctx, r.Servers, r.Settings.Members, quota, r.Needs.nats()); err != nil {
		return err
	}
	r.Keys.Start(watch, r.Begin, r.Observers())
	for i := range r.Settings.Nodes {
		if err := r.NewNode(i); err != nil {
			return err
		}
	}
	err := EachOf(r.Nodes, func(n *Node) error {
		if err := r.StartNode(n); err != nil {
			return err
		}
		return r.awaitNode(ctx, n)
	})
	if err != nil {
		return err
	}
	return r.startObserver(ctx)
}

// crowded reports whether every node has few slots: in every fourth history.
func (r *Cluster) crowded() bool { return r.Settings.Seed%4 == 1 }

// slotsOf returns the number of slots of a node: few each where it is crowded, elsewhere one has many.
func (r *Cluster) slotsOf(i int) int {
	random := rand.New(rand.NewPCG(r.Settings.Seed, uint64(i)))
	few := []int{1, 2, runtime.NumCPU()}
	switch {
	case r.Settings.Slots > 0:
		return r.Settings.Slots
	case r.crowded():
		return few[random.IntN(len(few))]
	case i == 0:
		return slots
	}
	return append(few, slots, slots)[random.IntN(len(few)+2)]
}

// Limits bounds by behavior the attempts that a node makes at once, where a fault needs that.
func (r *Cluster) Limits() map[string]int {
	if r.Needs.Has(NeedLimits) {
		return map[string]int{"again": 2}
	}
	return nil
}

// Bound returns the time after the last fault within which every acknowledged task must have ended.
func (r *Cluster) Bound() time.Duration {
	if r.crowded() {
		return crowdedWithin
	}
	return EndWithin
}

// pad returns the number of bytes that submits carry in vain: in every other history so many that shards take
// snapshots, unless a fault fills etcd, or etcd would be full, since nothing is archived for minutes.
func (r *Cluster) pad() int {
	if r.Settings.Seed%2 == 1 || r.Needs.Has(NeedQuota|NeedSmall) {
		return 0
	}
	return min(growingPad, int(growingBytes/(submitsPerSecond*(1+r.Settings.Duration/time.Second))))
}

// Archives reports whether nodes trim the journals, of what NATS then keeps: where these grow, and it is there.
func (r *Cluster) Archives() bool { return r.pad() > 0 && r.Needs.nats() != NATSAbsent }

// Problem notes why the run proves nothing.
func (r *Cluster) Problem(format string, args ...any) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Broken notes what the product failed at.
func (r *Cluster) Broken(invariant, format string, args ...any) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.Damage = append(r.Damage, history.Finding{Invariant: invariant, Text: fmt.Sprintf(format, args...)})
}

// WarmUp waits until there is enough traffic for a fault to meet. A machine so slow that tasks end as fast as clients
// submit them gets delayed ones beside.
func (r *Cluster) WarmUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmWithin)
	defer cancel()
	before, added := r.Operations.Answered(), time.Now()
	for r.Operations.Answered()-before < check.LeastAnswered || r.InFlight() < enoughInFlight {
		if len(r.Clients) > 0 && time.Since(added) > addedFor {
			added = time.Now()
			for range enoughInFlight - r.InFlight() {
				if err := r.Clients[0].Ask(ctx, traffic.Request{Verb: history.Submit, Delay: 2 * addedFor, Params: traffic.Params{Millis: 1}}); err != nil && ctx.Err() == nil {
					r.Problem("warm up: %v", err)
					return
				}
			}
		}
		if Sleep(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return // the checkers find that there was too little
		}
	}
}

// IDIn returns an id of a shard that begins so.
func IDIn(prefix string, shard int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint(prefix, "-", i); events.TaskID(id).Shard(Shards) == shard {
			return id
		}
	}
}

// Settle ends schedules, resumes what is suspended, cancels what its policy repeats, and waits until every task has ended that
// can.
func (r *Cluster) Settle(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.Bound())
	defer cancel()
	stepped := slices.ContainsFunc(r.Faults, stepsClock)
	waiting := r.Operations.Tasks()
	if len(r.Clients) > 0 {
		runs, err := endSchedules(ctx, r.Observer, r.Clients[0].Ask)
		if err != nil {
			return err
		}
		waiting = append(waiting, runs...)
	}
	var times shardTimes
	for len(waiting) > 0 && ctx.Err() == nil && err == nil {
		var left []string
		scheduled := map[string]*task.Task{}
		var mu sync.Mutex
		r.Look(ctx, waiting, func(id string, t *task.Task, failed error) {
			var unasked error
			if verb := wantsFor(t); verb != "" && failed == nil {
				if unasked = r.Clients[0].Ask(ctx, traffic.Request{Verb: verb, Task: id}); ctx.Err() != nil {
					unasked = nil // it is too late anyway
				}
			}
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, unasked)
			if failed == nil && t != nil {
				times.see(t)
			}
			switch {
			case failed != nil, t != nil && (t.Suspended || t.OnNode()):
				left = append(left, id)
			case t != nil && t.Due() != 0:
				scheduled[id] = t
			}
		})
		for id, t := range scheduled {
			if stepped && times.far(t) {
				r.Later[id] = true
			} else {
				left = append(left, id)
			}
		}
		if waiting = left; len(waiting) > 0 {
			Sleep(ctx, 100*time.Millisecond)
		}
	}
	if err != nil {
		return err
	}
	for _, id := range waiting {
		r.Broken(check.Ended, "task %s has not ended, or is not shown, %s after the faults", id, r.Bound())
	}
	return nil
}

// wantsFor says what a task lacks to come to an end; "" = nothing.
func wantsFor(t *task.Task) history.Verb {
	switch {
	case t == nil:
	case t.Suspended:
		return history.Resume
	case t.Details.Policy.Every != 0 && !t.Final() && !t.Cancelled:
		return history.Cancel
	}
	return ""
}

// looks bounds the tasks that are read at a time.
const looks = 8

// Look reads tasks linearly and calls f for each, several at a time; t is nil when there is no such task.
func (r *Cluster) Look(ctx context.Context, ids []string, f func(id string, t *task.Task, err error)) {
	var next atomic.Int64
	_ = AtOnce(looks, func(int) error {
		for i := int(next.Add(1)) - 1; i < len(ids); i = int(next.Add(1)) - 1 {
			ask, cancel := context.WithTimeout(ctx, callWithin)
			t, err := r.Observer.GetLinear(ask, events.TaskID(ids[i]))
			cancel()
			switch {
			case errors.Is(err, task.ErrNotFound):
				f(ids[i], nil, nil)
			default:
				f(ids[i], &t, err)
			}
		}
		return nil
	})
}

// Mark writes the mark, which shows that etcd takes writes, and returns its revision.
func (r *Cluster) Mark(ctx context.Context) (int64, error) {
	for {
		ask, cancel := context.WithTimeout(ctx, RequestWithin)
		resp, err := r.Members[0].Client.Put(ask, MarkKey, "")
		cancel()
		if err == nil {
			return resp.Header.Revision, nil
		}
		if Sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return 0, fmt.Errorf("etcd takes no writes at the end: %w", err)
		}
	}
}

// CountInLogs counts how often a text is in the logs of a directory whose names match a pattern. The text is a regular
// expression.
func CountInLogs(dir, pattern, said string) (n int, err error) {
	expr, err := regexp.Compile(said)
	if err != nil {
		return 0, err
	}
	logs, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return 0, err
	}
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			return n, err
		}
		n += len(expr.FindAllIndex(data, -1))
	}
	return n, nil
}

// Crashed notes that the process of a source could not clean up.
func (r *Cluster) Crashed(source string) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.Killed = append(r.Killed, source)
}

// StepKind is the fault after which times do not compare.
const StepKind = "clock-step"

// UnseenKind is another one.
const UnseenKind = "clock-jump-unseen"

// stepsClock reports whether a fault sets a node's clock wrong.
func stepsClock(f history.Fault) bool { return f.Kind == StepKind || f.Kind == UnseenKind }

// NoteFault records what a fault met and proved.
func (r *Cluster) NoteFault(h history.Fault) {
	r.notes.Lock()
	defer r.notes.Unlock()
	r.Faults = append(r.Faults, h)
}
