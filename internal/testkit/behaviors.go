package testkit

import (
	"encoding/json"
	"testing"

	"taskledger/events"
	"taskledger/task"
)

// Attempt returns a first attempt under the default policy; nil stands for no parameters.
func Attempt(t *testing.T, params any) task.Attempt {
	t.Helper()
	policy, err := task.Policy{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	a := task.Attempt{Task: "some/task", Number: 1, Policy: policy}
	if params != nil {
		if a.Params, err = json.Marshal(params); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// WantFailure checks code and finality of an outcome, and returns its error.
func WantFailure(t *testing.T, o task.Outcome, code string, final bool) *events.Error {
	t.Helper()
	if o.Err == nil {
		t.Fatalf("succeeded with %s, want failure %q", o.Result, code)
	}
	if o.Err.Code != code {
		t.Errorf("code %q (%s), want %q", o.Err.Code, o.Err.Message, code)
	}
	if (o.Next.IsZero() && o.Wait == 0) != final {
		t.Errorf("next run at %s or in %s, want final = %t", o.Next, o.Wait, final)
	}
	return o.Err
}
