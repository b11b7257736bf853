package engine

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/worker"
	"taskledger/task"
)

// planner is a behavior whose plan is a function.
type planner struct {
	stub
	plan func() (task.Plan, error)
}

func (p *planner) Plan([]byte, time.Time) (task.Plan, error) { return p.plan() }

func TestPlan_AnswersWhateverTheRuleDoes(t *testing.T) {
	for name, c := range map[string]struct {
		plan func() (task.Plan, error)
		code command.AnswerCode
		text string
	}{
		"returns": {func() (task.Plan, error) { return task.Plan{ID: "x"}, nil }, command.AnswerOK, ""},
		"refuses": {func() (task.Plan, error) { return task.Plan{}, errors.New("no such table") }, command.AnswerInvalid, "no such table"},
		"panics":  {func() (task.Plan, error) { panic("boom") }, command.AnswerInvalid, "boom"},
		"exits":   {func() (task.Plan, error) { runtime.Goexit(); return task.Plan{}, nil }, command.AnswerInvalid, "work"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t, &planner{stub{"work"}, c.plan})
			for range worker.MaxPlans + 1 { // each gives its place back
				if a := p.planHere(t.Context(), &command.Plan{Behavior: "work"}); a.Code != c.code || !strings.Contains(a.Text, c.text) {
					t.Fatalf("answer %d %q", a.Code, a.Text)
				}
			}
		})
	}
}

// The plans that hang are told apart from those that have no place, both by the behavior's name.
func TestPlan_ThoseThatHangAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let, begun := make(chan struct{}), make(chan struct{}, worker.MaxPlans+1)
		p := newPost(t, &planner{stub{"stuck"}, func() (task.Plan, error) {
			begun <- struct{}{}
			<-let
			return task.Plan{}, nil
		}}, &planner{stub{"well"}, func() (task.Plan, error) { return task.Plan{}, nil }})
		plan := func(behavior string) command.Answer {
			t.Helper()
			began := time.Now()
			a := p.planHere(t.Context(), &command.Plan{Behavior: behavior})
			if took := time.Since(began); took > planLimit {
				t.Errorf("answered after %s", took)
			}
			return a
		}
		for range worker.MaxPlans {
			if a := plan("stuck"); a.Code != command.AnswerOverload || !strings.Contains(a.Text, "behavior stuck") {
				t.Fatalf("answer %d %q", a.Code, a.Text)
			}
		}
		if a := plan("stuck"); a.Code != command.AnswerOverload || !strings.Contains(a.Text, "behavior stuck: 16 plans") {
			t.Errorf("answer %d %q", a.Code, a.Text)
		}
		if left := len(p.exec.PlanPlaces("stuck")); left != worker.MaxPlans || len(begun) != worker.MaxPlans {
			t.Errorf("%d plans have begun and %d are left, want %d", len(begun), left, worker.MaxPlans)
		}
		if a := plan("well"); a.Code != command.AnswerOK {
			t.Errorf("another behavior: answer %d %q", a.Code, a.Text)
		}
		close(let)
		synctest.Wait()
		if a := plan("stuck"); a.Code != command.AnswerOK {
			t.Errorf("when they have returned: answer %d %q", a.Code, a.Text)
		}
	})
}
