package engine_test

import (
	"fmt"
	"strconv"
	"testing"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// The merge was computed on parameters that another submit has changed since: it must be computed again, and every
// submit must be in the sum once.
func TestMerge_ConcurrentSubmitsAreAllInTheSum(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	j := &adder{newJob(task.Policy{})}
	c.StartNode("a", noSlots)
	everything := func(string) fate { return twice }
	w := &wire{sent: everything, heard: everything}
	const clients, each = 3, 4
	var done = make(chan int, clients)
	for i := range clients {
		client := c.StartClient(fmt.Sprint("caller", i), func(cc *engine.ClientConfig) { cc.Bus = &wiredBus{cc.Bus, w} })
		go func() {
			accepted := 0
			for accepted < each {
				_, err := client.Submit(within(t), j, []byte("1"), task.SubmitOptions{ID: "x"})
				if err != nil && t.Context().Err() != nil {
					break
				}
				if err == nil { // after five changes in a row the submit is refused, and nothing was accepted
					accepted++
				}
			}
			done <- accepted
		}()
	}
	total := 0
	for range clients {
		total += <-done
	}
	c.StartNode("b", noShards, j)
	r := j.next(t)
	if string(r.Params) != strconv.Itoa(total) {
		t.Errorf("parameters are %s after %d submits of 1", r.Params, total)
	}
	r.succeed("1")
}

// adder is a job whose parameters add up.
type adder struct{ *job }

func (a *adder) Merge(stored, requested []byte) ([]byte, error) {
	x, err := strconv.Atoi(string(stored))
	if err != nil {
		return nil, err
	}
	y, err := strconv.Atoi(string(requested))
	return []byte(strconv.Itoa(x + y)), err
}
