package bench_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/internal/measure"
	"taskledger/task"
)

// BenchmarkWithoutNATS measures how long after its handler a future resolves on another node when NATS has stopped.
func BenchmarkWithoutNATS(b *testing.B) {
	run(b, func(tb testing.TB) figures { return withoutNATS(tb, lasts(time.Second, 5*time.Second)) })
}

func withoutNATS(tb testing.TB, takes time.Duration) figures {
	s := servers(tb, 0)
	doomed := servers(tb, 0) // for its NATS
	start := func(cfg engine.NodeConfig) *measure.Node {
		c := must(cluster.Open(tb.Context(), cluster.Config{
			Etcd:     []string{s.EtcdEndpoint()},
			NATS:     []string{doomed.NATSURL()},
			NATSNKey: doomed.NATSNKey(),
			Log:      measure.Discard,
		}))(tb)
		n := must(measure.StartNode(tb.Context(), c, cfg))(tb)
		tb.Cleanup(func() { ended(tb, n.Close()) })
		return n
	}
	var handled sync.Map // time by task
	stamp := behaviors.Define[behaviors.None, behaviors.None]("stamp", nil)
	bound := stamp.Bind(func(ctx context.Context, _ behaviors.None) (behaviors.None, error) {
		a, _ := behaviors.Attempt(ctx)
		handled.Store(a.Task, time.Now())
		return behaviors.None{}, nil
	})
	a := start(engine.NodeConfig{Name: "a", Slots: -1})
	b := start(engine.NodeConfig{Name: "b", Behaviors: []task.Behavior{bound}})
	check(tb, measure.Settle(tb.Context(), a, b))
	check(tb, doomed.Close()) // and once more at the end
	var late recorder
	turn := measure.Closed(loadInFlight, 1, func(ctx context.Context, _ int) error {
		f, err := stamp.Submit(ctx, a, behaviors.None{})
		if err != nil {
			return err
		}
		_, err = f.Wait(ctx)
		if at, ok := handled.LoadAndDelete(f.ID()); ok && err == nil {
			late.add(time.Since(at.(time.Time)))
		}
		return err
	})
	warm(tb, turn) // after NATS has gone
	late.take()
	must(turn(tb.Context(), takes))(tb)
	times := late.take()
	f := newFigures(tb)
	f.is("resolve-p50-ms", measure.Quantile(times, 0.5))
	f.is("resolve-p99-ms", measure.Quantile(times, 0.99))
	f.is("resolutions", float64(len(times)))
	return f
}

func TestWithoutNATS_TellsEveryFigure(t *testing.T) {
	t.Parallel()
	withoutNATS(t, 500*time.Millisecond).wantPositive("resolve-p99-ms", "resolutions")
}
