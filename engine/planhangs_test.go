package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// stuck is a behavior whose plan returns when the test says so.
type stuck struct {
	*job
	begun chan struct{}
	let   chan struct{}
}

func newStuck(t *testing.T) *stuck {
	s := &stuck{newJob(task.Policy{}), make(chan struct{}, 1000), make(chan struct{})}
	t.Cleanup(func() { close(s.let) })
	return s
}

func (s *stuck) Plan([]byte, time.Time) (task.Plan, error) {
	s.begun <- struct{}{}
	<-s.let
	return task.Plan{}, nil
}

// hang makes a plan hang on the node that runs the behavior.
func (s *stuck) hang(t *testing.T, from interface {
	SubmitRaw(ctx context.Context, behavior string, params []byte, o task.SubmitOptions) (*engine.Future, error)
}) {
	t.Helper()
	_, err := from.SubmitRaw(within(t), s.ID(), nil, task.SubmitOptions{})
	var overload *task.OverloadError
	if !errors.As(err, &overload) || !strings.Contains(overload.Cause, s.ID()) {
		t.Errorf("a submit whose plan hangs: %v, want it refused, and the behavior named", err)
	}
	select {
	case <-s.begun:
	default:
		t.Error("no plan has begun")
	}
}

func TestPlan_ThatHangsDoesNotKeepItsNodeFromStopping(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	s := newStuck(t)
	n := c.StartNode("n", nil, s)
	s.hang(t, c.StartClient("caller", nil))
	s.hang(t, n)
	n.Stop()
}

func TestPlan_ThatHangsDoesNotKeepItsNodeFromJoiningAgain(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	s := newStuck(t)
	n := c.StartNode("n", nil, s)
	client := c.StartClient("caller", nil)
	s.hang(t, client)
	endSession(t, c, n)
	s.hang(t, client)
}

func TestPlan_ThatHangsHoldsUpNoQuestion(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{Shards: 1})
	s := newStuck(t)
	n := c.StartNode("n", nil, s)
	client := c.StartClient("caller", func(cfg *engine.ClientConfig) { cfg.Bus = nil })
	s.hang(t, client)
	f := s.submit(t, n, "x")
	s.next(t).succeed("1")
	want(t, f, "1")
	want(t, client.Attach(f.ID()), "1")
	n.Stop()
}
