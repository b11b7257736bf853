package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/internal/measure"
	"taskledger/task"
)

const (
	submitWithin = 10 * time.Second
	drainWithin  = 30 * time.Second // for the tasks whose latency is measured
	sampleEvery  = 32               // divides the accepted tasks: one of so many is waited for
	// maxUnanswered bounds the submits that wait for their answer in the generator; what is due beyond it is not sent.
	maxUnanswered = 1 << 17
	pace          = time.Millisecond
	// maxBehind bounds the part of the schedule that is made up for at once when the generator gets the processor late.
	maxBehind = time.Second
)

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
	Sent        int
	Unsent      int // due, and not sent on schedule
	Accepted    int
	Refused     int // by OverloadError
	TimedOut    int // without an answer after 10 s
	Failed      int // otherwise
	Unresolved  int
	SubmitP50Ms float64 // of accepted tasks, until they were
	SubmitP99Ms float64
	P50Ms       float64 // of accepted tasks, until their outcome
	P99Ms       float64
}

// generate is the role of a generator: a client that makes the loads that it reads, and tells of each twice.
func generate(ctx context.Context, in *json.Decoder, out *json.Encoder) (err error) {
	var where generatorConfig
	if err := in.Decode(&where); err != nil {
		return fmt.Errorf("read where the cluster is: %w", err)
	}
	c, err := cluster.Open(ctx, cluster.Config{
		Etcd:     []string{where.Etcd},
		NATS:     []string{where.NATS},
		NATSNKey: where.NKey,
		Existing: true,
		Log:      measure.Discard,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	client, err := engine.NewClient(engine.ClientConfig{Store: c.Store, Bus: c.Bus, Log: measure.Discard})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- client.Run(run) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	for {
		var l load
		if err := in.Decode(&l); err != nil {
			return err
		}
		if err := makeLoad(ctx, client, l, out); err != nil {
			return err
		}
	}
}

// makeLoad tells twice: when the load is over, and when all of it is answered.
func makeLoad(ctx context.Context, client *engine.Client, l load, out *json.Encoder) error {
	cpu, err := measure.CPU()
	if err != nil {
		return err
	}
	s := &submitter{client: client}
	begun := time.Now()
	if l.InFlight > 0 {
		var w measure.Window
		w, err = measure.Loop(ctx, l.InFlight, l.For, measure.SubmitAndWait(client))
		s.counts.Sent, s.counts.Accepted = w.Count, w.Count
	} else {
		s.open(ctx, l)
	}
	m := made{Took: time.Since(begun)}
	used, failed := measure.CPU()
	m.CPU = used - cpu
	if err := errors.Join(err, failed); err != nil {
		m.Error = err.Error()
	}
	if err := out.Encode(m); err != nil {
		return err
	}
	m.counts = s.settle()
	return out.Encode(m)
}

// submitter submits noop tasks and counts what becomes of them.
type submitter struct {
	client     *engine.Client
	wait       sync.WaitGroup
	unanswered atomic.Int64

	mu             sync.Mutex
	counts         counts
	submits, tasks []time.Duration
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
			f, err := s.client.Submit(bounded, noop, nil, task.SubmitOptions{})
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
	c := s.counts
	c.SubmitP50Ms, c.SubmitP99Ms = ends(s.submits)
	c.P50Ms, c.P99Ms = ends(s.tasks)
	return c
}

// ends returns the median and the p99 in milliseconds, 0 of none: a report can say nothing that is no number.
func ends(times []time.Duration) (p50, p99 float64) {
	if len(times) == 0 {
		return 0, 0
	}
	slices.Sort(times)
	return measure.Quantile(times, 0.5), measure.Quantile(times, 0.99)
}
