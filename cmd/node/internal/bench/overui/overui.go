// Package overui measures the dashboard beside a load: what its viewers cost the load, and how long they wait for pages.
package overui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/api"
	"taskledger/api/logs"
	"taskledger/api/operations"
	"taskledger/api/schedules"
	"taskledger/api/stores"
	"taskledger/api/token"
	"taskledger/api/ui"
	"taskledger/api/ui/trend"
	"taskledger/api/works"
	"taskledger/cmd/node/internal/bench"
)

const (
	pairs        = 3 // counts the pairs of windows: one of the load alone, then one beside the viewers
	secretPrefix = "of viewer "
)

// Config says how many tasks there are, how large the load is, and how many look.
type Config struct {
	Finished int           // tasks that have ended, and are kept
	Waiting  int           // tasks that wait for their time
	InFlight int           // tasks of the load under way at any time
	Viewers  int           // each looks at another page, asks for it anew, and then goes to the next one
	Every    time.Duration // bounds the time between two questions of a viewer from below, as browsers do
	Duration time.Duration // of the load alone, of the load beside viewers, and of the viewers of an idle cluster: each
	Viewer   []string      // command line of the process that runs Look
}

// Result holds the measured values.
type Result struct {
	Finished  int     `json:"finished"`
	Waiting   int     `json:"waiting"`
	Viewers   int     `json:"viewers"`
	TasksPerS float64 `json:"tasks_per_s"`      // of the load alone
	LoadPerS  float64 `json:"load_tasks_per_s"` // beside viewers
	LoadRatio float64 `json:"load_ratio"`       // median over pairs of neighbouring windows
	IdlePages int     `json:"idle_pages"`       // of the idle cluster
	IdleP50Ms float64 `json:"idle_page_p50_ms"`
	IdleP99Ms float64 `json:"idle_page_p99_ms"`
	Pages     int     `json:"pages"` // beside the load
	P50Ms     float64 `json:"page_p50_ms"`
	P99Ms     float64 `json:"page_p99_ms"`
	PageRatio float64 `json:"page_ratio"` // of the two p99
	Worst     string  `json:"worst_page"` // has the longest p99 beside the load
	WorstMs   float64 `json:"worst_page_p99_ms"`
	Cut       int     `json:"pages_cut"` // pages of either that lacked a part, which are not as slow as the whole

	Each []PageTimes `json:"each"`
}

// PageTimes holds how long one page took.
type PageTimes struct {
	Path      string  `json:"path"`
	IdlePages int     `json:"idle_pages"`
	IdleP99Ms float64 `json:"idle_p99_ms"`
	Pages     int     `json:"pages"`
	P99Ms     float64 `json:"p99_ms"`
}

// Bounds are for checks; zero ones allow everything.
type Bounds struct {
	Load float64 // bounds Result.LoadRatio from below
	Page float64 // bounds Result.PageRatio from above
}

// Within returns which bound is broken, or could not be measured.
func (r *Result) Within(b Bounds) error {
	switch {
	case r.Pages == 0 || r.IdlePages == 0:
		return fmt.Errorf("%d pages beside the load and %d of the idle cluster: too few to tell", r.Pages, r.IdlePages)
	case r.LoadRatio < b.Load:
		return fmt.Errorf("the load beside viewers has %.2f of its rate without them, the bound %.2f", r.LoadRatio, b.Load)
	case b.Page > 0 && r.PageRatio > b.Page:
		return fmt.Errorf("the p99 of pages beside the load is %.1f ms, %.1f times the %.1f ms of the idle cluster, the bound %.1f",
			r.P99Ms, r.PageRatio, r.IdleP99Ms, b.Page)
	case b.Page > 0 && r.Cut > 0:
		return fmt.Errorf("%d of %d pages lacked a part, so that how long pages take is not known", r.Cut, r.Pages+r.IdlePages)
	}
	return nil
}

// Run measures the dashboard of a node that submits the load and runs nothing of it.
func Run(ctx context.Context, cfg Config) (r Result, err error) {
	f, s := newFill(), newSights()
	pair, err := bench.StartArchived(ctx, cfg.InFlight, append(s.others, f.behavior)...)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	if err := f.fill(ctx, pair, cfg.Finished, cfg.Waiting); err != nil {
		return r, err
	}
	if err := s.make(ctx, pair); err != nil {
		return r, err
	}
	address, end, err := serve(ctx, pair)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, end()) }()
	if err := s.change(ctx, address, cfg.Viewers); err != nil {
		return r, err
	}
	viewer, err := bench.Spawn(cfg.Viewer)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, viewer.Close()) }()
	m := measurement{
		cfg:    cfg,
		pair:   pair,
		viewer: viewer,
		at:     address,
		paths:  slices.Concat(f.pages(), s.pages(), s.once()),
		once:   s.once(),
	}
	r = Result{Finished: cfg.Finished, Waiting: cfg.Waiting, Viewers: cfg.Viewers}
	return r, m.run(ctx, &r)
}

// serve serves the API and the dashboard of a node, until the returned function is called.
func serve(ctx context.Context, pair *bench.Pair) (at net.Addr, end func() error, err error) {
	client := operations.Direct{Client: pair.Client}
	lately := new(trend.Trend)
	u, err := ui.New(ui.Config{Tokens: eachToken{}, Version: "bench", Trend: lately})
	if err != nil {
		return nil, nil, err
	}
	served, err := api.New(api.Config{
		Client: client,
		Tokens: eachToken{},
		Routes: slices.Concat(
			stores.Routes(client.Stores()),
			schedules.Routes(client.Schedules(), client.Backfills()),
			logs.Routes(client),
			works.Routes(client.Works()),
			u.Routes(),
		),
		ErrorFormats: []api.ErrorFormat{stores.ErrorFormat(), u.ErrorFormat()},
	})
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	serving, stop := context.WithCancel(ctx)
	sampler := trend.Sampler{Observer: client, Into: lately}
	var g errgroup.Group
	g.Go(func() error { return served.Serve(serving, l) })
	g.Go(func() error { return u.Run(serving) })
	g.Go(func() error { return sampler.Run(serving) })
	return l.Addr(), func() error { stop(); return g.Wait() }, nil
}

// eachToken has a token for each viewer: what the API gives a principal each of them has.
type eachToken struct{}

// secretOf returns the secret of the token of a viewer.
func secretOf(viewer int) string { return secretPrefix + strconv.Itoa(viewer) }

// Find implements api.Tokens.
func (eachToken) Find(text string) *token.Token {
	viewer, is := strings.CutPrefix(text, secretPrefix)
	if !is {
		return nil
	}
	return &token.Token{Name: "viewer-" + viewer, Role: token.Operator}
}

type measurement struct {
	cfg    Config
	pair   *bench.Pair
	viewer bench.Child
	at     net.Addr // address of the dashboard
	paths  []string
	once   []string // those of paths that do not refresh themselves
	cut    int      // pages that lacked a part
}

// run measures the viewers of the idle cluster, and then the load alone and beside them by turns.
func (m *measurement) run(ctx context.Context, r *Result) error {
	if _, err := m.look(time.Second); err != nil { // which warms both up
		return err
	}
	m.cut = 0
	idle, err := m.look(m.cfg.Duration)
	if err != nil {
		return err
	}
	var alone, beside, ratios []float64
	busy := map[string][]time.Duration{}
	for range pairs {
		one, err := m.load(ctx)
		if err != nil {
			return err
		}
		other, err := m.both(ctx, busy)
		if err != nil {
			return err
		}
		alone, beside, ratios = append(alone, one), append(beside, other), append(ratios, other/one)
	}
	r.TasksPerS, r.LoadPerS, r.LoadRatio = bench.Median(alone), bench.Median(beside), bench.Median(ratios)
	r.tell(idle, busy, m.once)
	r.Cut = m.cut
	return nil
}

// load returns the rate of the load in a window.
func (m *measurement) load(ctx context.Context) (perSecond float64, err error) {
	n, took, _, err := bench.Loop(ctx, m.cfg.InFlight, m.cfg.Duration/pairs, m.pair.SubmitAndWait())
	return float64(n) / took.Seconds(), err
}

// both returns the rate of the load in a window in which viewers look, and adds how long their pages took.
func (m *measurement) both(ctx context.Context, to map[string][]time.Duration) (perSecond float64, err error) {
	var g errgroup.Group
	g.Go(func() error {
		seen, err := m.look(m.cfg.Duration / pairs)
		for path, took := range seen {
			to[path] = append(to[path], took...)
		}
		return err
	})
	perSecond, err = m.load(ctx)
	return perSecond, errors.Join(err, g.Wait())
}

// look has viewers look for a while, and returns how long their pages took.
func (m *measurement) look(d time.Duration) (took map[string][]time.Duration, err error) {
	order := looking{
		Network: m.at.Network(),
		Address: m.at.String(),
		Paths:   m.paths,
		Once:    m.once,
		Viewers: m.cfg.Viewers,
		Micros:  d.Microseconds(),
		Every:   m.cfg.Every.Microseconds(),
	}
	if err := json.NewEncoder(m.viewer.In).Encode(order); err != nil {
		return nil, fmt.Errorf("order viewers: %w", err)
	}
	var told seen
	line, err := m.viewer.Out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &told)
	}
	if err == nil && told.Err != "" {
		err = errors.New(told.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("viewers: %w", err)
	}
	m.cut += told.Cut
	took = map[string][]time.Duration{}
	for path, all := range told.Micros {
		for _, micros := range all {
			took[path] = append(took[path], time.Duration(micros)*time.Microsecond)
		}
	}
	return took, nil
}

// tell fills in how long pages took, each of them and all that refresh themselves. It leaves out
// the others: they read the journal back until the time of a page is over, and would hide how long the rest takes.
func (r *Result) tell(idle, busy map[string][]time.Duration, once []string) {
	var allIdle, allBusy []time.Duration
	for path, took := range busy {
		p := PageTimes{
			Path:      path,
			IdlePages: len(idle[path]),
			IdleP99Ms: quantile(idle[path], 0.99),
			Pages:     len(took),
			P99Ms:     quantile(took, 0.99),
		}
		r.Each = append(r.Each, p)
		if slices.Contains(once, path) {
			continue
		}
		if p.P99Ms >= r.WorstMs {
			r.Worst, r.WorstMs = path, p.P99Ms
		}
		allIdle, allBusy = append(allIdle, idle[path]...), append(allBusy, took...)
	}
	slices.SortFunc(r.Each, func(x, y PageTimes) int { return int(y.P99Ms*1000) - int(x.P99Ms*1000) })
	r.IdlePages, r.IdleP50Ms, r.IdleP99Ms = len(allIdle), quantile(allIdle, 0.5), quantile(allIdle, 0.99)
	r.Pages, r.P50Ms, r.P99Ms = len(allBusy), quantile(allBusy, 0.5), quantile(allBusy, 0.99)
	if r.IdleP99Ms > 0 {
		r.PageRatio = r.P99Ms / r.IdleP99Ms
	}
}

// quantile returns the quantile of times in milliseconds; 0 of none.
func quantile(times []time.Duration, q float64) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return float64(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Microseconds()) / 1000
}
