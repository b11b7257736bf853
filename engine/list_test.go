package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/paging"
	"taskledger/events"
	"taskledger/task"
)

// Shards whose owner has died are named after three seconds, with what the others hold; the cursor brings the rest
// once they are served.
func TestList_NamesTheShardsThatAreSilentAndGivesTheRest(t *testing.T) {
	for _, withBus := range []bool{true, false} {
		t.Run(fmt.Sprint("NATS: ", withBus), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, job := newModelled(t, withBus), newJob(task.Policy{})
				for _, name := range []string{"a", "b"} {
					c.start(name, 0, func(cfg *cfg) { cfg.TTL = 20 * time.Second }, job).ready(t)
				}
				c.spread(2)
				caller := c.nodes[1]
				for shard := range modelledShards {
					o := task.SubmitOptions{ID: idIn(shard, modelledShards), NotBefore: time.Now().Add(time.Hour)}
					if _, err := caller.Submit(t.Context(), job, nil, o); err != nil {
						t.Fatal(err)
					}
				}
				told := map[events.TaskID]bool{}
				page := func(cursor string) task.Page {
					t.Helper()
					p, err := caller.ListPage(t.Context(), task.Filter{}, cursor)
					if err != nil {
						t.Fatal(err)
					}
					for _, task := range p.Tasks {
						if told[task.ID] {
							t.Errorf("task %s comes twice", task.ID)
						}
						told[task.ID] = true
					}
					return p
				}
				wantCounts := func(want, missing int) {
					t.Helper()
					all, err := caller.Counts(t.Context(), "")
					n := int64(0)
					for _, row := range all.Rows {
						n += row.Tasks
					}
					if err != nil || int(n) != want || len(all.Missing) != missing {
						t.Errorf("%d tasks counted, %d shards missing, %v; want %d and %d", n, len(all.Missing), err, want, missing)
					}
				}
				wantCounts(modelledShards, 0)
				c.nodes[0].crash()
				began := time.Now()
				first := page("")
				if took := time.Since(began); took > 3*time.Second+100*time.Millisecond {
					t.Errorf("the page took %s", took)
				}
				if len(first.Missing) != modelledShards/2 || len(first.Tasks) != modelledShards/2 || !first.Through || first.Cursor == "" {
					t.Errorf("%d shards are missing, %d tasks listed, through %t, cursor %q", len(first.Missing), len(first.Tasks), first.Through, first.Cursor)
				}
				for _, m := range first.Missing {
					if !strings.Contains(m.Err.Error(), fmt.Sprintf("shard %d does not answer", m.Shard)) || told[idIn(m.Shard, modelledShards)] {
						t.Errorf("shard %d is missing: %v", m.Shard, m.Err)
					}
				}
				wantCounts(modelledShards/2, modelledShards/2)
				listed, failed := 0, 0
				for _, err := range caller.List(t.Context(), task.Filter{}) {
					if listed++; err != nil {
						failed++
					}
				}
				if listed != modelledShards || failed != modelledShards/2 {
					t.Errorf("listed %d tasks and errors, of these %d errors", listed, failed)
				}
				time.Sleep(time.Minute)
				second := page(first.Cursor)
				if len(second.Missing) != 0 || second.Cursor != "" || len(told) != modelledShards {
					t.Errorf("%d shards are missing, cursor %q, after %v", len(second.Missing), second.Cursor, slices.Sorted(maps.Keys(told)))
				}
				wantCounts(modelledShards, 0)
			})
		})
	}
}

// A list of a context that has ended, or ends between its pages, ends with the cause.
func TestList_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, job := newModelled(t, true), newJob(task.Policy{})
		n := c.start("a", 0, nil, job)
		n.ready(t)
		const tasks = 30
		for i := range tasks {
			if _, err := n.Submit(t.Context(), job, nil, task.SubmitOptions{ID: events.TaskID(fmt.Sprint("t-", i)), NotBefore: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
		}
		why := errors.New("why")
		for _, until := range []int{0, 1} {
			ctx, end := context.WithCancelCause(t.Context())
			told, pages, failed, cursor := 0, 0, error(nil), ""
			list := func(f task.Filter, at string) (task.Page, error) {
				if told >= until {
					end(why)
				}
				if pages++; pages > 10 {
					t.Fatal("the list does not end")
				}
				f.Limit = min(f.Limit, 10)
				p, err := n.ListPage(ctx, f, at)
				cursor = p.Cursor
				return p, err
			}
			for _, err := range paging.All(task.Filter{Limit: 100}, list) {
				if failed = err; err == nil {
					told++
				}
			}
			if !errors.Is(failed, why) || told != 10*until || cursor == "" {
				t.Errorf("%d tasks, %v, cursor %q", told, failed, cursor)
			}
			errs := 0
			for _, err := range n.List(ctx, task.Filter{}) {
				if errs++; !errors.Is(err, why) {
					t.Errorf("under an ended context it yields %v", err)
				}
			}
			if errs != 1 {
				t.Errorf("it yields %d times", errs)
			}
		}
	})
}
