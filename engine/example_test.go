package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"taskledger/behaviors"
	"taskledger/engine/embedded"
	"taskledger/task"
)

var shout = behaviors.Define[string, string]("shout", nil)

func louder(_ context.Context, text string) (string, error) {
	if text == "" {
		return "", behaviors.Cancel(behaviors.Code("empty", errors.New("nothing to shout"), nil)) // no retry would help
	}
	return strings.ToUpper(text), nil
}

// A task is submitted under an id of the caller's choice, which makes it safe to submit again. Whoever knows the id
// gets the outcome, and the task as it is now.
func ExampleClient_Attach() {
	ctx := context.Background()
	node, err := embedded.Start(ctx, "", shout.Bind(louder))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	if _, err := node.SubmitRaw(ctx, "shout", []byte(`"land ahead"`), task.SubmitOptions{ID: "watch/1"}); err != nil {
		log.Fatal(err)
	}
	result, err := node.Attach("watch/1").Wait(ctx)
	fmt.Println(string(result), err)
	t, err := node.GetLinear(ctx, "watch/1")
	fmt.Println(t.Status, t.Attempt, err)
	// Output:
	// "LAND AHEAD" <nil>
	// SUCCESS 1 <nil>
}

// An error from Wait is a *task.Error when the task has failed. Every other error means that its outcome is not
// known here.
func ExampleFuture_Wait() {
	ctx := context.Background()
	node, err := embedded.Start(ctx, "", shout.Bind(louder))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	f, _ := node.SubmitRaw(ctx, "shout", []byte(`""`), task.SubmitOptions{}) // an error comes back from Wait as well
	_, err = f.Wait(ctx)
	if failed, ok := errors.AsType[*task.Error](err); ok {
		fmt.Println(failed.Code, failed.Message)
	}

	_, err = node.SubmitRaw(ctx, "whisper", []byte(`""`), task.SubmitOptions{})
	fmt.Println(errors.Is(err, task.ErrUnknownBehavior))
	// Output:
	// empty nothing to shout
	// true
}
