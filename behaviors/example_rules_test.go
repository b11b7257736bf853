package behaviors_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"taskledger/behaviors"
	"taskledger/engine/embedded"
	"taskledger/events"
	"taskledger/task"
)

// Two submits return before the work is done. The second one, of the same id, joins the task of the first.
func ExampleBehavior_Submit() {
	ctx := context.Background()
	length := behaviors.Define("length", &behaviors.Rules[string, int]{
		TaskID: func(text string) events.TaskID { return behaviors.HashID("", "length", text) },
	})
	node, err := embedded.Start(ctx, "", length.Bind(func(_ context.Context, text string) (int, error) {
		return len(text), nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	first, err := length.Submit(ctx, node, "taskledger")
	if err != nil {
		log.Fatal(err) // after ErrUnknown the task may exist: submit it again
	}
	again, err := length.Submit(ctx, node, "taskledger")
	if err != nil {
		log.Fatal(err)
	}
	n, err := first.Wait(ctx)
	fmt.Println(n, err)
	fmt.Println(first.ID() == again.ID(), again.Joined())
	// Output:
	// 10 <nil>
	// true true
}

// An attempt that fails is followed by another one, after a back-off that grows; here at most three in all.
func ExampleDefine_retries() {
	ctx := context.Background()
	fetch := behaviors.Define("fetch", &behaviors.Rules[string, string]{Policy: task.Policy{
		MaxAttempts: 3,
		Backoff:     task.Backoff{Base: time.Millisecond, Max: time.Second},
	}})
	node, err := embedded.Start(ctx, "", fetch.Bind(func(ctx context.Context, url string) (string, error) {
		a, _ := behaviors.Attempt(ctx)
		if url == "https://example.com/slow" && a.Number == 3 {
			return "fetched by attempt 3", nil
		}
		return "", errors.New("no answer")
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	slow, _ := fetch.Submit(ctx, node, "https://example.com/slow") // an error comes back from Wait as well
	fmt.Println(slow.Wait(ctx))
	down, _ := fetch.Submit(ctx, node, "https://example.com/down")
	_, err = down.Wait(ctx)
	if failure, ok := errors.AsType[*task.Error](err); ok {
		fmt.Println("failed by attempt", failure.Attempt, "with", failure.Message)
	}
	// Output:
	// fetched by attempt 3 <nil>
	// failed by attempt 3 with no answer
}

// A task is repeated for as long as AfterSuccess names a time. Each run has an outcome of its own, and a future
// resolves with that of the run which it joined.
func ExampleRules_repetition() {
	ctx := context.Background()
	var runs atomic.Int64
	poll := behaviors.Define("poll", &behaviors.Rules[string, int64]{
		AfterSuccess: func(_ string, run int64, now time.Time) time.Time {
			if run == 3 {
				return time.Time{} // never again
			}
			return now.Add(time.Millisecond)
		},
	})
	node, err := embedded.Start(ctx, "", poll.Bind(func(context.Context, string) (int64, error) {
		return runs.Add(1), nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	f, _ := poll.Submit(ctx, node, "news") // an error comes back from Wait as well
	run, err := f.Wait(ctx)
	for err == nil && run < 3 {
		run, err = poll.Attach(node, f.ID()).Wait(ctx) // of the present run, or of the next one
	}
	fmt.Println(run, err)
	// Output: 3 <nil>
}

// Submits of one id that meet before the task starts are made into one run, with the parameters of both.
func ExampleRules_merge() {
	ctx := context.Background()
	reindex := behaviors.Define("reindex", &behaviors.Rules[[]string, []string]{
		TaskID: func([]string) events.TaskID { return "reindex" },
		Delay:  func([]string) time.Duration { return time.Hour },
		Merge:  func(stored, requested []string) []string { return append(stored, requested...) },
	})
	node, err := embedded.Start(ctx, "", reindex.Bind(func(_ context.Context, tables []string) ([]string, error) {
		return tables, nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	f, _ := reindex.Submit(ctx, node, []string{"users"}) // an error comes back from Wait as well
	if _, err := reindex.Submit(ctx, node, []string{"orders", "items"}); err != nil {
		log.Fatal(err)
	}
	if err := node.Operations().RunNow(ctx, "reindex"); err != nil { // instead of waiting for an hour
		log.Fatal(err)
	}
	fmt.Println(f.Wait(ctx))
	// Output: [users orders items] <nil>
}

// A handler tells how far it is. Whoever reads the task sees the latest report that was recorded, one a second at most.
func ExampleAttempt() {
	ctx := context.Background()
	reported, seen := make(chan struct{}), make(chan struct{})
	copying := behaviors.Define[int64, behaviors.None]("copy", nil)
	bound := copying.Bind(func(ctx context.Context, files int64) (none behaviors.None, err error) {
		a, _ := behaviors.Attempt(ctx)
		a.Progress(files/2, files, "half-way")
		close(reported)
		select {
		case <-seen:
			return none, nil
		case <-ctx.Done():
			return none, context.Cause(ctx)
		}
	})
	node, err := embedded.Start(ctx, "", bound)
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	f, _ := copying.Submit(ctx, node, 100) // an error comes back from Wait as well
	<-reported
	task, err := node.GetLinear(ctx, f.ID())
	for err == nil && task.Progress == nil {
		task, err = node.GetLinear(ctx, f.ID())
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(task.Status, task.Progress.Done, "of", task.Progress.Total, task.Progress.Note)
	close(seen)
	_, err = f.Wait(ctx)
	fmt.Println(err)
	// Output:
	// RUNNING 50 of 100 half-way
	// <nil>
}

// An attempt that finds nothing to do yet is not a failure: it asks to be made again later, and uses up no attempt of
// the policy.
func ExampleSnooze() {
	ctx := context.Background()
	imports := behaviors.Define("import", &behaviors.Rules[string, string]{Policy: task.Policy{MaxAttempts: 1}})
	node, err := embedded.Start(ctx, "", imports.Bind(func(ctx context.Context, file string) (string, error) {
		if a, _ := behaviors.Attempt(ctx); a.Number < 3 {
			return "", behaviors.Snooze(time.Millisecond) // the file is not complete
		}
		return file + " is imported", nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()

	f, _ := imports.Submit(ctx, node, "orders.csv") // an error comes back from Wait as well
	fmt.Println(f.Wait(ctx))
	// Output: orders.csv is imported <nil>
}
