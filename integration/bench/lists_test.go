package bench_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/measure"
	"taskledger/internal/testkit"
	"taskledger/projection"
	"taskledger/task"
)

const (
	rareEvery    = 200  // divides the finished tasks: one of so many is of each rare sort
	suspendEvery = 18   // divides the waiting tasks: one of so many is suspended, one in 200 of all
	fillInFlight = 1000 // tasks under way while the shards are filled
	loadShare    = 0.82 // of the speed without lists is asked for beside them; what is reached is measured
	pageLimit    = 100
	pagesPerS    = 10 // asked for beside the load, one after the other
)

// BenchmarkLists measures pages of lists among many tasks, which wait or have ended, beside a load: for filters that
// match one task in 200 or more, and for the tasks of a node, and those that run.
func BenchmarkLists(b *testing.B) { run(b, lists) }

func lists(tb testing.TB) figures {
	all := startSorted(tb)
	all.fill(tb, testkit.Times(2000, 100_000), testkit.Times(1000, 10_000))
	d, load := lasts(time.Second, 6*time.Second), measure.SubmitAndWait(all.Client)
	alone := must(measure.Loop(tb.Context(), loadInFlight, d, load))(tb)
	working, stop := context.WithCancel(tb.Context())
	defer stop()
	var beside float64
	var counts recorder
	pages := all.pages()
	begun := time.Now()
	g, working := errgroup.WithContext(working)
	g.Go(func() (err error) {
		beside, err = paced(working, tb.Context(), loadInFlight, loadShare*alone.PerSecond(), load)
		return err
	})
	g.Go(func() error {
		defer stop()
		return all.listInTurn(working, pages, d, &counts)
	})
	check(tb, g.Wait())
	// A page of 100 tasks among 110,000 takes 50 ms on a quiet machine, and a load keeps 0.8 of its speed there.
	f, asked, worst := newFigures(tb), 0, 0.0
	for _, p := range pages {
		slices.Sort(p.took)
		p99 := measure.Quantile(p.took, 0.99)
		f.atMost(p.name+"-page-p99-ms", p99, 250)
		if asked += len(p.took); p99 >= worst {
			worst = p99
			f.is("worst-page-p50-ms", measure.Quantile(p.took, 0.5))
		}
	}
	f.is("tasks/s", alone.PerSecond())
	f.is("beside-tasks/s", beside)
	f.atLeast("load-ratio", beside/alone.PerSecond(), 0.6)
	f.is("pages/s", float64(asked)/time.Since(begun).Seconds())
	f.is("counts-p99-ms", measure.Quantile(counts.take(), 0.99))
	return f
}

// sorted is a node with the tasks to list: most of one behavior, some of each rare sort.
type sorted struct {
	*measure.Node
	usual, rare *behaviors.Behavior[int, behaviors.None]
	half        time.Time // when half of them had ended
}

var errRare = errors.New("one in 200")

func startSorted(tb testing.TB) *sorted {
	policy := task.Policy{MaxAttempts: 1, RetainCount: projection.MaxFinished}
	rules := &behaviors.Rules[int, behaviors.None]{Policy: policy}
	all := &sorted{usual: behaviors.Define("usual", rules), rare: behaviors.Define("rare", rules)}
	end := func(_ context.Context, i int) (behaviors.None, error) {
		if i%rareEvery == 1 {
			return behaviors.None{}, errRare
		}
		return behaviors.None{}, nil
	}
	all.Node = node(tb, servers(tb, 0), engine.NodeConfig{
		Name:      "a",
		Slots:     measure.SlotsFor(fillInFlight / 2),
		Behaviors: []task.Behavior{all.usual.Bind(end), all.rare.Bind(end), noop},
	}, measure.Archived)
	return all
}

// fill makes the tasks that wait, and then those that have ended.
func (s *sorted) fill(tb testing.TB, finished, waiting int) {
	far := task.SubmitOptions{NotBefore: time.Now().Add(farAhead)}
	check(tb, inParallel(tb.Context(), waiting, func(ctx context.Context, i int) error {
		f, err := s.usual.SubmitWith(ctx, s.Node, 0, far)
		if err == nil && i%suspendEvery == 0 {
			err = s.Operations().Suspend(ctx, f.ID(), "")
		}
		return err
	}))
	var begun atomic.Int64
	g, ctx := errgroup.WithContext(tb.Context())
	for range fillInFlight {
		g.Go(func() error {
			for i := int(begun.Add(1)); i <= finished; i = int(begun.Add(1)) {
				if i == finished/2 {
					s.half = time.Now()
				}
				if err := s.finish(ctx, i); err != nil {
					return fmt.Errorf("make a finished task: %w", err)
				}
			}
			return nil
		})
	}
	check(tb, g.Wait())
}

// finish makes the i-th finished task.
func (s *sorted) finish(ctx context.Context, i int) error {
	of, o := s.usual, task.SubmitOptions{}
	switch i % rareEvery {
	case 0:
		of = s.rare
	case 2:
		ctx = engine.WithCaller(ctx, events.Caller{Principal: "rare"})
	case 3:
		o.ID = events.TaskID(fmt.Sprintf("tenant-%d/%d", i%97, i))
	case 4:
		o.ID = events.TaskID(fmt.Sprintf("one/%d", i))
	}
	f, err := of.SubmitWith(ctx, s.Node, i, o)
	if err == nil {
		_, err = f.Wait(ctx)
	}
	if failed := (*task.Error)(nil); errors.As(err, &failed) && i%rareEvery == 1 {
		err = nil
	}
	return err
}

// paged tracks the pages that have been asked of one filter so far.
type paged struct {
	name   string
	filter task.Filter
	cursor string
	took   []time.Duration
}

// pages returns the filters, of which no page has been asked yet, by their names.
func (s *sorted) pages() (all []*paged) {
	filters := map[string]task.Filter{
		"all":                 {},
		"created":             {Status: task.Created},
		"suspended":           {Substatus: task.SubSuspended},
		"success":             {Status: task.Success},
		"failed":              {Status: task.Failure, Substatus: task.SubFinal},
		"behavior":            {Behavior: "rare"},
		"creator":             {Creator: "rare"},
		"affinity-prefix":     {AffinityPrefix: "tenant-"},
		"affinity":            {Affinity: "one"},
		"created-after-half":  {CreatedFrom: s.half},
		"created-before-half": {CreatedTo: s.half},
		"ended-before-half":   {EndedTo: s.half},
		"ended-after-half":    {EndedFrom: s.half},
		"node":                {Node: s.SessionID()},
		"running":             {Status: task.Running},
	}
	for _, name := range slices.Sorted(maps.Keys(filters)) {
		f := filters[name]
		f.Limit = pageLimit
		all = append(all, &paged{name: name, filter: f})
	}
	return all
}

// listInTurn asks for a page of one filter after the other, of each from its beginning to its end and again, for a
// time: so many each second, or fewer when they take longer. So what stalls the machine for a moment is felt by all
// filters alike. After each round it asks for counts.
func (s *sorted) listInTurn(ctx context.Context, all []*paged, d time.Duration, counts *recorder) error {
	for begun := time.Now(); time.Since(begun) < d; {
		for _, l := range all {
			asked := time.Now()
			if err := l.next(ctx, s.Node); err != nil {
				return fmt.Errorf("list of the filter %q: %w", l.name, err)
			}
			if !pause(ctx, time.Until(asked.Add(time.Second/pagesPerS))) {
				return context.Cause(ctx)
			}
		}
		asked := time.Now()
		if _, err := s.Counts(ctx, ""); err != nil {
			return err
		}
		counts.add(time.Since(asked))
	}
	return nil
}

// next asks for the next page.
func (l *paged) next(ctx context.Context, n *measure.Node) error {
	asked := time.Now()
	page, err := n.ListPage(ctx, l.filter, l.cursor)
	if err != nil {
		return err
	}
	if len(page.Missing) > 0 {
		return page.Missing[0].Err
	}
	l.took = append(l.took, time.Since(asked))
	l.cursor = page.Cursor
	return nil
}

// paced keeps beginning op at a rate, by so many workers at most, until working ends. It returns how many ended each
// second until then.
func paced(working, ctx context.Context, workers int, perSecond float64, op measure.Op) (reached float64, err error) {
	start := time.Now()
	var begun, done atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		select {
		case <-working.Done():
		case <-ctx.Done():
		}
		reached = float64(done.Load()) / time.Since(start).Seconds()
		return nil
	})
	for worker := range workers {
		g.Go(func() error {
			for {
				due := start.Add(time.Duration(float64(begun.Add(1)-1) / perSecond * float64(time.Second)))
				if !pause(working, time.Until(due)) {
					return nil
				}
				if err := op(ctx, worker); err != nil {
					return err
				}
				done.Add(1)
			}
		})
	}
	err = g.Wait()
	return reached, err
}
