package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/internal/measure"
	"taskledger/internal/testkit"
	"taskledger/task"
)

// submitRate counts tasks that are surely submitted each second. It decides when the first ones become due.
const submitRate = 2000

// delayed says how many tasks become due, and beside how many others that wait.
type delayed struct {
	waiting int
	perS    int // tasks that become due each second
	takes   time.Duration
	due     *behaviors.Behavior[int64, behaviors.None]
	late    recorder
}

// BenchmarkDelayed measures how late tasks start that become due while many others wait: otherwise idle, and beside a
// load.
func BenchmarkDelayed(b *testing.B) {
	run(b, func(tb testing.TB) figures {
		d := delayed{waiting: testkit.Times(100, 1000), perS: 100, takes: lasts(time.Second, 5*time.Second)}
		return d.measure(tb)
	})
}

// count returns the number of tasks that become due.
func (d *delayed) count() int { return int(d.takes.Seconds() * float64(d.perS)) }

// lead returns the time from the submit of those tasks until the first of them is due.
func (d *delayed) lead() time.Duration {
	return time.Second + time.Duration(d.count())*time.Second/submitRate
}

func (d *delayed) measure(tb testing.TB) figures {
	d.due = behaviors.Define[int64, behaviors.None]("due", nil)
	bound := d.due.Bind(func(_ context.Context, at int64) (behaviors.None, error) {
		d.late.add(time.Since(time.UnixMilli(at)))
		return behaviors.None{}, nil
	})
	n := node(tb, servers(tb, 0), engine.NodeConfig{Name: "a", Behaviors: []task.Behavior{bound, noop}})
	far := task.SubmitOptions{NotBefore: time.Now().Add(farAhead)}
	check(tb, inParallel(tb.Context(), d.waiting, func(ctx context.Context, _ int) error {
		_, err := d.due.SubmitWith(ctx, n, 0, far)
		return err
	}))
	check(tb, d.becomeDue(tb.Context(), n))
	idle := d.late.take()
	g, loaded := errgroup.WithContext(tb.Context())
	g.Go(func() error {
		_, err := measure.Loop(loaded, loadInFlight, d.lead()+d.takes, measure.SubmitAndWait(n.Client))
		return err
	})
	g.Go(func() error { return d.becomeDue(loaded, n) })
	check(tb, g.Wait())
	busy := d.late.take()
	f := newFigures(tb)
	f.is("late-p50-ms", measure.Quantile(idle, 0.5))
	f.is("late-p99-ms", measure.Quantile(idle, 0.99))
	f.is("beside-load-late-p50-ms", measure.Quantile(busy, 0.5))
	f.is("beside-load-late-p99-ms", measure.Quantile(busy, 0.99))
	return f
}

// becomeDue submits tasks that become due one after the other, and waits until all of them have run.
func (d *delayed) becomeDue(ctx context.Context, n *measure.Node) error {
	begin := time.Now().Add(d.lead()).Truncate(time.Millisecond)
	futures := make([]*behaviors.Future[behaviors.None], d.count())
	err := inParallel(ctx, len(futures), func(ctx context.Context, i int) (err error) {
		at := begin.Add(time.Duration(i) * time.Second / time.Duration(d.perS)).Truncate(time.Millisecond)
		futures[i], err = d.due.SubmitWith(ctx, n, at.UnixMilli(), task.SubmitOptions{NotBefore: at})
		return err
	})
	if err != nil {
		return err
	}
	if time.Now().After(begin) {
		return fmt.Errorf("submitting %d tasks took longer than %s", len(futures), d.lead())
	}
	for _, f := range futures {
		if _, err := f.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func TestDelayed_TellsEveryFigure(t *testing.T) {
	t.Parallel()
	d := delayed{waiting: 20, perS: 20, takes: 500 * time.Millisecond}
	d.measure(t).wantPositive("late-p99-ms", "beside-load-late-p99-ms")
}
