package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

const (
	rareEvery    = 200  // of so many finished tasks one is of each rare sort
	suspendEvery = 18   // of so many waiting tasks one is suspended: one in 200 of all
	fillInFlight = 1000 // tasks under way while the shards are filled
	loadShare    = 0.82 // of the speed without lists: the load asked for; what it reaches beside lists is measured
	pageLimit    = 100
	turnListers  = 4
)

// ListsConfig says how many tasks are listed beside a load.
type ListsConfig struct {
	Finished int           // tasks that have ended, kept by a retention of 24 hours and 100,000 tasks of a behavior in each shard
	Waiting  int           // older ones, which wait for their time
	InFlight int           // tasks of the load
	Pages    int           // pages asked for each second beside the load, one after the other
	Duration time.Duration // of each timed part
}

// ListsResult holds the times of pages of lists, and their effect on owners.
type ListsResult struct {
	Finished    int           `json:"finished"`
	Waiting     int           `json:"waiting"`
	TasksPerS   float64       `json:"tasks_per_s"`      // without lists
	LoadPerS    float64       `json:"load_tasks_per_s"` // beside them
	LoadRatio   float64       `json:"load_ratio"`       // of the two; at most 0.82, which is asked for
	PagesPerS   float64       `json:"pages_per_s"`      // beside the load
	PageP50Ms   float64       `json:"page_p50_ms"`      // of the filter whose pages take the longest
	PageP99Ms   float64       `json:"page_p99_ms"`      // of the same
	Worst       string        `json:"worst_filter"`     // its name
	TurnP99Ms   float64       `json:"turn_p99_ms"`      // of the owner of a shard of 100,000 tasks between two commits, without lists
	ListTurnMs  float64       `json:"list_turn_p99_ms"` // beside lists: half of them match no task, half match every task
	ListedPerS  float64       `json:"list_pages_per_s"` // of these
	Pages       []FilterPages `json:"pages"`
	CountsP99Ms float64       `json:"counts_p99_ms"`
}

// FilterPages holds the times of the pages of one filter.
type FilterPages struct {
	Filter string  `json:"filter"`
	Pages  int     `json:"pages"`
	Tasks  float64 `json:"tasks_per_page"`
	P50Ms  float64 `json:"p50_ms"`
	P99Ms  float64 `json:"p99_ms"`
}

// ListsBounds are for checks; zero ones allow everything.
type ListsBounds struct {
	Page, Turn time.Duration // p99 of each filter's pages, and of an owner's turns beside lists
	Load       float64       // least LoadRatio
}

// Within returns which bound is broken, or could not be measured.
func (r ListsResult) Within(b ListsBounds) error {
	for _, f := range r.Pages {
		if b.Page > 0 && (f.Pages == 0 || f.P99Ms > float64(b.Page)/float64(time.Millisecond)) {
			return fmt.Errorf("the p99 of %d pages of the filter %q is %.2f ms, the bound %s", f.Pages, f.Filter, f.P99Ms, b.Page)
		}
	}
	if r.LoadRatio < b.Load {
		return fmt.Errorf("the load beside lists has %.2f of its speed without them, the bound %.2f", r.LoadRatio, b.Load)
	}
	if b.Turn > 0 && (r.ListTurnMs == 0 || r.ListTurnMs > float64(b.Turn)/float64(time.Millisecond)) {
		return fmt.Errorf("the p99 of an owner's turns beside lists is %.2f ms, the bound %s", r.ListTurnMs, b.Turn)
	}
	return nil
}

// Lists measures pages of lists among many tasks beside a load, and the turns of an owner beside lists.
func Lists(ctx context.Context, cfg ListsConfig) (r ListsResult, err error) {
	r.Finished, r.Waiting = cfg.Finished, cfg.Waiting
	if err := listAmongMany(ctx, cfg, &r); err != nil {
		return r, err
	}
	return r, turnsBesideLists(ctx, cfg, &r)
}

// sorted are the tasks to list: most of one behavior, some of each rare sort.
type sorted struct {
	*node
	usual, rare *behaviors.Behavior[int, behaviors.None]
	half        time.Time // when half of them had ended
}

var errRare = errors.New("one in 200")

// startSorted starts the node that runs them, and a load of noop tasks.
func startSorted(ctx context.Context, s *servers, inFlight int) (*sorted, error) {
	rules := &behaviors.Rules[int, behaviors.None]{Policy: task.Policy{MaxAttempts: 1, RetainCount: projection.MaxFinished}}
	all := &sorted{usual: behaviors.Define("usual", rules), rare: behaviors.Define("rare", rules)}
	end := func(_ context.Context, i int) (behaviors.None, error) {
		if i%rareEvery == 1 {
			return behaviors.None{}, errRare
		}
		return behaviors.None{}, nil
	}
	link, err := s.link(ctx)
	if err != nil {
		return nil, err
	}
	all.node, err = startNode(ctx, link, engine.NodeConfig{Name: "a", Archive: link.Archive, Slots: perTaskSlots * max(inFlight, fillInFlight/2),
		Behaviors: []task.Behavior{all.usual.Bind(end), all.rare.Bind(end), builtin.Noop()}})
	return all, err
}

// fill makes the tasks that wait, and then those that have ended.
func (s *sorted) fill(ctx context.Context, cfg ListsConfig) error {
	far := time.Now().Add(farAhead)
	if err := inParallel(ctx, cfg.Waiting, func(ctx context.Context, i int) error {
		f, err := s.usual.SubmitWith(ctx, s.node, 0, task.SubmitOptions{NotBefore: far})
		if err == nil && i%suspendEvery == 0 {
			err = s.Operations().Suspend(ctx, f.ID(), "")
		}
		return err
	}); err != nil {
		return fmt.Errorf("make waiting tasks: %w", err)
	}
	var begun atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range fillInFlight {
		g.Go(func() error {
			for i := int(begun.Add(1)); i <= cfg.Finished; i = int(begun.Add(1)) {
				if i == cfg.Finished/2 {
					s.half = time.Now()
				}
				if err := s.finish(ctx, i); err != nil {
					return fmt.Errorf("make a finished task: %w", err)
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// finish makes the i-th finished task.
func (s *sorted) finish(ctx context.Context, i int) error {
	of, o := s.usual, task.SubmitOptions{}
	switch i % rareEvery {
	case 0:
		of = s.rare
	case 2:
		ctx = engine.WithAsker(ctx, events.Asker{Principal: "rare"})
	case 3:
		o.ID = events.TaskID(fmt.Sprintf("tenant-%d/%d", i%97, i))
	case 4:
		o.ID = events.TaskID(fmt.Sprintf("one/%d", i))
	}
	f, err := of.SubmitWith(ctx, s.node, i, o)
	if err == nil {
		_, err = f.Wait(ctx)
	}
	if failed := (*task.Error)(nil); errors.As(err, &failed) && i%rareEvery == 1 {
		err = nil
	}
	return err
}

// filters are the measured filters. Each of them matches at least one task in 200, except "node" and "running".
func (s *sorted) filters() map[string]task.Filter {
	return map[string]task.Filter{
		"all": {}, "created": {Status: task.Created}, "suspended": {Substatus: task.SubSuspended}, "success": {Status: task.Success},
		"failed": {Status: task.Failure, Substatus: task.SubFinal}, "behavior": {Behavior: "rare"}, "creator": {Creator: "rare"},
		"affinity prefix": {AffinityPrefix: "tenant-"}, "affinity": {Affinity: "one"}, "created after the half": {CreatedFrom: s.half},
		"created before the half": {CreatedTo: s.half}, "ended before the half": {EndedTo: s.half}, "ended after the half": {EndedFrom: s.half},
		"node": {Node: s.SessionID()}, "running": {Status: task.Running}}
}

// listAmongMany measures the pages of each filter beside a load.
func listAmongMany(ctx context.Context, cfg ListsConfig, r *ListsResult) (err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	all, err := startSorted(ctx, s, cfg.InFlight)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.close()) }()
	if err := all.fill(ctx, cfg); err != nil {
		return err
	}
	alone, err := closedLoop(ctx, cfg.InFlight, cfg.Duration, submitAndWait(all.node))
	if err != nil {
		return err
	}
	r.TasksPerS = alone.perSecond()
	lists, stop := context.WithCancel(ctx)
	g, lists := errgroup.WithContext(lists)
	g.Go(func() (err error) {
		r.LoadPerS, err = paced(lists, ctx, cfg.InFlight, loadShare*r.TasksPerS, submitAndWait(all.node))
		return err
	})
	g.Go(func() error {
		defer stop()
		var counts recorder
		begun, asked := time.Now(), 0
		listed, err := all.listInTurn(lists, cfg.Pages, cfg.Duration, func() error {
			began := time.Now()
			_, err := all.Counts(lists, "")
			counts.add(time.Since(began))
			return err
		})
		if err != nil {
			return err
		}
		for _, pages := range listed {
			asked += pages.Pages
			if r.Pages = append(r.Pages, pages); pages.P99Ms >= r.PageP99Ms {
				r.PageP50Ms, r.PageP99Ms, r.Worst = pages.P50Ms, pages.P99Ms, pages.Filter
			}
		}
		r.CountsP99Ms, r.PagesPerS = quantile(counts.take(), 0.99), float64(asked)/time.Since(begun).Seconds()
		return nil
	})
	err = g.Wait()
	r.LoadRatio = r.LoadPerS / r.TasksPerS
	return err
}

// paced keeps beginning op at a rate, by so many workers at most, until working ends. It returns how many ended each
// second until then.
func paced(working, ctx context.Context, workers int, perSecond float64, op func(context.Context, int) error) (reached float64, err error) {
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

// paged tracks the pages that have been asked of one filter so far.
type paged struct {
	name   string
	filter task.Filter
	cursor string
	tasks  int
	took   []time.Duration
}

// listInTurn asks for a page of one filter after the other, of each from its beginning to its end and again, for a
// time: so many each second, or fewer when they take longer. So what stalls the machine for a moment is felt by all
// filters alike. After each round it does something else.
func (s *sorted) listInTurn(ctx context.Context, perSecond int, d time.Duration, after func() error) (r []FilterPages, err error) {
	var all []*paged
	for name, f := range s.filters() {
		f.Limit = pageLimit
		all = append(all, &paged{name: name, filter: f})
	}
	for begun := time.Now(); time.Since(begun) < d; {
		for _, l := range all {
			asked := time.Now()
			if err := l.next(ctx, s.node); err != nil {
				return nil, fmt.Errorf("list of the filter %q: %w", l.name, err)
			}
			if !pause(ctx, time.Until(asked.Add(time.Second/time.Duration(perSecond)))) {
				return nil, context.Cause(ctx)
			}
		}
		if err := after(); err != nil {
			return nil, err
		}
	}
	for _, l := range all {
		slices.Sort(l.took)
		r = append(r, FilterPages{Filter: l.name, Pages: len(l.took), Tasks: float64(l.tasks) / float64(len(l.took)), P50Ms: quantile(l.took, 0.5), P99Ms: quantile(l.took, 0.99)})
	}
	return r, nil
}

// next asks for the next page.
func (l *paged) next(ctx context.Context, n *node) error {
	asked := time.Now()
	page, err := n.ListPage(ctx, l.filter, l.cursor)
	if err != nil {
		return err
	}
	if len(page.Missing) > 0 {
		return page.Missing[0].Err
	}
	l.took = append(l.took, time.Since(asked))
	l.tasks, l.cursor = l.tasks+len(page.Tasks), page.Cursor
	return nil
}

// turnsBesideLists measures the turns of the owner of one large shard while clients list its tasks: half of the clients
// ask for what no task matches, so that every task is looked at, and half ask for the newest tasks.
func turnsBesideLists(ctx context.Context, cfg ListsConfig, r *ListsResult) (err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return err
	}
	s.shards = 1
	defer func() { err = errors.Join(err, s.close()) }()
	link, err := s.link(ctx)
	if err != nil {
		return err
	}
	t := &turns{Store: link.Store}
	n, err := startNodeOn(ctx, link, t, engine.NodeConfig{Name: "a", Archive: link.Archive, Behaviors: []task.Behavior{builtin.Noop()}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	far := time.Now().Add(farAhead)
	if err := inParallel(ctx, heldTasks, func(ctx context.Context, _ int) error {
		_, err := n.Submit(ctx, builtin.Noop(), nil, task.SubmitOptions{NotBefore: far})
		return err
	}); err != nil {
		return err
	}
	loop := func() (p99 float64, err error) {
		t.on.Store(true)
		_, err = closedLoop(ctx, loadInFlight, cfg.Duration, submitAndWait(n))
		t.on.Store(false)
		return quantile(t.taken(), 0.99), err
	}
	if r.TurnP99Ms, err = loop(); err != nil {
		return err
	}
	lists, stop := context.WithCancel(ctx)
	var g errgroup.Group
	var pages atomic.Int64
	for i := range turnListers {
		of := task.Filter{Affinity: "nobody"}
		if i%2 == 1 {
			of = task.Filter{Limit: pageLimit}
		}
		g.Go(func() error {
			for lists.Err() == nil {
				if _, err := n.ListPage(lists, of, ""); err != nil && lists.Err() == nil {
					return err
				}
				pages.Add(1)
			}
			return nil
		})
	}
	r.ListTurnMs, err = loop()
	stop()
	r.ListedPerS = float64(pages.Load()) / cfg.Duration.Seconds()
	return errors.Join(err, g.Wait())
}
