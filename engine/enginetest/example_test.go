package enginetest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/engine/enginetest"
	"taskledger/task"
)

var greet = behaviors.Define[string, string]("greet", nil)

func hello(_ context.Context, name string) (string, error) { return "hello " + name, nil }

// What a test of a behavior looks like.
func Example() {
	_ = func(t *testing.T) {
		n := enginetest.Memory(t, greet.Bind(hello))
		f, err := greet.Submit(t.Context(), n.Client, "ada")
		if err != nil {
			t.Fatal(err)
		}
		if done := n.Await(t, f.ID()); string(done.Result) != `"hello ada"` {
			t.Errorf("it is %s", done.Result)
		}
		n.RequireSubmitted(t, "greet")
		n.Golden(t, f.ID(), "testdata/greet.golden") // which ENGINETEST_UPDATE=1 go test writes
	}
}

// An hour of virtual time passes in a moment.
func ExampleNode_Advance() {
	_ = func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := enginetest.Memory(t, greet.Bind(hello))
			later := task.SubmitOptions{ID: "greet/later", Delay: time.Hour}
			if _, err := greet.SubmitWith(t.Context(), n.Client, "ada", later); err != nil {
				t.Fatal(err)
			}
			n.Advance(t, time.Hour)
			n.Await(t, "greet/later")
		})
	}
}
