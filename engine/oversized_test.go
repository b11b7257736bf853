package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// narrow is a store that takes entries of so many bytes.
type narrow struct {
	store.Store
	most int
}

func (s *narrow) under(c *cfg) {
	s.Store = c.Store
	c.Store = s
}

func (s *narrow) Append(ctx context.Context, o store.Ownership, after store.Head, entry []byte) (int64, error) {
	if len(entry) > s.most {
		return 0, fmt.Errorf("%w: %w", store.ErrRefused, store.ErrTooLarge)
	}
	return s.Store.Append(ctx, o, after, entry)
}

// An attempt whose outcome cannot be stored would be made again and again.
func TestAttempt_WhoseResultCannotBeStoredFails(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	s := &narrow{most: 64 << 10}
	j := newJob(task.Policy{})
	n := c.StartNode("a", s.under, j)
	f, err := n.Submit(within(t), j, nil, task.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j.next(t).succeed(`"` + strings.Repeat("x", 100<<10) + `"`)
	_, err = f.Wait(within(t))
	if e, is := errors.AsType[*task.Error](err); !is || e.Code != events.CodeRejected || !strings.Contains(e.Message, "limit") {
		t.Errorf("it ended with %v, want a failure that names the limit", err)
	}
	if got := j.count.Load(); got != 1 {
		t.Errorf("%d attempts", got)
	}
}

func TestShard_OfAStoreThatTakesLessRefusesWhatDoesNotFitAndServesOn(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	s := &narrow{most: 64 << 10}
	j := newJob(task.Policy{})
	n := c.StartNode("a", s.under, j)
	nodes, err := n.Operations().Nodes(within(t))
	if err != nil || len(nodes) != 1 {
		t.Fatalf("nodes %+v, %v", nodes, err)
	}
	submit := func(id string, size int) error {
		params := append(append([]byte{'"'}, bytes.Repeat([]byte("x"), size)...), '"')
		_, err := n.Submit(within(t), j, params, task.SubmitOptions{ID: events.TaskID(id)})
		return err
	}
	var all sync.WaitGroup
	for i := range 8 { // together they are too large
		all.Go(func() {
			if err := submit(fmt.Sprintf("small-%d", i), 20<<10); err != nil {
				t.Errorf("small-%d: %v", i, err)
			}
		})
	}
	all.Go(func() {
		err := submit("large", 100<<10)
		if _, is := errors.AsType[*store.InvalidError](err); !is || !strings.Contains(err.Error(), "limit") {
			t.Errorf("large: %v, want it refused by name", err)
		}
	})
	all.Wait()
	if err := submit("later", 10); err != nil {
		t.Error(err)
	}
	if after, err := n.Operations().Nodes(within(t)); err != nil || len(after) != 1 || after[0].ID != nodes[0].ID {
		t.Errorf("nodes %+v, %v; want the session of %+v", after, err, nodes)
	}
}
