package behaviors_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

type table struct {
	Name string
	Age  int
}

func (t table) Validate() error {
	if t.Name == "forbidden" {
		return errors.New("name is forbidden")
	}
	return nil
}

// recorder is a Client that remembers what it was asked.
type recorder struct {
	calls    int
	requests []task.Request
	many     task.ManyOptions
	behavior task.Behavior
	params   []byte
	options  task.SubmitOptions
	err      error
}

func (r *recorder) Submit(
	_ context.Context, b task.Behavior, params []byte, o task.SubmitOptions,
) (*engine.Future, error) {
	r.calls++
	r.behavior, r.params, r.options = b, params, o
	return &engine.Future{}, r.err
}

func (r *recorder) SubmitMany(_ context.Context, requests []task.Request, o task.ManyOptions) []engine.Result {
	r.calls++
	r.requests, r.many = requests, o
	all := make([]engine.Result, len(requests))
	for i := range all {
		all[i] = engine.Result{Future: &engine.Future{}, Err: r.err}
	}
	return all
}

func (r *recorder) Attach(events.TaskID) *engine.Future { return &engine.Future{} }

func TestSubmit_HandsOverJSONAndABehaviorThatPlans(t *testing.T) {
	purge := behaviors.Define("purge", &behaviors.Rules[table, int]{
		TaskID: func(t table) events.TaskID { return events.TaskID(t.Name + "/purge") },
		Delay:  func(t table) time.Duration { return time.Minute },

		Priority: func(t table) int64 { return int64(t.Age) },
		RunNow:   true,
	})
	to := &recorder{}
	f, err := purge.SubmitWith(t.Context(), to, table{Name: "a", Age: 3}, task.SubmitOptions{RequestKey: "r"})
	if f == nil || err != nil {
		t.Fatalf("future %v, error %v", f, err)
	}
	if got, want := string(to.params), `{"Name":"a","Age":3}`; got != want {
		t.Errorf("parameters %s, want %s", got, want)
	}
	if to.options.RequestKey != "r" {
		t.Errorf("options %+v", to.options)
	}
	plan, err := to.behavior.Plan(to.params, epoch)
	if err != nil {
		t.Fatal(err)
	}
	want := task.Plan{
		ID:       "a/purge",
		Delay:    time.Minute,
		Priority: 3,
		RunNow:   true,
	}
	if plan != want {
		t.Errorf("plan %+v, want %+v", plan, want)
	}
}

func TestSubmit_NoneTravelsAsNoPayload(t *testing.T) {
	to := &recorder{}
	cleanup := behaviors.Define[behaviors.None, int]("cleanup", nil)
	if _, err := cleanup.Submit(t.Context(), to, behaviors.None{}); err != nil {
		t.Fatal(err)
	}
	if to.params != nil {
		t.Errorf("parameters %q, want none", to.params)
	}
}

func TestSubmit_WhatCannotTravelNeverReachesTheClient(t *testing.T) {
	to := &recorder{}
	text := behaviors.Define[string, int]("text", nil)
	tooLong := strings.Repeat("x", events.MaxPayloadBytes)
	f, err := text.SubmitWith(t.Context(), to, tooLong, task.SubmitOptions{ID: "mine"})
	limit, ok := errors.AsType[*task.LimitError](err)
	if !ok || limit.Limit != events.MaxPayloadBytes || limit.Got != events.MaxPayloadBytes+2 {
		t.Errorf("error %v, want the limit of parameters", err)
	}
	if f.ID() != "mine" || f.Joined() {
		t.Errorf("future of %q, want of mine", f.ID())
	}
	if _, waited := f.Wait(t.Context()); waited != err {
		t.Errorf("wait returned %v, want %v", waited, err)
	}
	f.Close()

	number := behaviors.Define[float64, int]("number", nil)
	_, err = number.Submit(t.Context(), to, math.NaN())
	if _, ok := errors.AsType[*store.InvalidError](err); !ok {
		t.Errorf("error %v, want an InvalidError", err)
	}
	if to.calls != 0 {
		t.Errorf("submitter was called %d times", to.calls)
	}
}

func TestSubmit_TheFutureIsNeverNil(t *testing.T) {
	b := behaviors.Define[int, int]("x", nil)
	f, err := b.Submit(t.Context(), &recorder{err: store.ErrUnavailable}, 1)
	if f == nil || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("future %v, error %v", f, err)
	}
	if f := b.Attach(&recorder{}, "some"); f == nil {
		t.Error("attached future is nil")
	}
}

func TestPlan_RefusesWhatIsInvalid(t *testing.T) {
	rules := func(edit func(*behaviors.Rules[table, int])) *behaviors.Rules[table, int] {
		r := &behaviors.Rules[table, int]{}
		edit(r)
		return r
	}
	delay := func(d time.Duration) *behaviors.Rules[table, int] {
		return rules(func(r *behaviors.Rules[table, int]) { r.Delay = func(table) time.Duration { return d } })
	}
	const good = `{"Name":"a"}`
	for _, c := range []struct {
		name, id, params, want string
		rules                  *behaviors.Rules[table, int]
	}{
		{"behavior id", "Bad!", good, `"Bad!"`, nil},
		{"behavior id, said once", "Bad Name", good, `behavior: id "Bad Name": byte 0`, nil},
		{"policy", "x", good, "timeout -1s", rules(func(r *behaviors.Rules[table, int]) {
			r.Policy.Timeout = -time.Second
		})},
		{"no parameters", "x", "", "parameters: none, want an object", nil},
		{"null", "x", " null\n", "parameters: null, want an object", nil},
		{"field of another type", "x", `{"Name":"a","Age":"old"}`,
			`parameters: field "Age" at byte 23: is string, want a whole number`, nil},
		{"other type", "x", `[1]`, "parameters: byte 1: is array, want an object", nil},
		{"syntax", "x", `{"Name":}`, "parameters: byte 9: invalid character", nil},
		{"cut off", "x", `{"Name":"a`, "parameters: byte 10: unexpected end", nil},
		{"two values", "x", good + good, "parameters: byte 13: invalid character", nil},
		{"rejected by Validate", "x", `{"Name":"forbidden"}`, "parameters: name is forbidden", nil},
		{"too large", "x", `{"Name":"` + strings.Repeat("a", events.MaxPayloadBytes) + `"}`,
			"parameters: 262155 exceeds", nil},
		{"task id", "x", `{"Name":"a b"}`, `id: task id "a b"`, rules(func(r *behaviors.Rules[table, int]) {
			r.TaskID = func(t table) events.TaskID { return events.TaskID(t.Name) }
		})},
		{"empty task id", "x", good, "id: task id: empty", rules(func(r *behaviors.Rules[table, int]) {
			r.TaskID = func(t table) events.TaskID { return "" }
		})},
		{"negative delay", "x", good, "delay: -1s, want 0 to", delay(-time.Second)},
		{"absurd delay", "x", good, "delay: ", delay(11 * 365 * 24 * time.Hour)},
		{"panic", "x", good, "planning behavior x: panic: no id", rules(func(r *behaviors.Rules[table, int]) {
			r.TaskID = func(t table) events.TaskID { panic("no id") }
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, err := behaviors.Define(c.id, c.rules).Bind(nil).Plan([]byte(c.params), epoch)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if plan != (task.Plan{}) {
				t.Errorf("plan %+v, want none", plan)
			}
		})
	}
}

// Some types have a value that null stands for.
func TestPlan_TakesNullWhereTheTypeHasIt(t *testing.T) {
	for name, b := range map[string]task.Behavior{
		"nothing": behaviors.Define[behaviors.None, int]("x", nil).Bind(nil),
		"pointer": behaviors.Define[*int, int]("x", nil).Bind(nil),
		"map":     behaviors.Define[map[string]int, int]("x", nil).Bind(nil),
		"any":     behaviors.Define[any, int]("x", nil).Bind(nil),
		"raw":     behaviors.Define[json.RawMessage, int]("x", nil).Bind(nil),
	} {
		if _, err := b.Plan([]byte("null"), epoch); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlan_DefaultsAreARandomIDAndNoDelay(t *testing.T) {
	plan, err := behaviors.Define[table, int]("x", nil).Bind(nil).Plan([]byte(`{"Unknown":1}`), epoch)
	if err != nil || plan != (task.Plan{}) {
		t.Errorf("plan %+v, error %v", plan, err)
	}
}

func TestPlan_RefusesUnknownFieldsWhereTheRulesSaySo(t *testing.T) {
	b := behaviors.Define("x", &behaviors.Rules[table, int]{DisallowUnknownFields: true}).Bind(
		func(context.Context, table) (int, error) { return 1, nil })
	_, err := b.Plan([]byte(`{"Name":"a","Agee":3}`), epoch)
	if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Field != "parameters" {
		t.Errorf("error %v, want one of the parameters", err)
	}
	_, err = b.Plan([]byte(`{"Name":"forbidden","Agee":3}`), epoch)
	if err == nil || !strings.Contains(err.Error(), `"Agee"`) {
		t.Errorf("of a field that is misspelt, which may be what the others lack: %v", err)
	}
	if _, err := b.Plan([]byte(`{"Name":"a","Age":3}`), epoch); err != nil {
		t.Error(err)
	}
	if o := b.Run(t.Context(), testkit.Attempt(t, map[string]any{"Name": "a", "Agee": 3})); o.Err != nil {
		t.Errorf("an attempt of a task that exists: %+v", o.Err)
	}
}

func TestValidate_ReportsABadDefinitionAndAMissingFunction(t *testing.T) {
	work := func(context.Context, int) (int, error) { return 0, nil }
	sum := func(a, b int) int { return a + b }
	badPolicy := task.Policy{MaxLost: -1}
	for _, c := range []struct {
		name string
		b    task.Behavior
		ok   bool
	}{
		{"good", behaviors.Define[int, int]("x", nil).Bind(work), true},
		{"id", behaviors.Define[int, int]("", nil).Bind(work), false},
		{"policy", behaviors.Define("x", &behaviors.Rules[int, int]{Policy: badPolicy}).Bind(work), false},
		{"unbound", behaviors.Define[int, int]("x", nil).Bind(nil), false},
		{"unbound merging", behaviors.Define("x", &behaviors.Rules[int, int]{Merge: sum}).Bind(nil), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.b.(interface{ Validate() error }).Validate()
			if _, invalid := errors.AsType[*store.InvalidError](err); invalid == c.ok || (err == nil) != c.ok {
				t.Errorf("error %v, want ok = %t", err, c.ok)
			}
		})
	}
}

func TestBehavior_DescribesItself(t *testing.T) {
	b := behaviors.Define("purge", &behaviors.Rules[table, []int]{Policy: task.Policy{MaxAttempts: 3}}).Bind(nil)
	if got, want := b.Types(), "behaviors_test.table -> []int ("; !strings.HasPrefix(got, want) {
		t.Errorf("types %q, want %q first", got, want)
	}
	if p := b.Policy(); b.ID() != "purge" || p.MaxAttempts != 3 || p.MaxLost != 10 {
		t.Errorf("id %q, policy %+v", b.ID(), p)
	}
}

func TestMerge_OnlyWithARuleAndOnlyOfWhatDecodes(t *testing.T) {
	if _, ok := behaviors.Define[int, int]("x", nil).Bind(nil).(task.Merger); ok {
		t.Error("a behavior without the rule is a Merger")
	}
	to := &recorder{}
	sum := behaviors.Define("sum", &behaviors.Rules[int, int]{Merge: func(a, b int) int {
		if b < 0 {
			panic("negative")
		}
		return a + b
	}})
	if _, err := sum.Submit(t.Context(), to, 1); err != nil {
		t.Fatal(err)
	}
	merger, ok := to.behavior.(task.Merger)
	if !ok {
		t.Fatal("the submitted behavior is no Merger")
	}
	if merged, err := merger.Merge([]byte("40"), []byte("2")); err != nil || string(merged) != "42" {
		t.Errorf("merged %s, error %v", merged, err)
	}
	for _, pair := range [][2]string{{"x", "1"}, {"1", "x"}, {"", "1"}, {"1", "-1"}} {
		if merged, err := merger.Merge([]byte(pair[0]), []byte(pair[1])); err == nil {
			t.Errorf("merge of %q made %s", pair, merged)
		}
	}
}
