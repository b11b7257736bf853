package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"

	"taskledger/api/operations"
	"taskledger/cmd/node/internal/output"
	"taskledger/store"
	"taskledger/task"
)

// running tells which nodes run which behaviors, and that one is paused.
type running struct{ operations.Client }

func (running) Nodes(context.Context) ([]store.NodeInfo, error) {
	return []store.NodeInfo{{Name: "a", Behaviors: []string{"sleep", "mine"}}, {Name: "b", Behaviors: []string{"noop", "sleep"}}}, nil
}

func (running) Settings(context.Context) (task.Settings, error) {
	return task.Settings{Paused: []task.Pause{{Behavior: "gone", Since: 1000}}}, nil
}

func TestBehaviors_TellWhatNodesRunAndHowItIsAskedFor(t *testing.T) {
	all, err := behaviorRows(t.Context(), running{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p := output.New(&out, true)
	for _, b := range all {
		if err := p.Row(b); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`{"behavior":"gone","nodes":[],"paused_since":"1970-01-01T00:00:01.000Z"}`,
		`{"behavior":"mine","nodes":["a"]}`,
		`{"behavior":"noop","nodes":["b"],"sample":{}}`,
		`{"behavior":"sleep","nodes":["a","b"],"sample":{"duration":"1s"}}`,
	}
	got := slices.Collect(func(yield func(string) bool) {
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) || !yield(string(bytes.TrimSpace(line))) {
				return
			}
		}
	})
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
