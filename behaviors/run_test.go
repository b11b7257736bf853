package behaviors_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

var errWork = errors.New("disk is full")

// failing returns a behavior whose attempts return err, with a clock that stands at epoch and a random part of a half.
func failing(err error, rules *behaviors.Rules[int, int]) task.Behavior {
	b := behaviors.Define("work", rules)
	b.SetClock(func() time.Time { return epoch }, func() float64 { return 0.5 })
	return b.Bind(func(context.Context, int) (int, error) { return 0, err })
}

func TestRun_ASuccessIsItsResult(t *testing.T) {
	double := behaviors.Define[int, int]("double", nil).Bind(
		func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	o := double.Run(t.Context(), testkit.Attempt(t, 21))
	if string(o.Result) != "42" || o.Err != nil || !o.Next.IsZero() || o.Wait != 0 {
		t.Errorf("outcome %+v", o)
	}
	void := behaviors.Define[behaviors.None, behaviors.None]("void", nil).Bind(
		func(context.Context, behaviors.None) (behaviors.None, error) { return behaviors.None{}, nil })
	if o := void.Run(t.Context(), testkit.Attempt(t, nil)); o.Result != nil || o.Err != nil {
		t.Errorf("outcome %+v, want no result", o)
	}
	if o := void.Run(t.Context(), testkit.Attempt(t, struct{}{})); o.Err != nil {
		t.Errorf("an empty object is refused: %+v", o.Err)
	}
}

func TestRun_AfterSuccessDecidesTheNextRun(t *testing.T) {
	for _, c := range []struct {
		name       string
		next, want time.Time
		rejected   bool
	}{
		{"never", time.Time{}, time.Time{}, false},
		{"in an hour", epoch.Add(time.Hour), epoch.Add(time.Hour), false},
		{"in the past", time.Unix(0, 0), time.Unix(0, 0), false},
		{"absurdly late", epoch.AddDate(500, 0, 0), time.Time{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := failing(nil, &behaviors.Rules[int, int]{
				AfterSuccess: func(p, r int, now time.Time) time.Time { return c.next },
			}).Run(t.Context(), testkit.Attempt(t, 1))
			if !o.Next.Equal(c.want) {
				t.Errorf("next %s, want %s", o.Next, c.want)
			}
			if c.rejected {
				testkit.WantFailure(t, o, events.CodeRejected, true)
			} else if o.Err != nil {
				t.Errorf("failed: %+v", o.Err)
			}
		})
	}
}

// A run of a schedule does not repeat, so that nobody asks when it shall.
func TestRun_OfAScheduleDoesNotAskAfterSuccess(t *testing.T) {
	b := failing(nil, &behaviors.Rules[int, int]{
		AfterSuccess: func(int, int, time.Time) time.Time { panic("asked") },
	})
	for _, id := range []events.TaskID{"daily/tick:1", "daily/run:x", "daily/fill:1"} {
		a := testkit.Attempt(t, 1)
		a.Task = id
		if o := b.Run(t.Context(), a); o.Err != nil || !o.Next.IsZero() {
			t.Errorf("%s: %+v", id, o)
		}
	}
}

func TestRun_AnErrorSaysWhatComesNext(t *testing.T) {
	half := 500 * time.Millisecond // half of the first back-off of 1s
	properties := map[string]string{"table": "a"}
	wrap := func(err error) error { return fmt.Errorf("purge: %w", err) }
	final := func(code, message string, properties map[string]string) task.Outcome {
		return task.Outcome{Err: &events.Error{Code: code, Message: message, Properties: properties}}
	}
	retried := func(wait time.Duration, code, message string, properties map[string]string) task.Outcome {
		o := final(code, message, properties)
		o.Wait, o.Err.Retryable = wait, true
		return o
	}
	for _, c := range []struct {
		name string
		err  error
		want task.Outcome
	}{
		{"plain", errWork, retried(half, "failed", "disk is full", nil)},
		{"cancel", behaviors.Cancel(errWork), final("failed", "disk is full", nil)},
		{"cancel of nothing", behaviors.Cancel(nil), final("failed", "no reason given", nil)},
		{"snooze", behaviors.Snooze(time.Minute), task.Outcome{Snooze: time.Minute}},
		{"snooze wrapped", wrap(behaviors.Snooze(time.Minute)), task.Outcome{Snooze: time.Minute}},
		{"snooze for no time", behaviors.Snooze(0), task.Outcome{Snooze: time.Millisecond}},
		{"release", behaviors.Release(0), task.Outcome{Release: true}},
		{"release for a while, wrapped", wrap(behaviors.Release(time.Minute)),
			task.Outcome{Release: true, Wait: time.Minute}},
		{"cancel of release", behaviors.Cancel(behaviors.Release(time.Minute)),
			final("failed", "released for 1m0s", nil)},
		{"retry after", behaviors.RetryAfter(time.Hour, errWork), retried(time.Hour, "failed", "disk is full", nil)},
		{"retry at once", behaviors.RetryAfter(0, errWork), retried(time.Millisecond, "failed", "disk is full", nil)},
		{"code", wrap(behaviors.Code("full", errWork, properties)),
			retried(half, "full", "purge: disk is full", properties)},
		{"code without error", behaviors.Code("full", nil, nil), retried(half, "full", "no reason given", nil)},
		{"outermost code", behaviors.Code("outer", behaviors.Code("inner", errWork, properties), nil),
			retried(half, "outer", "disk is full", nil)},
		{"code in cancel", behaviors.Cancel(wrap(behaviors.Code("full", errWork, properties))),
			final("full", "purge: disk is full", properties)},
		{"cancel in code in retry",
			behaviors.RetryAfter(time.Hour, behaviors.Code("full", behaviors.Cancel(errWork), nil)),
			final("full", "disk is full", nil)},
		{"cancel of snooze", behaviors.Cancel(behaviors.Snooze(time.Minute)), final("failed", "snooze for 1m0s", nil)},
		{"retry in joined errors", errors.Join(errors.New("other"), behaviors.RetryAfter(time.Hour, errWork)),
			retried(time.Hour, "failed", "other\ndisk is full", nil)},
		{"broken text", errors.New("\xff"), retried(half, "failed", "?", nil)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := failing(c.err, nil).Run(t.Context(), testkit.Attempt(t, 1))
			g, w := fmt.Sprintf("%+v %+v", got, got.Err), fmt.Sprintf("%+v %+v", c.want, c.want.Err)
			if dropPointers(g) != dropPointers(w) {
				t.Errorf("got  %s\nwant %s", g, w)
			}
			if !errors.Is(c.err, errWork) && strings.Contains(fmt.Sprint(c.err), errWork.Error()) {
				t.Error("the cause cannot be found in the error")
			}
		})
	}
}

// dropPointers removes the addresses that %+v prints for an Outcome's Err.
func dropPointers(s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		if at := strings.Index(w, ":0x"); at >= 0 {
			words[i] = w[:at]
		}
	}
	return strings.Join(words, " ")
}

func TestRun_AbsurdWaitsAreOrdinaryFailures(t *testing.T) {
	for name, err := range map[string]error{
		"snooze back":  behaviors.Snooze(-1),
		"snooze long":  behaviors.Snooze(math.MaxInt64),
		"release back": behaviors.Release(-1),
		"release long": behaviors.Release(math.MaxInt64),
		"retry before": behaviors.RetryAfter(-1, errWork),
		"retry long":   behaviors.RetryAfter(math.MaxInt64, errWork),
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := errors.AsType[*store.InvalidError](err); !ok {
				t.Errorf("error %v is no InvalidError", err)
			}
			testkit.WantFailure(t, failing(err, nil).Run(t.Context(), testkit.Attempt(t, 1)), events.CodeFailed, false)
		})
	}
}

func TestRun_BackoffGrowsUntilTheAttemptsAreUsedUp(t *testing.T) {
	a := testkit.Attempt(t, 1)
	a.Policy.MaxAttempts = 4
	for failures, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
		a.Failures = failures
		if o := failing(errWork, nil).Run(t.Context(), a); o.Wait != want {
			t.Errorf("after failure %d next in %s, want %s", failures+1, o.Wait, want)
		}
	}
	a.Failures = 3
	for _, err := range []error{errWork, behaviors.RetryAfter(time.Hour, errWork)} {
		if e := testkit.WantFailure(t, failing(err, nil).Run(t.Context(), a), events.CodeFailed, true); !e.Retryable {
			t.Error("an error that was retried is said not to be retryable")
		}
	}
}

func TestRun_AfterFailureDecides(t *testing.T) {
	var seen []behaviors.Failure
	rule := func(next func(behaviors.Failure) time.Time) *behaviors.Rules[int, int] {
		return &behaviors.Rules[int, int]{AfterFailure: func(p int, f behaviors.Failure, now time.Time) time.Time {
			seen = append(seen, f)
			return next(f)
		}}
	}
	backoff := func(f behaviors.Failure) time.Time { return f.Backoff }
	never := func(behaviors.Failure) time.Time { return time.Time{} }
	tomorrow := func(behaviors.Failure) time.Time { return epoch.AddDate(0, 0, 1) }
	tooLate := func(behaviors.Failure) time.Time { return epoch.AddDate(11, 0, 0) }
	last := testkit.Attempt(t, 1)
	last.Number, last.Failures, last.Lost = 30, last.Policy.MaxAttempts-1, 2

	for _, c := range []struct {
		name  string
		rule  func(behaviors.Failure) time.Time
		err   error
		a     task.Attempt
		want  time.Time
		code  string
		asked bool
	}{
		{"back-off", backoff, errWork, testkit.Attempt(t, 1), epoch.Add(500 * time.Millisecond), "failed", true},
		{"retry after", backoff, behaviors.RetryAfter(time.Hour, errWork), testkit.Attempt(t, 1), epoch.Add(time.Hour),
			"failed", true},
		{"never", never, behaviors.RetryAfter(time.Hour, errWork), testkit.Attempt(t, 1), time.Time{}, "failed", true},
		{"beyond the attempts", tomorrow, errWork, last, epoch.AddDate(0, 0, 1), "failed", true},
		{"attempts used up", backoff, errWork, last, time.Time{}, "failed", true},
		{"absurd", tooLate, errWork, testkit.Attempt(t, 1), time.Time{}, "rejected", true},
		{"cancel", tomorrow, behaviors.Cancel(errWork), testkit.Attempt(t, 1), time.Time{}, "failed", false},
		{"snooze", tomorrow, behaviors.Snooze(time.Second), testkit.Attempt(t, 1), time.Time{}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen = nil
			o := failing(c.err, rule(c.rule)).Run(t.Context(), c.a)
			if !o.Next.Equal(c.want) {
				t.Errorf("next %s, want %s", o.Next, c.want)
			}
			if c.code != "" {
				testkit.WantFailure(t, o, c.code, c.want.IsZero())
			}
			if (len(seen) == 1) != c.asked {
				t.Fatalf("rule was asked %d times", len(seen))
			}
			if c.asked {
				f := seen[0]
				if f.Attempt != c.a.Number || f.Lost != c.a.Lost ||
					f.Err.Task != c.a.Task || f.Err.Message != errWork.Error() {
					t.Errorf("rule saw %+v, %v", f, f.Err)
				}
			}
		})
	}
}

// What was made of now is a wait, though the clock of the node is wrong; what was not is a time of day.
func TestRun_WaitsDoNotDependOnTheClock(t *testing.T) {
	for _, skew := range []time.Duration{-30 * time.Second, 0, time.Hour} {
		run := func(err error, next func(now time.Time) time.Time) task.Outcome {
			rules := &behaviors.Rules[int, int]{
				AfterSuccess: func(_, _ int, now time.Time) time.Time { return next(now) },
			}
			if next != nil {
				rules.AfterFailure = func(_ int, f behaviors.Failure, now time.Time) time.Time { return next(now) }
			}
			b := behaviors.Define("work", rules)
			b.SetClock(func() time.Time { return time.Now().Add(skew) }, func() float64 { return 0.5 })
			return b.Bind(func(context.Context, int) (int, error) { return 0, err }).Run(t.Context(), testkit.Attempt(t, 1))
		}
		after := func(d time.Duration) func(time.Time) time.Time {
			return func(now time.Time) time.Time { return now.Add(d) }
		}
		atDay := func(time.Time) time.Time { return epoch }
		later := behaviors.RetryAfter(time.Minute, errWork)
		const year = 365 * 24 * time.Hour
		ofNow := func(now time.Time) time.Time { return now.Add(time.Hour).Truncate(year) }
		for name, c := range map[string]struct {
			got  task.Outcome
			wait time.Duration
			next time.Time
		}{
			"back-off":                   {run(errWork, nil), 500 * time.Millisecond, time.Time{}},
			"retry after":                {run(later, nil), time.Minute, time.Time{}},
			"rule after failure":         {run(errWork, after(time.Minute)), time.Minute, time.Time{}},
			"rule after success":         {run(nil, after(time.Minute)), time.Minute, time.Time{}},
			"rule in the past":           {run(nil, after(-time.Minute)), time.Millisecond, time.Time{}},
			"time of day after failure":  {run(errWork, atDay), 0, epoch},
			"time of day after success":  {run(nil, atDay), 0, epoch},
			"time of day, though of now": {run(nil, ofNow), 0, ofNow(time.Now().Add(skew))},
		} {
			if c.got.Wait != c.wait || !c.got.Next.Equal(c.next) {
				t.Errorf("%s, clock %s off: in %s, at %s; want in %s, at %s",
					name, skew, c.got.Wait, c.got.Next, c.wait, c.next)
			}
		}
	}
}

func TestRun_AfterFailureSeesATimeout(t *testing.T) {
	var code string
	seen := func(_ int, f behaviors.Failure, _ time.Time) time.Time {
		code = f.Err.Code
		return f.Backoff
	}
	wait := func(ctx context.Context, _ int) (int, error) {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
	b := behaviors.Define("work", &behaviors.Rules[int, int]{AfterFailure: seen}).Bind(wait)
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errWork)
	defer cancel()
	testkit.WantFailure(t, b.Run(ctx, testkit.Attempt(t, 1)), events.CodeTimeout, false)
	if code != events.CodeTimeout {
		t.Errorf("the rule saw code %q", code)
	}
}

func TestRun_WhatNoRepetitionCanMendIsRejected(t *testing.T) {
	runs := 0
	b := behaviors.Define("work", &behaviors.Rules[table, float64]{
		AfterFailure: func(_ table, f behaviors.Failure, _ time.Time) time.Time {
			if f.Attempt == 7 {
				return epoch.AddDate(1000, 0, 0)
			}
			return f.Backoff
		},
	}).Bind(func(context.Context, table) (float64, error) { runs++; return math.NaN(), nil })
	a := testkit.Attempt(t, nil)
	a.Params = []byte(`{"Age":"x"}`)
	e := testkit.WantFailure(t, b.Run(t.Context(), a), events.CodeRejected, true)
	if !strings.Contains(e.Message, `"Age"`) || e.Retryable || runs > 0 {
		t.Errorf("error %+v after %d runs", e, runs)
	}
	e = testkit.WantFailure(t, b.Run(t.Context(), testkit.Attempt(t, table{})), events.CodeRejected, true)
	if !strings.Contains(e.Message, "result: ") {
		t.Errorf("error %+v", e)
	}

	long := behaviors.Define[int, string]("long", nil).Bind(func(context.Context, int) (string, error) {
		return strings.Repeat("x", events.MaxPayloadBytes), nil
	})
	e = testkit.WantFailure(t, long.Run(t.Context(), testkit.Attempt(t, 1)), events.CodeRejected, true)
	if !strings.Contains(e.Message, "limit of 262144") {
		t.Errorf("error %+v does not name the limit", e)
	}

	unbound := behaviors.Define[int, int]("unbound", nil).Bind(nil)
	testkit.WantFailure(t, unbound.Run(t.Context(), testkit.Attempt(t, 1)), events.CodeRejected, true)
}

func TestRun_ARepetitionCanOutliveAResultThatCannotBeRecorded(t *testing.T) {
	b := behaviors.Define("tick", &behaviors.Rules[int, float64]{
		AfterFailure: func(int, behaviors.Failure, time.Time) time.Time { return epoch.AddDate(1, 0, 0) },
	})
	b.SetClock(func() time.Time { return epoch }, nil)
	infinite := b.Bind(func(context.Context, int) (float64, error) { return math.Inf(1), nil })
	o := infinite.Run(t.Context(), testkit.Attempt(t, 1))
	testkit.WantFailure(t, o, events.CodeRejected, false)
}

func TestAttempt_HandlersSeeTheirRun(t *testing.T) {
	var done int64
	b := behaviors.Define[int, int]("work", nil).Bind(func(ctx context.Context, _ int) (int, error) {
		a, ok := behaviors.Attempt(ctx)
		if !ok {
			return 0, errors.New("no attempt")
		}
		a.Progress(3, 4, "")
		return a.Number, nil
	})
	a := testkit.Attempt(t, 1)
	a.Number, a.Progress = 5, func(n, _ int64, _ string) { done = n }
	if o := b.Run(t.Context(), a); string(o.Result) != "5" || done != 3 {
		t.Errorf("outcome %+v, progress %d", o, done)
	}
}

func TestAttempt_IsUsableWithoutARun(t *testing.T) {
	a, ok := behaviors.Attempt(t.Context())
	if ok {
		t.Error("a context without attempt has one")
	}
	a.Progress(1, 2, "nothing happens")
	a.Log.Info("nothing happens")
}
