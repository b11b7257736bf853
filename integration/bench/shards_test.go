package bench_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/measure"
	"taskledger/internal/testkit"
	"taskledger/task"
)

const (
	backlogKinds = 10 // behaviors, of which every shard has some tasks
	backlogSlots = 4
)

// BenchmarkShards lets a node of few slots work off a backlog that is spread over all of its shards, in a cluster of
// many shards and in one of few by turns.
func BenchmarkShards(b *testing.B) {
	run(b, func(tb testing.TB) figures {
		few, many := backlog(tb, 16), backlog(tb, 256)
		warm(tb, few, many)
		all := byTurns(tb, lasts(4*time.Second, 12*time.Second), few, many)
		f := newFigures(tb)
		f.tasks("task", all[1].Sum())
		f.tasks("few-shards-task", all[0].Sum())
		f.atLeast("ratio", measure.Ratio(all[1], all[0]), 0.5)
		return f
	})
}

// backlog starts a cluster of one node, and returns its side.
func backlog(tb testing.TB, shards int) measure.Side {
	var kinds []task.Behavior
	for i := range backlogKinds {
		does := func(context.Context, behaviors.None) (behaviors.None, error) { return behaviors.None{}, nil }
		kinds = append(kinds, behaviors.Define[behaviors.None, behaviors.None](fmt.Sprint("kind-", i), nil).Bind(does))
	}
	n := node(tb, servers(tb, shards), engine.NodeConfig{Name: "n", Slots: backlogSlots, Grace: -1, Behaviors: kinds})
	check(tb, measure.Settle(tb.Context(), n))
	var submits []measure.Op
	for _, kind := range kinds {
		submits = append(submits, measure.Submit(n.Client, kind, func(caller int) task.SubmitOptions {
			// An id of its own: the tasks are spread over all shards.
			return task.SubmitOptions{ID: events.TaskID(fmt.Sprintf("%d-%d", caller, time.Now().UnixNano()))}
		}))
	}
	return measure.Closed(testkit.Times(500, 4000), 1, func(ctx context.Context, caller int) error {
		return submits[caller%len(submits)](ctx, caller)
	})
}
