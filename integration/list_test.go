package integration_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/projection/listing"
	"taskledger/store"
	"taskledger/task"
)

// pages lists all that matches, page by page, and calls between after each of them.
func pages(t *testing.T, c *engine.Client, f task.Filter, between func(task.Page)) (all []task.Task) {
	t.Helper()
	for cursor, more := "", true; more; more = cursor != "" {
		p, err := c.ListPage(within(t, soon), f, cursor)
		ok(t, err)
		all, cursor = append(all, p.Tasks...), p.Cursor
		between(p)
	}
	return all
}

// A list in pages is newest first over all shards. What is created, changed and deleted between the pages makes no task
// come twice, and leaves none out that was there before and still is.
func TestList_PagesTellEveryTaskOnceNewestFirst(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		w := defineWork("work", &behaviors.Rules[string, string]{TaskID: idFromParams})
		n := c.StartNode("a", nil, w.on("a"))
		client := c.StartClient("caller", nil)
		there := map[events.TaskID]bool{}
		const tasks = 60
		for i := range tasks {
			id := idOf(i%c.Shards(), c.Shards(), fmt.Sprint("x", i))
			w.submitWith(t, client, id, inAnHour())
			there[events.TaskID(id)] = true
		}
		for _, at := range []*engine.Client{n.Client, client.Client} {
			got, changed := map[events.TaskID]bool{}, 0
			all := pages(t, at, task.Filter{Behavior: "work", Limit: 7}, func(p task.Page) {
				for _, task := range p.Tasks {
					got[task.ID] = true
				}
				changed++
				w.submitWith(t, client, idOf(changed%c.Shards(), c.Shards(), fmt.Sprintf("y%t%d.", at == n.Client, changed)), inAnHour())
				for id := range there {
					if !got[id] {
						ok(t, at.Operations().Suspend(within(t, soon), id, ""))
						break
					}
				}
				for id := range there {
					if !got[id] {
						ok(t, at.Operations().Delete(within(t, soon), id))
						delete(there, id)
						break
					}
				}
			})
			if !slices.IsSortedFunc(all, func(a, b task.Task) int { return b.CreatedAt.Time().Compare(a.CreatedAt.Time()) }) {
				t.Error("the tasks are not listed newest first")
			}
			if len(got) != len(all) {
				t.Errorf("%d tasks were listed, %d different ones", len(all), len(got))
			}
			for id := range there {
				if !got[id] {
					t.Errorf("task %s was left out", id)
				}
			}
			there = got
			maps.DeleteFunc(there, func(id events.TaskID, _ bool) bool {
				_, err := at.GetLinear(within(t, soon), id)
				return err != nil
			})
		}
		counts, err := client.Counts(within(t, soon), "")
		ok(t, err)
		all := 0
		for task, err := range client.List(within(t, soon), task.Filter{Limit: 1000}) {
			ok(t, err)
			if task.Behavior == "work" {
				all++
			}
		}
		counted := int64(0)
		for _, row := range counts.Rows {
			if row.Behavior != "work" || row.Status != task.Created || row.Substatus != task.SubScheduled && row.Substatus != task.SubSuspended {
				t.Errorf("counted %+v", row)
			}
			counted += row.Tasks
		}
		if int(counted) != all || len(counts.Missing) > 0 {
			t.Errorf("%d tasks are counted, %d listed, %d shards missing", counted, all, len(counts.Missing))
		}
		for says, list := range map[string]func() error{
			"another filter": func() error {
				p, err := client.ListPage(within(t, soon), task.Filter{Limit: 1}, "")
				ok(t, err)
				_, err = client.ListPage(within(t, soon), task.Filter{Behavior: "work"}, p.Cursor)
				return err
			},
			"another cluster": func() error {
				other := listing.Cursor{Cluster: "other", From: listing.Begin(task.Filter{}, c.Shards()).From}
				_, err := client.ListPage(within(t, soon), task.Filter{}, other.Text(task.Filter{}))
				return err
			},
			"not before": func() error {
				at := inAnHour().NotBefore
				_, err := client.ListPage(within(t, soon), task.Filter{CreatedFrom: at, CreatedTo: at}, "")
				return err
			},
		} {
			err := list()
			if _, is := errors.AsType[*store.InvalidError](err); !is || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", says, err)
			}
		}
	})
}
