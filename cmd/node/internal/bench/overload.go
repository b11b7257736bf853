package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/connect"
	"taskledger/engine"
	"taskledger/task"
)

const (
	overloadFactor = 2 // of the peak
	submitWithin   = 10 * time.Second
	drainWithin    = 30 * time.Second // for the tasks whose latency is measured
	sampleEvery    = 32               // of the accepted tasks, one is waited for
	// maxUnanswered bounds the submits that wait for their answer in the generator; what is due beyond it is not sent.
	maxUnanswered = 1 << 17
	pace          = time.Millisecond
	// maxBehind bounds the part of the schedule that is made up for at once when the generator gets the processor late.
	maxBehind = time.Second
)

// OverloadConfig says how to overload a node.
type OverloadConfig struct {
	InFlight  int           // of the closed loop that finds the peak
	Peak      time.Duration // of that loop
	Duration  time.Duration // of the open loop
	Generator []string      // command line of the process that runs Generate
}

// OverloadResult holds the results under twice the load that a node can take. Rates are per second. The generator runs
// in a process of its own, on the same machine, with half of the processors.
type OverloadResult struct {
	PeakPerS     float64 `json:"peak_per_s"`
	OfferedPerS  float64 `json:"offered_per_s"` // what the open loop should submit
	SentPerS     float64 `json:"sent_per_s"`    // what it did
	AcceptedPerS float64 `json:"accepted_per_s"`
	GoodputPerS  float64 `json:"goodput_per_s"` // attempts that ended with SUCCESS
	Goodput      float64 `json:"goodput"`       // share of the peak
	counts
	SessionsLost  int     `json:"sessions_lost"`
	PeakNodeCPU   float64 `json:"peak_node_cpu"` // processors used by node, etcd and NATS in the closed loop
	PeakGenCPU    float64 `json:"peak_generator_cpu"`
	NodeCPU       float64 `json:"node_cpu"` // the same in the open loop
	GenCPU        float64 `json:"generator_cpu"`
	NodeUsPerTask float64 `json:"node_us_per_task"`
	NodeProcs     int     `json:"node_processors"` // that node, etcd and NATS have to themselves; 0 = all are shared
	GenProcs      int     `json:"generator_processors"`
}

// Overload finds the peak of a node by a closed loop and offers it twice as much by an open one.
func Overload(ctx context.Context, cfg OverloadConfig) (r OverloadResult, err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var done atomic.Int64
	counted := behaviors.Define[behaviors.None, behaviors.None](builtin.Noop().ID(), nil).Bind(
		func(context.Context, behaviors.None) (behaviors.None, error) {
			done.Add(1)
			return behaviors.None{}, nil
		})
	link, err := s.link(ctx)
	if err != nil {
		return r, err
	}
	n, err := startNode(ctx, link, engine.NodeConfig{Name: "a", Slots: max(512, perTaskSlots*cfg.InFlight), Behaviors: []task.Behavior{counted}})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	before, err := n.link.Store.ReadMembers(ctx)
	if err != nil {
		return r, err
	}
	var g *generator
	var whole func() error
	r.NodeProcs, r.GenProcs, whole, err = apart(func() (err error) {
		g, err = startGenerator(cfg.Generator, generatorConfig{Etcd: s.embedded.EtcdEndpoint(),
			NATS: s.embedded.NATSURL(), NKey: s.embedded.NATSNKey()})
		return err
	})
	if g != nil {
		defer func() { err = errors.Join(err, g.close()) }()
	}
	if whole != nil {
		defer func() { err = errors.Join(err, whole()) }()
	}
	if err != nil {
		return r, err
	}
	o := &overload{generator: g, done: &done, result: &r}
	if err := o.measure(cfg); err != nil {
		return r, err
	}
	after, err := n.link.Store.ReadMembers(ctx)
	for id := range before.Nodes {
		if _, lives := after.Nodes[id]; !lives {
			r.SessionsLost++
		}
	}
	return r, err
}

type overload struct {
	generator *generator
	done      *atomic.Int64
	result    *OverloadResult
}

func (o *overload) measure(cfg OverloadConfig) error {
	if _, _, err := o.run(load{InFlight: cfg.InFlight, For: warmUp}); err != nil {
		return err
	}
	r := o.result
	w, closed, err := o.run(load{InFlight: cfg.InFlight, For: cfg.Peak})
	if err != nil {
		return err
	}
	r.PeakPerS = float64(closed.Accepted) / closed.Took.Seconds()
	r.PeakNodeCPU, r.PeakGenCPU = w.cpu.Seconds()/w.took.Seconds(), closed.CPU.Seconds()/closed.Took.Seconds()
	w, open, err := o.run(load{Rate: overloadFactor * r.PeakPerS, For: cfg.Duration})
	if err != nil {
		return err
	}
	seconds := w.took.Seconds()
	r.OfferedPerS, r.SentPerS, r.AcceptedPerS = overloadFactor*r.PeakPerS, float64(open.Sent)/seconds, float64(open.Accepted)/seconds
	r.GoodputPerS = float64(w.done) / seconds
	r.Goodput = r.GoodputPerS / r.PeakPerS
	r.NodeCPU, r.GenCPU = w.cpu.Seconds()/seconds, open.CPU.Seconds()/seconds
	r.NodeUsPerTask = float64(w.cpu.Microseconds()) / float64(max(w.done, 1))
	r.counts = open.counts
	return nil
}

// usage counts the work of the node in a stretch of time.
type usage struct {
	done int64
	cpu  time.Duration
	took time.Duration
}

// run has the generator make a load and measures the node until the last submit of it was due.
func (o *overload) run(l load) (w usage, made made, err error) {
	cpu, err := processCPU()
	if err != nil {
		return w, made, err
	}
	done, begun := o.done.Load(), time.Now()
	if err := o.generator.begin(l); err != nil {
		return w, made, err
	}
	if err := o.generator.next(&made); err != nil { // the load is over, not what it left behind
		return w, made, err
	}
	w.took, w.done = time.Since(begun), o.done.Load()-done
	used, err := processCPU()
	if err != nil {
		return w, made, err
	}
	w.cpu = used - cpu
	return w, made, o.generator.next(&made)
}

// generatorConfig says where a generator finds the cluster.
type generatorConfig struct{ Etcd, NATS, NKey string }

// load tells a generator what to make: a closed loop of so many tasks in flight, or an open one of so many a second.
type load struct {
	InFlight int
	Rate     float64
	For      time.Duration
}

// made is a report of a generator: one when the load is over, and one when everything is answered.
type made struct {
	counts
	Took  time.Duration // until the load was over
	CPU   time.Duration // of the generator, until then
	Error string
}

// counts counts the submits of a load by their result. Latencies of tasks come from the resolved ones of a sample.
type counts struct {
	Sent        int     `json:"sent"`
	Unsent      int     `json:"unsent"` // due, and not sent on schedule
	Accepted    int     `json:"accepted"`
	Refused     int     `json:"refused"`   // by OverloadError
	TimedOut    int     `json:"timed_out"` // without an answer after 10 s
	Failed      int     `json:"failed"`    // otherwise
	Unresolved  int     `json:"unresolved"`
	SubmitP50Ms float64 `json:"submit_p50_ms"` // of accepted tasks, until they were
	SubmitP99Ms float64 `json:"submit_p99_ms"`
	P50Ms       float64 `json:"p50_ms"` // of accepted tasks, until their outcome
	P99Ms       float64 `json:"p99_ms"`
}

// generator is the process that submits.
type generator struct {
	*child
	to   *json.Encoder
	from *json.Decoder
}

func startGenerator(command []string, cfg generatorConfig) (*generator, error) {
	c, err := spawn(command)
	if err != nil {
		return nil, fmt.Errorf("start generator: %w", err)
	}
	g := &generator{child: c, to: json.NewEncoder(c.in), from: json.NewDecoder(c.out)}
	if err := g.to.Encode(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("start generator: %w", err), g.close())
	}
	return g, nil
}

func (g *generator) begin(l load) error {
	if err := g.to.Encode(l); err != nil {
		return fmt.Errorf("tell the generator: %w", err)
	}
	return nil
}

func (g *generator) next(m *made) error {
	if err := g.from.Decode(m); err != nil {
		return fmt.Errorf("hear from the generator: %w", err)
	}
	if m.Error != "" {
		return fmt.Errorf("generator: %s", m.Error)
	}
	return nil
}

// Generate is the generator: a client that makes the loads that it reads from in, until in ends, and tells of them on
// out.
func Generate(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	from, to := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	var cfg generatorConfig
	if err := from.Decode(&cfg); err != nil {
		return fmt.Errorf("read where the cluster is: %w", err)
	}
	link, err := connect.At(ctx, connect.Addresses{Etcd: []string{cfg.Etcd}, NATS: []string{cfg.NATS}, NATSNKey: cfg.NKey,
		Existing: true, Log: discard})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.Close()) }()
	client, err := engine.NewClient(engine.ClientConfig{Store: link.Store, Bus: link.Bus, Log: discard})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- client.Run(run) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	for {
		var l load
		if err := from.Decode(&l); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read load: %w", err)
		}
		if err := makeLoad(ctx, client, l, to); err != nil {
			return err
		}
	}
}

// makeLoad tells twice: when the load is over, and when all of it is answered.
func makeLoad(ctx context.Context, client *engine.Client, l load, to *json.Encoder) error {
	cpu, err := processCPU()
	if err != nil {
		return err
	}
	s := &submitter{client: client, noop: builtin.Noop()}
	begun := time.Now()
	if l.InFlight > 0 {
		err = s.closed(ctx, l)
	} else {
		s.open(ctx, l)
	}
	m := made{Took: time.Since(begun)}
	used, failed := processCPU()
	m.CPU = used - cpu
	if err := errors.Join(err, failed); err != nil {
		m.Error = err.Error()
	}
	if err := to.Encode(m); err != nil {
		return err
	}
	m.counts = s.settle()
	return to.Encode(m)
}

// submitter submits noop tasks and counts what becomes of them.
type submitter struct {
	client     *engine.Client
	noop       task.Behavior
	wait       sync.WaitGroup
	unanswered atomic.Int64

	mu             sync.Mutex
	counts         counts
	submits, tasks []time.Duration
}

func (s *submitter) closed(ctx context.Context, l load) error {
	w, err := closedLoop(ctx, l.InFlight, l.For, func(ctx context.Context, _ int) error {
		f, err := s.client.Submit(ctx, s.noop, nil, task.SubmitOptions{})
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		_, err = f.Wait(ctx)
		return err
	})
	s.counts.Sent, s.counts.Accepted = w.count, w.count
	return err
}

// open submits on schedule, whatever becomes of the submits before.
func (s *submitter) open(ctx context.Context, l load) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	begun, scheduled := time.Now(), 0
	for since := time.Duration(0); since < l.For && ctx.Err() == nil; since = time.Since(begun) {
		due := int(l.Rate*since.Seconds()) - scheduled
		scheduled += due
		if late := due - int(l.Rate*maxBehind.Seconds()); late > 0 {
			s.counts.Unsent += late
			due -= late
		}
		if room := maxUnanswered - int(s.unanswered.Load()); due > room {
			s.counts.Unsent += due - room
			due = room
		}
		s.burst(ctx, due)
		<-ticker.C
	}
}

// burst makes so many submits side by side, which end with one context: one for each would cost more than the submit.
func (s *submitter) burst(ctx context.Context, n int) {
	bounded, cancel := context.WithTimeout(ctx, submitWithin)
	s.counts.Sent += n
	s.unanswered.Add(int64(n))
	var submits sync.WaitGroup
	for range n {
		submits.Add(1)
		s.wait.Go(func() {
			begun := time.Now()
			f, err := s.client.Submit(bounded, s.noop, nil, task.SubmitOptions{})
			submits.Done()
			s.unanswered.Add(-1)
			if s.count(err, time.Since(begun)) {
				s.await(ctx, f, begun)
			}
		})
	}
	s.wait.Go(func() {
		submits.Wait()
		cancel()
	})
}

// await waits for the outcome of a task.
func (s *submitter) await(ctx context.Context, f *engine.Future, begun time.Time) {
	bounded, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	_, err := f.Wait(bounded)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.counts.Unresolved++
		return
	}
	s.tasks = append(s.tasks, time.Since(begun))
}

// count reports whether the task's outcome is to be waited for.
func (s *submitter) count(err error, took time.Duration) bool {
	_, refused := errors.AsType[*task.OverloadError](err)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.counts.Accepted++
		s.submits = append(s.submits, took)
		return s.counts.Accepted%sampleEvery == 1 // the first is one: few tasks have a latency, too
	case refused:
		s.counts.Refused++
	case errors.Is(err, context.DeadlineExceeded):
		s.counts.TimedOut++
	default:
		s.counts.Failed++
	}
	return false
}

// settle waits for the tasks under way and returns the counts of all results.
func (s *submitter) settle() counts {
	s.wait.Wait()
	slices.Sort(s.submits)
	slices.Sort(s.tasks)
	c := s.counts
	c.SubmitP50Ms, c.SubmitP99Ms = quantile(s.submits, 0.50), quantile(s.submits, 0.99)
	c.P50Ms, c.P99Ms = quantile(s.tasks, 0.50), quantile(s.tasks, 0.99)
	return c
}
