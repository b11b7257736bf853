package overschedules_test

import (
	"strings"
	"testing"
	"time"

	"taskledger/cmd/node/internal/bench/overschedules"
)

func TestResult_WithinTellsTheBoundThatIsBroken(t *testing.T) {
	r := overschedules.Result{
		Runs:      9,
		LatestMs:  300,
		TasksPerS: 1000,
		Ratio:     0.7,
	}
	for says, b := range map[string]overschedules.Bounds{
		"":       {Late: time.Second, Ratio: 0.7},
		"300 ms": {Late: 200 * time.Millisecond},
		"0.70":   {Ratio: 0.8},
	} {
		if err := r.Within(b); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", b, err, says)
		}
	}
	for says, change := range map[string]func(*overschedules.Result){
		"too few to tell":       func(r *overschedules.Result) { r.Runs = 0 },
		"before their tick":     func(r *overschedules.Result) { r.Early = 1 },
		"had 1 entries written": func(r *overschedules.Result) { r.IdleEntries = 1 },
	} {
		wrong := r
		change(&wrong)
		if err := wrong.Within(overschedules.Bounds{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", wrong, err, says)
		}
	}
}
