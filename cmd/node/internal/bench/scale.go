package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/connect"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

const (
	submitters   = 256
	loadInFlight = 64                     // of the load that delayed tasks and futures are measured beside or with
	farAhead     = 24 * time.Hour         // when tasks that only wait are due
	submitRate   = 2000                   // tasks a second that are surely submitted; decides when the first become due
	scaleTTL     = 3 * time.Second        // of sessions in the take-over
	pollEvery    = 5 * time.Millisecond   // of the membership, to see a session end
	askAgain     = 10 * time.Millisecond  // after a shard did not accept
	paramsText   = 62                     // with its quotes 64 bytes of JSON
	settleNoNATS = 500 * time.Millisecond // after NATS has gone
)

// ScaleConfig says how large the large cases are.
type ScaleConfig struct {
	Waiting  int           // tasks that wait while others become due
	DuePerS  int           // tasks that become due each second
	Duration time.Duration // of each timed part
	Delayed  int           // tasks of 64-byte parameters that are held and taken over
	Servers  []string      // command line of the process that runs Serve
}

// dueTasks returns the number of tasks that become due.
func (c ScaleConfig) dueTasks() int { return int(c.Duration.Seconds() * float64(c.DuePerS)) }

// lead is the time from the submit of those tasks until the first of them is due.
func (c ScaleConfig) lead() time.Duration {
	return time.Second + time.Duration(c.dueTasks())*time.Second/submitRate
}

// ScaleResult holds the results of the large cases.
type ScaleResult struct {
	Waiting             int     `json:"waiting"`
	DuePerS             int     `json:"due_per_s"`
	LatenessP50Ms       float64 `json:"lateness_p50_ms"` // from due to running, otherwise idle
	LatenessP99Ms       float64 `json:"lateness_p99_ms"`
	LoadedP50Ms         float64 `json:"loaded_lateness_p50_ms"` // the same beside 64 tasks in flight
	LoadedP99Ms         float64 `json:"loaded_lateness_p99_ms"`
	Delayed             int     `json:"delayed"`
	HeapBytesPerTask    float64 `json:"heap_bytes_per_task"`    // live heap of the owner, etcd in another process
	TakeOverS           float64 `json:"take_over_s"`            // from the end of the session to a command accepted on the last shard
	OneShardS           float64 `json:"one_shard_take_over_s"`  // the same with all of them in one shard, from its snapshot and tail
	FewerS              float64 `json:"fewer_take_over_s"`      // the same with a hundredth of them
	Snapshots           int     `json:"snapshots"`              // of a shard with 100,000 waiting tasks, beside 64 in flight
	CommitP99Ms         float64 `json:"commit_p99_ms"`          // while none was being stored
	SnapshotCommitP99Ms float64 `json:"snapshot_commit_p99_ms"` // while one was
	TurnP99Ms           float64 `json:"turn_p99_ms"`            // of the owner between two commits, while none was being stored
	SnapshotTurnP99Ms   float64 `json:"snapshot_turn_p99_ms"`   // while one was
	NoNATSP50Ms         float64 `json:"no_nats_resolution_p50_ms"`
	NoNATSP99Ms         float64 `json:"no_nats_resolution_p99_ms"` // from the end of the handler to the future's
	NoNATSResolutions   int     `json:"no_nats_resolutions"`
}

// ScaleBounds are for checks; zero ones allow everything.
type ScaleBounds struct {
	Turn     time.Duration // p99 of an owner's turns, beside snapshots and otherwise
	TakeOver time.Duration // of all shards, and of one
}

// Within returns which bound is broken, or could not be measured.
func (r ScaleResult) Within(b ScaleBounds) error {
	turn := max(r.TurnP99Ms, r.SnapshotTurnP99Ms)
	took := max(r.TakeOverS, r.OneShardS)
	switch {
	case b.Turn > 0 && (r.Snapshots == 0 || r.SnapshotTurnP99Ms == 0):
		return errors.New("no turn was measured beside a snapshot")
	case b.Turn > 0 && turn > float64(b.Turn)/float64(time.Millisecond):
		return fmt.Errorf("the p99 of an owner's turns is %.2f ms, more than the %s allowed", turn, b.Turn)
	case b.TakeOver > 0 && took > b.TakeOver.Seconds():
		return fmt.Errorf("a take-over lasts %.2f s, more than the %s allowed", took, b.TakeOver)
	}
	return nil
}

// Scale measures delayed tasks, what many of them cost, their take-over, and futures without NATS, one after the other.
func Scale(ctx context.Context, cfg ScaleConfig) (r ScaleResult, err error) {
	r.Waiting, r.DuePerS, r.Delayed = cfg.Waiting, cfg.DuePerS, cfg.Delayed
	for _, part := range []func(context.Context, ScaleConfig, *ScaleResult) error{pickUp, holdAndTakeOver, takeOverOneShard, watchSnapshots, resolveWithoutNATS} {
		if err := part(ctx, cfg, &r); err != nil {
			return r, err
		}
		runtime.GC()
	}
	return r, nil
}

// recorder collects durations.
type recorder struct {
	mu    sync.Mutex
	times []time.Duration
}

func (r *recorder) add(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times = append(r.times, d)
}

// take returns what was collected, sorted, and begins anew.
func (r *recorder) take() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	times := r.times
	r.times = nil
	slices.Sort(times)
	return times
}

// pickUp measures how late tasks start that become due while many others wait.
func pickUp(ctx context.Context, cfg ScaleConfig, r *ScaleResult) (err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var late recorder
	due := behaviors.Define[int64, behaviors.None]("due", nil)
	bound := due.Bind(func(_ context.Context, at int64) (behaviors.None, error) {
		late.add(time.Since(time.UnixMilli(at)))
		return behaviors.None{}, nil
	})
	n, err := oneNode(ctx, s, engine.NodeConfig{Name: "a", Behaviors: []task.Behavior{bound, builtin.Noop()}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	far := time.Now().Add(farAhead)
	if err := inParallel(ctx, cfg.Waiting, func(ctx context.Context, _ int) error {
		_, err := due.SubmitWith(ctx, n, 0, task.SubmitOptions{NotBefore: far})
		return err
	}); err != nil {
		return err
	}
	if err := becomeDue(ctx, cfg, due, n); err != nil {
		return err
	}
	times := late.take()
	r.LatenessP50Ms, r.LatenessP99Ms = quantile(times, 0.5), quantile(times, 0.99)
	g, loaded := errgroup.WithContext(ctx)
	g.Go(func() error {
		_, err := closedLoop(loaded, loadInFlight, cfg.lead()+cfg.Duration, submitAndWait(n))
		return err
	})
	g.Go(func() error { return becomeDue(loaded, cfg, due, n) })
	err = g.Wait()
	times = late.take()
	r.LoadedP50Ms, r.LoadedP99Ms = quantile(times, 0.5), quantile(times, 0.99)
	return err
}

// becomeDue submits tasks that become due one after the other, and waits until all of them have run.
func becomeDue(ctx context.Context, cfg ScaleConfig, due *behaviors.Behavior[int64, behaviors.None], n *node) error {
	begin, count := time.Now().Add(cfg.lead()).Truncate(time.Millisecond), cfg.dueTasks()
	futures := make([]*behaviors.Future[behaviors.None], count)
	err := inParallel(ctx, count, func(ctx context.Context, i int) (err error) {
		at := begin.Add(time.Duration(i) * time.Second / time.Duration(cfg.DuePerS)).Truncate(time.Millisecond)
		futures[i], err = due.SubmitWith(ctx, n, at.UnixMilli(), task.SubmitOptions{NotBefore: at})
		return err
	})
	if err != nil {
		return err
	}
	if time.Now().After(begin) {
		return fmt.Errorf("submitting %d tasks took longer than %s", count, cfg.lead())
	}
	for _, f := range futures {
		if _, err := f.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// holdAndTakeOver measures what delayed tasks cost their owner, then how long its heir needs for them.
func holdAndTakeOver(ctx context.Context, cfg ScaleConfig, r *ScaleResult) (err error) {
	r.HeapBytesPerTask, r.TakeOverS, err = holdDelayed(ctx, cfg, cfg.Delayed, 0)
	return err
}

// takeOverOneShard measures how long an heir needs for a single shard, which has room for the probe.
func takeOverOneShard(ctx context.Context, cfg ScaleConfig, r *ScaleResult) (err error) {
	if _, r.OneShardS, err = holdDelayed(ctx, cfg, max(cfg.Delayed-1, 0), 1); err != nil {
		return err
	}
	_, r.FewerS, err = holdDelayed(ctx, cfg, cfg.Delayed/100, 1)
	return err
}

// holdDelayed submits delayed tasks to a cluster of so many shards, lets its node die and another take over.
func holdDelayed(ctx context.Context, cfg ScaleConfig, tasks, shards int) (heapPerTask, seconds float64, err error) {
	s, err := startServers(ctx, cfg.Servers)
	if err != nil {
		return 0, 0, err
	}
	s.shards = shards
	defer func() { err = errors.Join(err, s.close()) }()
	first, err := oneNode(ctx, s, engine.NodeConfig{Name: "first", Slots: -1, TTL: scaleTTL})
	if err != nil {
		return 0, 0, err
	}
	held := behaviors.Define[string, behaviors.None]("held", nil)
	params := fmt.Sprintf("%0*d", paramsText, 0)
	far := time.Now().Add(farAhead)
	before := liveHeap()
	if err := inParallel(ctx, tasks, func(ctx context.Context, _ int) error {
		_, err := held.SubmitWith(ctx, first, params, task.SubmitOptions{NotBefore: far})
		return err
	}); err != nil {
		return 0, 0, errors.Join(err, first.close())
	}
	heapPerTask = float64(liveHeap()-before) / float64(max(tasks, 1))
	seconds, err = takeOver(ctx, s, first)
	return heapPerTask, seconds, err
}

// liveHeap returns the bytes of reachable memory.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the first one moves pools aside, the second one frees them
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// takeOver kills the node, starts another one, and returns the time from the end of the dead node's session until the
// other has accepted a command on every shard, in seconds.
func takeOver(ctx context.Context, s *servers, first *node) (seconds float64, err error) {
	dead := first.SessionID()
	if err := first.kill(); err != nil {
		return 0, err
	}
	link, err := s.link(ctx)
	if err != nil {
		return 0, err
	}
	var second *node
	var ended time.Time
	g, both := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		second, err = startNode(both, link, engine.NodeConfig{Name: "second", Slots: -1, TTL: scaleTTL})
		return err
	})
	watch, err := s.link(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, watch.Close()) }()
	g.Go(func() (err error) {
		ended, err = sessionEnd(both, watch, dead)
		return err
	})
	accepted, probeErr := acceptedEverywhere(ctx, watch)
	err = errors.Join(probeErr, g.Wait())
	if second != nil {
		err = errors.Join(err, second.close())
	}
	return accepted.Sub(ended).Seconds(), err
}

// sessionEnd returns when the node key of a session is gone.
func sessionEnd(ctx context.Context, link *connect.Link, id string) (time.Time, error) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		now, err := link.Store.ReadMembers(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if _, alive := now.Nodes[id]; !alive {
			return time.Now(), nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

// acceptedEverywhere returns when the last of the shards has accepted a command of a client.
func acceptedEverywhere(ctx context.Context, link *connect.Link) (time.Time, error) {
	client, err := engine.NewClient(engine.ClientConfig{Store: link.Store, Bus: link.Bus, Name: "bench"})
	if err != nil {
		return time.Time{}, err
	}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- client.Run(run) }()
	err = inParallel(ctx, link.Store.Cluster().Shards, func(ctx context.Context, shard int) error {
		return accept(ctx, client, idIn(shard, link.Store.Cluster().Shards))
	})
	at := time.Now()
	stop()
	return at, errors.Join(err, <-ended)
}

// accept asks until the shard of the task accepts.
func accept(ctx context.Context, client *engine.Client, id events.TaskID) error {
	for {
		_, err := client.Submit(ctx, builtin.Noop(), nil, task.SubmitOptions{ID: id, NotBefore: time.Now().Add(farAhead)})
		if err == nil || ctx.Err() != nil || !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, task.ErrUnknown) {
			return err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
		}
	}
}

// idIn returns a task id that lives in the shard.
func idIn(shard, shards int) events.TaskID {
	for i := 0; ; i++ {
		if id := events.TaskID(fmt.Sprintf("probe-%d", i)); id.Shard(shards) == shard {
			return id
		}
	}
}

// resolveWithoutNATS measures how long after its handler a future resolves on another node when NATS has stopped.
func resolveWithoutNATS(ctx context.Context, cfg ScaleConfig, r *ScaleResult) (err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	doomed, err := embedded.StartServers(ctx, embedded.ServersConfig{Log: discard}) // for its NATS
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, doomed.Close()) }()
	at := connect.Addresses{Etcd: []string{s.embedded.EtcdEndpoint()}, NATS: []string{doomed.NATSURL()}, NATSNKey: doomed.NATSNKey(), Log: discard}
	var ended sync.Map // time by task
	stamp := behaviors.Define[behaviors.None, behaviors.None]("stamp", nil)
	bound := stamp.Bind(func(ctx context.Context, _ behaviors.None) (behaviors.None, error) {
		a, _ := behaviors.Attempt(ctx)
		ended.Store(a.Task, time.Now())
		return behaviors.None{}, nil
	})
	a, err := nodeAt(ctx, at, engine.NodeConfig{Name: "a", Slots: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	b, err := nodeAt(ctx, at, engine.NodeConfig{Name: "b", Behaviors: []task.Behavior{bound}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := settle(ctx, a, b); err != nil {
		return err
	}
	if err := doomed.Close(); err != nil {
		return err
	}
	var late recorder
	turn := func(ctx context.Context, _ int) error {
		f, err := stamp.Submit(ctx, a, behaviors.None{})
		if err == nil {
			_, err = f.Wait(ctx)
		}
		if at, ok := ended.LoadAndDelete(f.ID()); ok && err == nil {
			late.add(time.Since(at.(time.Time)))
		}
		return err
	}
	if _, err := closedLoop(ctx, loadInFlight, settleNoNATS, turn); err != nil {
		return err
	}
	late.take()
	_, err = closedLoop(ctx, loadInFlight, cfg.Duration, turn)
	times := late.take()
	r.NoNATSP50Ms, r.NoNATSP99Ms, r.NoNATSResolutions = quantile(times, 0.5), quantile(times, 0.99), len(times)
	return err
}

func oneNode(ctx context.Context, s *servers, cfg engine.NodeConfig) (*node, error) {
	link, err := s.link(ctx)
	if err != nil {
		return nil, err
	}
	return startNode(ctx, link, cfg)
}

func nodeAt(ctx context.Context, at connect.Addresses, cfg engine.NodeConfig) (*node, error) {
	link, err := connect.At(ctx, at)
	if err != nil {
		return nil, err
	}
	return startNode(ctx, link, cfg)
}

// inParallel calls fn for 0 to n-1 by a number of goroutines.
func inParallel(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	g.Go(func() error {
		defer close(next)
		for i := range n {
			select {
			case next <- i:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range min(submitters, n) {
		g.Go(func() error {
			for i := range next {
				if err := fn(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
