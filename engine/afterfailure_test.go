package engine_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/events"
	"taskledger/task"
)

// The rule retries what the policy would not, and sees the code that is recorded.
func TestAfterFailure_IsAskedForPanicsGoexitAndTimeOuts(t *testing.T) {
	release := make(chan struct{})
	for code, fails := range map[string]func(context.Context) error{
		events.CodePanic: func(context.Context) error { panic("boom") },
		"goexit":         func(context.Context) error { runtime.Goexit(); return nil },
		"stuck":          func(context.Context) error { <-release; return nil },
		"late":           func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{})
				defer func() { close(release) }()
				asked := make(chan string, 10)
				b := behaviors.Define("b", &behaviors.Rules[int, string]{
					Policy: task.Policy{MaxAttempts: 1, Timeout: time.Second},
					AfterFailure: func(_ int, f behaviors.Failure, now time.Time) time.Time {
						asked <- f.Err.Code
						return now.Add(time.Second)
					},
				})
				c := newModelled(t, true)
				n := c.start("a", 0, nil, b.Bind(func(ctx context.Context, _ int) (string, error) {
					if a, _ := behaviors.Attempt(ctx); a.Number > 1 {
						return "done", nil
					}
					return "", fails(ctx)
				}))
				n.ready(t)
				f, err := b.Submit(within(t), n, 1)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := f.Wait(within(t)); err != nil || got != "done" {
					t.Errorf("%q, %v", got, err)
				}
				want := events.CodeTimeout
				if code == events.CodePanic || code == "goexit" {
					want = events.CodePanic
				}
				if len(asked) != 1 || <-asked != want {
					t.Errorf("asked %d times more, want once, for %s", len(asked), want)
				}
			})
		})
	}
}

// A rule that panics, or ends the goroutine, when it is asked leaves the policy to decide.
func TestAfterFailure_ThatPanicsItselfLeavesThePolicyToDecide(t *testing.T) {
	for name, rule := range map[string]func(){"panic": func() { panic("again") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := behaviors.Define("b", &behaviors.Rules[int, string]{
					Policy: task.Policy{MaxAttempts: 2, Backoff: task.Backoff{Base: time.Second, Max: time.Second}},
					AfterFailure: func(int, behaviors.Failure, time.Time) time.Time {
						rule()
						return time.Time{}
					},
				})
				c := newModelled(t, true)
				n := c.start("a", 0, nil, b.Bind(func(context.Context, int) (string, error) { panic("boom") }))
				n.ready(t)
				f, err := b.Submit(within(t), n, 1)
				if err != nil {
					t.Fatal(err)
				}
				_, err = f.Wait(within(t))
				if failure, ok := errors.AsType[*task.Error](err); !ok || failure.Code != events.CodePanic || failure.Attempt != 2 {
					t.Errorf("%v", err)
				}
			})
		})
	}
}

// A rule that never answers holds so many goroutines at most, however many attempts fail: further failures are left to
// the policy at once, until it answers again.
func TestAfterFailure_IsAskedOfSixteenFailuresAtOnceAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, tasks = 16, 40
		answer := make(chan struct{})
		var asked atomic.Int64
		b := behaviors.Define("b", &behaviors.Rules[int, string]{
			Policy: task.Policy{MaxAttempts: 1},
			AfterFailure: func(int, behaviors.Failure, time.Time) time.Time {
				asked.Add(1)
				<-answer
				return time.Time{}
			},
		})
		c := newModelled(t, true)
		panics := b.Bind(func(context.Context, int) (string, error) { panic("boom") })
		n := c.start("a", 0, func(c *cfg) { c.Slots = tasks }, panics)
		n.ready(t)
		fails := func(times int) {
			t.Helper()
			var all []*behaviors.Future[string]
			for range times {
				f, err := b.Submit(within(t), n, 1)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, f)
			}
			for _, f := range all {
				_, err := f.Wait(within(t))
				if failure, ok := errors.AsType[*task.Error](err); !ok || failure.Code != events.CodePanic {
					t.Errorf("%v, want a panic", err)
				}
			}
		}
		fails(tasks)
		fails(1)
		if n := asked.Load(); n != most {
			t.Errorf("%d questions are unanswered, want %d", n, most)
		}
		close(answer)
		synctest.Wait()
		fails(1)
		if n := asked.Load(); n != most+1 {
			t.Errorf("%d questions in all, want %d: a behavior that answers is asked again", n, most+1)
		}
	})
}

// In a rolling release old nodes meet parameters of the new one. Once all agree the failure is final at once.
func TestRollingRelease_ParametersOfTheOtherReleaseAreTriedAgain(t *testing.T) {
	type bill struct{ Amount int }
	policy := task.Policy{MaxAttempts: 3, Backoff: task.Backoff{Base: time.Second, Max: time.Second}}
	before := behaviors.Define("bill", &behaviors.Rules[bill, string]{Policy: policy})
	old := before.Bind(func(context.Context, bill) (string, error) { return "", nil })
	{
		type bill struct{ Amount string }
		after := behaviors.Define("bill", &behaviors.Rules[bill, string]{Policy: policy})
		newer := after.Bind(func(context.Context, bill) (string, error) { return "", nil })
		for name, row := range map[string]struct {
			second []task.Behavior // of another node, which runs nothing
			want   int             // the attempt that is rejected for good
		}{
			"another release":                          {[]task.Behavior{newer}, 3},
			"the same release":                         {[]task.Behavior{old}, 1},
			"the same release, which runs more beside": {[]task.Behavior{old, builtin.Noop()}, 1},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newModelled(t, true)
					c.start("old", 0, nil, old).ready(t)
					second := c.start("second", 0, func(config *cfg) { config.Owner, config.Slots = new(bool), -1 }, row.second...)
					time.Sleep(5 * time.Second)
					f, err := after.Submit(within(t), second, bill{Amount: "7 EUR"})
					if err != nil {
						t.Fatal(err)
					}
					_, err = f.Wait(within(t))
					if failure, ok := errors.AsType[*task.Error](err); !ok || failure.Code != events.CodeRejected || failure.Attempt != row.want {
						t.Errorf("%v, want it rejected by attempt %d", err, row.want)
					}
				})
			})
		}
	}
}
