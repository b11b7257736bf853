package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/internal/testkit"
	"taskledger/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// run makes an attempt and decodes its result.
func run[R any](ctx context.Context, t *testing.T, b task.Behavior, params any) (R, task.Outcome) {
	t.Helper()
	o := b.Run(ctx, testkit.Attempt(t, params))
	var r R
	if o.Result != nil {
		if err := json.Unmarshal(o.Result, &r); err != nil {
			t.Fatalf("result %s: %v", o.Result, err)
		}
	}
	return r, o
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
