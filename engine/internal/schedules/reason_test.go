package schedules_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/schedules"
	"taskledger/events"
	fold "taskledger/projection/schedules"
	"taskledger/task"
)

// A reason stands in the event of the definition that it made; without one the event is as it ever was, and a
// definition that changes nothing has none.
func TestSet_ItsReasonStandsInItsEvent(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	s := fold.Of(o.state).Schedule("hourly")
	sets := func(reason string, change func(*events.SchedulePlan)) events.Body {
		t.Helper()
		plan, told := s.Plan, len(o.told)
		change(&plan)
		next := o.now + 1_800_000
		if plan.Cron == "" {
			next = 0
		}
		a := o.turn(&schedules.Set{
			Name:   "hourly",
			Plan:   schedules.EncodePlan(&plan),
			Next:   int64(next),
			Reason: reason,
		})
		if a[0].Code != command.AnswerOK || len(o.told) > told+1 {
			t.Fatalf("%+v, %d events", a[0], len(o.told)-told)
		}
		s = fold.Of(o.state).Schedule("hourly")
		if len(o.told) == told {
			return nil
		}
		return o.told[told].Body
	}
	defined := func(what string, body events.Body, reason string) {
		t.Helper()
		if b, is := body.(*events.ScheduleDefined); !is || b.Reason != reason {
			t.Errorf("%s: recorded as %T %+v, want the reason %q", what, body, body, reason)
		}
	}
	keeps := func(n uint32) func(*events.SchedulePlan) { return func(p *events.SchedulePlan) { p.Keep = n } }
	defined("with a reason", sets("moving house", keeps(11)), "moving house")
	version := s.Set
	if body := sets("another", keeps(11)); body != nil || s.Set != version {
		t.Errorf("nothing changes, and recorded is %T, version %d after %d", body, s.Set, version)
	}
	if body, is := sets("", keeps(12)).(*events.ScheduleSet); !is {
		t.Errorf("without a reason recorded as %T", body)
	}
	defined("a later plan with a reason", sets("enough", withoutCron), "enough")
	defined("a later plan without", sets("", func(p *events.SchedulePlan) { withoutCron(p); p.Keep = 13 }), "")
}

func TestSet_ReasonsAreLimited(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	plan := fold.Of(o.state).Schedule("hourly").Plan
	set := schedules.Set{
		Name:   "hourly",
		Plan:   schedules.EncodePlan(&plan),
		Next:   int64(o.now + 1_800_000),
		Reason: strings.Repeat("r", 256),
	}
	if err := set.Limits(); err != nil {
		t.Error(err)
	}
	set.Reason += "r"
	if limit, is := set.Limits().(*task.LimitError); !is || limit.Field != "reason" || limit.Limit != 256 {
		t.Errorf("a long reason: %v", set.Limits())
	}
	set.Reason = "\xff"
	if err := set.Limits(); err == nil || !strings.Contains(err.Error(), "reason") {
		t.Errorf("no UTF-8: %v", err)
	}
}
