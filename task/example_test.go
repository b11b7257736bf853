package task_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"taskledger/engine/embedded"
	"taskledger/events"
	"taskledger/task"
)

// count is a behavior without package behaviors: parameters are any JSON array, the result is its length.
type count struct{}

func (count) ID() string          { return "count" }
func (count) Types() string       { return "array -> number" }
func (count) Policy() task.Policy { return task.Policy{MaxAttempts: 3} }

// Plan refuses parameters that no attempt could use. The zero plan makes a task with a random id, due at once.
func (count) Plan(params []byte, _ time.Time) (task.Plan, error) {
	return task.Plan{}, json.Unmarshal(params, new([]json.RawMessage))
}

func (count) Run(_ context.Context, a task.Attempt) task.Outcome {
	var elements []json.RawMessage
	if err := json.Unmarshal(a.Params, &elements); err != nil {
		return task.Outcome{Err: &events.Error{Code: events.CodeRejected, Message: err.Error()}} // final: there is no Wait or Next
	}
	return task.Outcome{Result: fmt.Append(nil, len(elements))}
}

// A node runs a behavior of its own form like those that package behaviors makes.
func ExampleBehavior() {
	ctx := context.Background()
	node, err := embedded.Start(ctx, "", count{})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	f, err := node.SubmitRaw(ctx, "count", []byte(`["a","b","c"]`), task.SubmitOptions{})
	if err != nil {
		log.Fatal(err)
	}
	result, err := f.Wait(ctx)
	fmt.Println(string(result), err)
	// Output: 3 <nil>
}
