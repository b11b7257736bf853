package builtin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

func TestNoop_Succeeds(t *testing.T) {
	if o := builtin.Noop().Run(t.Context(), testkit.Attempt(t, nil)); o.Err != nil || o.Result != nil {
		t.Errorf("outcome %+v", o)
	}
}

func TestSleep_LastsItsDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		hour := builtin.SleepParams{Duration: builtin.Duration(time.Hour)}
		_, o := run[behaviors.None](t.Context(), t, builtin.Sleep(), hour)
		if took := time.Since(begin); took != time.Hour || o.Err != nil {
			t.Errorf("took %s, outcome %+v", took, o)
		}
	})
}

func TestSleep_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("cancelled by Ada")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		_, o := run[behaviors.None](ctx, t, builtin.Sleep(), builtin.SleepParams{Duration: builtin.Duration(time.Hour)})
		if e := testkit.WantFailure(t, o, events.CodeTimeout, false); e.Message != cause.Error() {
			t.Errorf("message %q, want the cause", e.Message)
		}
	})
}

// An operator knows the parameters of a built-in behavior as JSON alone.
func TestBuiltin_RefusalsShowTheJSONThatIsWanted(t *testing.T) {
	for want, b := range map[string]task.Behavior{
		`{"duration":"0s"}`: builtin.Sleep(),
		`{"url":""}`:        builtin.HTTP(builtin.HTTPOptions{}),
		`{"program":""}`:    builtin.Exec(builtin.ExecOptions{}),
		`{"path":""}`:       builtin.Checksum(builtin.ChecksumOptions{}),
	} {
		for _, params := range []string{"", "[1]"} {
			_, err := b.Plan([]byte(params), epoch)
			if err == nil || !strings.HasSuffix(err.Error(), ", such as "+want) {
				t.Errorf("%s %s: error %v, want one with %s", b.ID(), params, err, want)
			}
		}
	}
}

// A field with a typing error is found at the submit. What was accepted once is run.
func TestBuiltin_RefusesFieldsThatItDoesNotHave(t *testing.T) {
	for params, b := range map[string]task.Behavior{
		`{"duration":"1ms","x":1}`:  builtin.Sleep(),
		`{"url":"http://h/","x":1}`: builtin.HTTP(builtin.HTTPOptions{}),
		`{"program":"date","x":1}`:  builtin.Exec(builtin.ExecOptions{}),
		`{"path":"a","x":1}`:        builtin.Checksum(builtin.ChecksumOptions{}),
	} {
		_, err := b.Plan([]byte(params), epoch)
		invalid, ok := errors.AsType[*store.InvalidError](err)
		if !ok || invalid.Error() != `parameters: unknown field "x"` {
			t.Errorf("%s %s: error %v", b.ID(), params, err)
		}
	}
	accepted := map[string]any{"duration": "0s", "x": 1}
	if o := builtin.Sleep().Run(t.Context(), testkit.Attempt(t, accepted)); o.Err != nil {
		t.Errorf("a task that exists: %+v", o.Err)
	}
	if _, err := builtin.Noop().Plan([]byte(`{"x":1}`), epoch); err != nil {
		t.Errorf("noop: %v", err)
	}
}

func TestBuiltin_OffersOnlyWhatIsConfigured(t *testing.T) {
	ids := func(all []task.Behavior) (ids []string) {
		for _, b := range all {
			if err := b.(interface{ Validate() error }).Validate(); err != nil {
				t.Errorf("%s: %v", b.ID(), err)
			}
			ids = append(ids, b.ID())
		}
		return ids
	}
	got, want := ids(builtin.Behaviors(builtin.Options{})), []string{"noop", "sleep", "http"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	all := builtin.Options{
		Exec:     builtin.ExecOptions{Allow: []string{"true"}},
		Checksum: builtin.ChecksumOptions{Root: t.TempDir()},
	}
	got, want = ids(builtin.Behaviors(all)), []string{"noop", "sleep", "http", "exec", "checksum"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
