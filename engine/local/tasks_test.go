package local_test

import (
	"context"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/local"
	"taskledger/filestore/filejournal"
	"taskledger/task"
)

// double is a behavior that counts.
var double = behaviors.Define("double", &behaviors.Rules[int, int]{})

func doubles() []task.Behavior {
	return []task.Behavior{double.Bind(func(_ context.Context, n int) (int, error) { return 2 * n, nil })}
}

func TestNode_RunsTasksAndKeepsTheirHistory(t *testing.T) {
	dir := t.TempDir()
	for name, cfg := range map[string]local.Config{
		"Memory":        {},
		"Strict":        {Dir: dir},
		"Opportunistic": {Dir: t.TempDir(), Files: filejournal.Options{Durability: filejournal.Opportunistic}},
	} {
		cfg.Node.Behaviors = doubles()
		n := start(t, cfg)
		for i := range 50 {
			f, err := double.Submit(t.Context(), n, i)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := f.Wait(t.Context()); got != 2*i || err != nil {
				t.Errorf("%s: twice %d is %d, %v", name, i, got, err)
			}
		}
		if losses := verified(t, n); len(losses) > 0 {
			t.Errorf("%s: verify tells of the losses %q", name, losses)
		}
		closed(t, n)
	}
	n := start(t, local.Config{Dir: dir, Node: engine.NodeConfig{Behaviors: doubles()}})
	if losses := verified(t, n); len(losses) > 0 {
		t.Errorf("after a reopening verify tells of the losses %q", losses)
	}
}

// A task that was scheduled before the end of a process is run by the next one.
func TestNode_RunsWhatAnEarlierProcessWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	later := behaviors.Define("later", &behaviors.Rules[int, int]{Delay: func(int) time.Duration { return time.Hour }})
	bind := func(ran chan int) []task.Behavior {
		return []task.Behavior{later.Bind(func(_ context.Context, n int) (int, error) {
			ran <- n
			return n, nil
		})}
	}
	n := start(t, local.Config{Dir: dir, Node: engine.NodeConfig{Behaviors: bind(make(chan int, 1))}})
	if _, err := later.Submit(t.Context(), n, 7); err != nil {
		t.Fatal(err)
	}
	closed(t, n)
	ran := make(chan int, 1)
	start(t, local.Config{Dir: dir, Node: engine.NodeConfig{
		Behaviors: bind(ran),
		Now:       func() time.Time { return time.Now().Add(2 * time.Hour) },
	}})
	if got := <-ran; got != 7 {
		t.Errorf("it ran with %d", got)
	}
}
