package bench_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
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
	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/internal/measure"
	"taskledger/internal/testkit"
)

const (
	viewers      = 10
	viewedLoad   = 1000 // tasks of the load under way at any time
	secretPrefix = "of viewer "
)

// BenchmarkDashboard measures the dashboard of a node that submits a load, for a load of more tasks than etcd has room
// for: journals are archived and trimmed. A process of its own looks at its pages: each viewer at another page, which
// it asks for anew as browsers do, and then at the next one, first while nothing else is done. Then windows of the load
// alone alternate with windows of the load beside the viewers. Settings and audit, which do not refresh themselves and
// read the journal back for as long as a page may, are looked at, too, and count for the load alone.
func BenchmarkDashboard(b *testing.B) { run(b, dashboard) }

func dashboard(tb testing.TB) figures {
	fill, sights := newFill(), newSights()
	all := runs(append(sights.others, noop, fill.behavior)...)
	p := pairOf(tb, servers(tb, 0), viewedLoad, all, all, func(cfg *engine.NodeConfig, c *cluster.Cluster) {
		cfg.Archive, cfg.Logs = c.Archive, c.Logs
	})
	check(tb, fill.fill(tb.Context(), p, testkit.Times(2000, 1_000_000), testkit.Times(1000, 100_000)))
	check(tb, sights.make(tb.Context(), p))
	at := serveDashboard(tb, p)
	check(tb, sights.change(tb.Context(), at, viewers))
	v := &viewing{child: spawn(tb, "viewer"), looking: looking{
		Network: at.Network(),
		Address: at.String(),
		Paths:   slices.Concat(fill.pages(), sights.pages(), sights.once()),
		Once:    sights.once(),
		Viewers: viewers,
		Every:   time.Duration(testkit.Times(100, 2000)) * time.Millisecond,
	}}
	v.begin()
	check(tb, v.look(time.Second)) // which warms both up
	v.begin()
	total := lasts(3*time.Second, 30*time.Second)
	check(tb, v.look(total))
	idle := v.begin()
	alone := loadOf(p.Node, viewedLoad)
	series := must(measure.ByTurns(tb.Context(), 2*total, total/3, alone, v.beside(alone)))(tb)
	f := newFigures(tb)
	f.tasks("task", series[0].Sum())
	f.tasks("beside-viewers-task", series[1].Sum())
	// Ten viewers of the dashboard, with 1,100,000 tasks to list: a load keeps four fifths of its rate, and the p99 of
	// pages is at most ten times that of the idle cluster.
	f.atLeast("load-ratio", measure.Ratio(series[1], series[0]), 0.8)
	compare(f, idle, v.begin(), v.Once)
	return f
}

// compare sets how long pages took that refresh themselves. It leaves out the others: they read the journal back until
// the time of a page is over, and would hide how long the rest takes. Pages that lack a part are not as slow as the
// whole.
func compare(f figures, idle, busy seen, once []string) {
	f.Helper()
	p99 := func(s seen, of func(path string) bool) float64 {
		var all []time.Duration
		for path, took := range s.Took {
			if of(path) {
				all = append(all, took...)
			}
		}
		slices.Sort(all)
		return measure.Quantile(all, 0.99)
	}
	refreshed := func(path string) bool { return !slices.Contains(once, path) }
	idleP99, busyP99 := p99(idle, refreshed), p99(busy, refreshed)
	f.is("idle-page-p99-ms", idleP99)
	f.is("page-p99-ms", busyP99)
	if math.IsNaN(busyP99 / idleP99) {
		f.Errorf("too few pages were seen to tell")
	}
	f.atMost("page-p99-ratio", busyP99/idleP99, 10)
	f.atMost("pages-cut", float64(idle.Cut+busy.Cut), 0)
	for _, path := range slices.Sorted(maps.Keys(busy.Took)) {
		one := func(other string) bool { return other == path }
		f.Logf("p99 of %s: %.1f ms, of the idle cluster %.1f ms", path, p99(busy, one), p99(idle, one))
	}
}

// serveDashboard serves the API and the dashboard of a node.
func serveDashboard(tb testing.TB, p *measure.Pair) net.Addr {
	tb.Helper()
	client, lately := operations.Direct{Client: p.Client}, new(trend.Trend)
	u := must(ui.New(ui.Config{Tokens: tokens(viewerToken), Version: "bench", Trend: lately}))(tb)
	sampler := trend.Sampler{Observer: client, Into: lately}
	return serveAPI(tb, "tcp", "127.0.0.1:0", api.Config{
		Client: client,
		Tokens: tokens(viewerToken),
		Routes: slices.Concat(
			stores.Routes(client.Stores()),
			schedules.Routes(client.Schedules(), client.Backfills()),
			logs.Routes(client),
			works.Routes(client.Works()),
			u.Routes(),
		),
		ErrorFormats: []api.ErrorFormat{stores.ErrorFormat(), u.ErrorFormat()},
	}, u.Run, sampler.Run)
}

// secretOf returns the secret of the token of a viewer: what the API gives a principal each of them has.
func secretOf(viewer int) string { return secretPrefix + strconv.Itoa(viewer) }

// viewerToken finds the token of a viewer.
func viewerToken(text string) *token.Token {
	viewer, is := strings.CutPrefix(text, secretPrefix)
	if !is {
		return nil
	}
	return &token.Token{Name: "viewer-" + viewer, Role: token.Operator}
}

// viewing orders a process of viewers, and adds up what they see.
type viewing struct {
	*child
	looking
	seen seen
}

// begin returns what was seen, and forgets it.
func (v *viewing) begin() seen {
	was := v.seen
	v.seen = seen{Took: map[string][]time.Duration{}}
	return was
}

// look has the viewers look for a while.
func (v *viewing) look(d time.Duration) error {
	var got seen
	v.Lasts = d
	err := v.ask(v.looking, &got)
	if err == nil && got.Err != "" {
		err = errors.New(got.Err)
	}
	if err != nil {
		return fmt.Errorf("viewers: %w", err)
	}
	v.seen.Cut += got.Cut
	for path, took := range got.Took {
		v.seen.Took[path] = append(v.seen.Took[path], took...)
	}
	return nil
}

// beside returns a side of a load in whose windows viewers look.
func (v *viewing) beside(load measure.Side) measure.Side {
	return func(ctx context.Context, length time.Duration) (measure.Window, error) {
		var g errgroup.Group
		g.Go(func() error { return v.look(length) })
		w, err := load(ctx, length)
		return w, errors.Join(err, g.Wait())
	}
}

func TestCompare_TellsTheBoundThatIsBroken(t *testing.T) {
	t.Setenv("PROOF", "1")
	took := func(ms ...int) map[string][]time.Duration {
		of := map[string][]time.Duration{"/ui/audit": {time.Hour}}
		for _, n := range ms {
			of["/ui/"] = append(of["/ui/"], time.Duration(n)*time.Millisecond)
		}
		return of
	}
	const few = "too few pages were seen to tell; page-p99-ratio is NaN, want at most 10"
	for says, c := range map[string]struct{ idle, busy seen }{
		"": {seen{Took: took(20)}, seen{Took: took(200)}},
		"page-p99-ratio is 12.000, want at most 10": {seen{Took: took(20)}, seen{Took: took(240)}},
		few:                                  {seen{Took: took()}, seen{Took: took(240)}},
		"pages-cut is 3.000, want at most 0": {seen{Took: took(20), Cut: 1}, seen{Took: took(20), Cut: 2}},
	} {
		proof := &told{TB: t}
		compare(newFigures(proof), c.idle, c.busy, []string{"/ui/audit"})
		if got := strings.Join(proof.errors, "; "); got != says {
			t.Errorf("a proof says %q, want %q", got, says)
		}
	}
}
