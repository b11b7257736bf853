package bench_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/measure"
	"taskledger/task"
)

const (
	fewNodes        = 3
	fewSlots        = 4  // of each node
	waitingForSlots = 20 // tasks that are submitted and have not ended, for each slot
	fewSlotsWarmUp  = 2 * time.Second
)

// BenchmarkUtilization measures for which share of their time few slots run a task, while tasks wait for them all the
// time. The rest is the way of an outcome to the owner, and of the next task back.
func BenchmarkUtilization(b *testing.B) {
	for _, c := range []struct {
		name  string
		takes time.Duration
		id    func(loop, turn int) events.TaskID
		least float64
	}{
		// Few slots are used while work waits for them: 0.93 and 0.6 on a quiet machine.
		{"task=50ms", 50 * time.Millisecond, nil, 0.8},
		{"task=5ms", 5 * time.Millisecond, nil, 0.4},
		{"task=5ms/shards=1", 5 * time.Millisecond, func(loop, turn int) events.TaskID {
			return events.TaskID(fmt.Sprintf("one/%d-%d", loop, turn))
		}, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			run(b, func(tb testing.TB) figures { return utilization(tb, c.takes, c.id, c.least) })
		})
	}
}

// occupy takes a slot for some time, and adds the nanoseconds that it did.
func occupy(busy *atomic.Int64, d time.Duration) task.Behavior {
	b := behaviors.Define[behaviors.None, behaviors.None]("occupy", nil)
	return b.Bind(func(ctx context.Context, _ behaviors.None) (behaviors.None, error) {
		began := time.Now()
		pause(ctx, d)
		busy.Add(int64(time.Since(began)))
		return behaviors.None{}, ctx.Err()
	})
}

func utilization(tb testing.TB, takes time.Duration, id func(loop, turn int) events.TaskID, least float64) figures {
	s := servers(tb, 0)
	busy := make([]atomic.Int64, fewNodes)
	var nodes []*measure.Node
	for i := range busy {
		nodes = append(nodes, node(tb, s, engine.NodeConfig{
			Name:      fmt.Sprint("n", i),
			Slots:     fewSlots,
			Grace:     -1,
			Behaviors: []task.Behavior{occupy(&busy[i], takes)},
		}))
	}
	check(tb, measure.Settle(tb.Context(), nodes...))
	load, stop := context.WithCancelCause(tb.Context())
	var loops sync.WaitGroup
	defer loops.Wait()
	defer stop(nil)
	var tasks atomic.Int64
	for i := range fewNodes * fewSlots * waitingForSlots {
		turns, on := 0, nodes[i%fewNodes]
		submit := measure.Submit(on.Client, occupy(new(atomic.Int64), takes), func(loop int) (o task.SubmitOptions) {
			if id != nil {
				o.ID = id(loop, turns)
			}
			turns++
			return o
		})
		loops.Go(func() {
			for {
				if err := submit(load, i); err != nil {
					stop(err) // the first cause counts
					return
				}
				tasks.Add(1)
			}
		})
	}
	var all measure.Window
	var shares []float64
	counted := func(d time.Duration) {
		cpu, before, began := must(measure.CPU())(tb), tasks.Load(), time.Now()
		ran := make([]int64, len(busy))
		for i := range busy {
			ran[i] = busy[i].Load()
		}
		if !pause(load, d) {
			tb.Fatal(context.Cause(load))
		}
		all.Count, all.Took, all.CPU = int(tasks.Load()-before), time.Since(began), must(measure.CPU())(tb)-cpu
		shares = nil
		for i := range busy {
			shares = append(shares, float64(busy[i].Load()-ran[i])/float64(all.Took)/fewSlots)
		}
	}
	counted(fewSlotsWarmUp)
	counted(lasts(time.Second, 6*time.Second))
	f := newFigures(tb)
	f.tasks("task", all)
	f.atLeast("share", (shares[0]+shares[1]+shares[2])/fewNodes, least)
	f.is("least-share", min(shares[0], shares[1], shares[2]))
	return f
}
