package integration_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/task"
)

// crowd returns the number of submits that the crowd tests make, and of their ids.
func crowd() (submits, ids int) { return testkit.Times(10_000, 100_000), testkit.Times(100, 1_000) }

func TestSubmit_CrowdOnFewIDsFromNodesAndClientsRunsEachOnce(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		testkit.Busy(t)
		submits, ids := crowd()
		l := defineTally(&behaviors.Rules[string, string]{TaskID: idFromParams})
		members := []behaviors.Client{c.StartClient("first", nil), c.StartClient("second", nil)}
		for _, n := range c.StartNodes(nil, l.on, "a", "b", "c") {
			members = append(members, n)
		}
		ctx := within(t, 3*soon)
		var all sync.WaitGroup
		room := make(chan struct{}, 1000)
		for i := range submits {
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				id := strconv.Itoa(i % ids)
				f, err := l.Submit(ctx, members[i%len(members)], id)
				if err != nil {
					t.Errorf("submit %d: %v", i, err)
					return
				}
				if got, err := f.Wait(ctx); err != nil || got != id+" ran 1" {
					t.Errorf("submit %d: got %q, %v", i, got, err)
				}
			})
		}
		all.Wait()
		l.wantOnce(t, members[0].(*testcluster.Client).Client, ids)
	})
}

// sum counts requests: submits that meet before or while it runs add up.
type sum struct {
	Count int `json:"count"`
}

func TestMerge_ConcurrentMergesLoseNone(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		adding := behaviors.Define("adding", &behaviors.Rules[sum, int]{
			TaskID: func(sum) events.TaskID { return "total" },
			Merge:  func(stored, requested sum) sum { return sum{stored.Count + requested.Count} },
		})
		bound := adding.Bind(func(_ context.Context, p sum) (int, error) { return p.Count, nil })
		a := c.StartNode("a", nil, bound)
		client := c.StartClient("caller", nil)
		const submitters, each = 4, 5
		var all sync.WaitGroup
		for i := range submitters {
			all.Go(func() {
				to := []behaviors.Client{a, client}[i%2]
				for n := range each {
					if err := submitMerging(t, adding, to, fmt.Sprintf("%d-%d", i, n)); err != nil {
						t.Errorf("submit %d-%d: %v", i, n, err)
					}
				}
			})
		}
		all.Wait()
		if err := a.Operations().RunNow(within(t, soon), "total"); err != nil {
			t.Fatal(err)
		}
		want(t, adding.Attach(a, "total"), submitters*each)
	})
}

// submitMerging submits, for later, until the merge is no longer overtaken by others.
func submitMerging(t *testing.T, b *behaviors.Behavior[sum, int], to behaviors.Client, request string) error {
	for {
		_, err := b.SubmitWith(within(t, soon), to, sum{1}, task.SubmitOptions{RequestKey: request, Delay: time.Hour})
		if err == nil || !isUnavailable(err) {
			return err
		}
	}
}
