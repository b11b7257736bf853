package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// codeJob is a job with schedules in its code.
type codeJob struct {
	*job
	schedules map[string]schedule.Definition
}

func (j codeJob) Schedules() map[string]schedule.Definition { return j.schedules }

func inCode(schedules map[string]schedule.Definition) codeJob {
	return codeJob{newJob(task.Policy{}), schedules}
}

// What an operator does to a schedule in code stays when nodes start again, until the code says something new.
func TestSchedules_InCodeAreSetOnceForEachDefinition(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	first, second := daily(), daily()
	first.Behavior, second.Behavior = "", ""
	second.Keep = 7
	n := c.StartNode("a", nil, inCode(map[string]schedule.Definition{"a-first": first}))
	all := c.StartClient("ada", nil).Schedules()
	awaitSchedule(t, all, "a-first", 100)
	if err := all.Delete(within(t), "a-first", 0); err != nil {
		t.Fatal(err)
	}
	n.Stop()
	n = c.StartNode("b", nil, inCode(map[string]schedule.Definition{"a-first": first, "b-last": first}))
	awaitSchedule(t, all, "b-last", 100) // set after a-first
	if _, err := all.GetLinear(within(t), "a-first"); !errors.Is(err, schedule.ErrNotFound) {
		t.Errorf("a deleted schedule is set again by code that was known: %v", err)
	}
	n.Stop()
	c.StartNode("c", nil, inCode(map[string]schedule.Definition{"a-first": second, "b-last": first}))
	awaitSchedule(t, all, "a-first", 7)
}

// awaitSchedule waits until a schedule is there that keeps so many runs.
func awaitSchedule(t *testing.T, all engine.Schedules, name string, keep int) {
	t.Helper()
	testcluster.Await(t, "schedule "+name, func() bool {
		s, err := all.Get(within(t), name)
		return err == nil && s.Definition.Keep == keep && s.Definition.Behavior == "job"
	})
}

func TestNewNode_RefusesAWrongScheduleInCode(t *testing.T) {
	for name, d := range map[string]schedule.Definition{
		"cluster": daily(),
		"five":    {Cron: "0 3 * * 1"},
	} {
		cfg := engine.NodeConfig{Name: "a", Behaviors: []task.Behavior{inCode(map[string]schedule.Definition{name: d})}}
		if wrong := new(store.InvalidError); !errors.As(cfg.Validate(), &wrong) || wrong.Field != "behavior job" {
			t.Errorf("schedule %s: %v", name, cfg.Validate())
		}
	}
}

// strict is a behavior with schedules in code under another id, which takes parameters alone that are there.
type strict struct {
	codeJob
	id string
}

func (n strict) ID() string { return n.id }

func (n strict) Plan(params []byte, _ time.Time) (task.Plan, error) {
	if len(params) == 0 {
		return task.Plan{}, errors.New("parameters: none, want a number")
	}
	return task.Plan{}, nil
}

// What can never be set is refused when the program starts, and not tried again each minute.
func TestNewNode_RefusesSchedulesInCodeThatCanNeverBeSet(t *testing.T) {
	with := daily()
	with.Params = []byte("7")
	one := inCode(map[string]schedule.Definition{"nightly": with})
	for want, all := range map[string][]task.Behavior{
		"none, want a number":                 {strict{inCode(map[string]schedule.Definition{"nightly": daily()}), "a"}},
		"behavior a has one of the name, too": {strict{one, "a"}, strict{one, "b"}},
	} {
		cfg := engine.NodeConfig{Name: "a", Behaviors: all}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	cfg := engine.NodeConfig{Name: "a", Behaviors: []task.Behavior{strict{one, "a"}}}
	if err := cfg.Validate(); err != nil {
		t.Errorf("a sound one: %v", err)
	}
}
