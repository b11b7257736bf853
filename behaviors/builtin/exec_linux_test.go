package builtin_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"taskledger/behaviors/builtin"
	"taskledger/internal/testkit"
)

// Whoever holds a group may kill it until it is released: so its number is that of its program until then.
func TestExec_AGroupIsReleasedWhenNothingOfItRunsAndBeforeItsNumberIsFree(t *testing.T) {
	var held, released []int
	b := builtin.Exec(builtin.ExecOptions{Allow: []string{"sh"}, Hold: func(group int) func() {
		held = append(held, group)
		return func() {
			released = append(released, group)
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", group))
			if err != nil || !strings.Contains(string(stat), ") Z ") {
				t.Errorf("released when its program was %q, %v", stat, err)
			}
		}
	}})
	path, open := pipe(t)
	outcome := start(t.Context(), t, b, script("exec 3>"+path+"; sleep 60 & echo $$ >&3"))
	r := open()
	group := line(t, r)
	if o := <-outcome; o.Err != nil {
		t.Fatal(o.Err)
	}
	wantEnd(t, r)
	if got := fmt.Sprint(held, released); got != fmt.Sprintf("[%s] [%s]", group, group) {
		t.Errorf("held and released %s, the group was %s", got, group)
	}
}

func TestExec_NothingIsHeldThatDoesNotStart(t *testing.T) {
	b := builtin.Exec(builtin.ExecOptions{Allow: []string{"sh"}, Hold: func(group int) func() {
		t.Errorf("%d is held", group)
		return func() {}
	}})
	p := script("")
	p.Dir = "/nonexistent"
	_, o := run[builtin.ExecResult](t.Context(), t, b, p)
	testkit.WantFailure(t, o, builtin.CodeNotFound, true)
}
