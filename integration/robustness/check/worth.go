package check

import (
	"fmt"
	"slices"

	"taskledger/integration/robustness/history"
)

// What a run of real processes must have for its faults to meet anything.
const (
	// LeastAnswered is the least number of operations acknowledged between two rounds of faults, and before the first.
	LeastAnswered = 50
	// LeastInFlight is the least number of acknowledged tasks that have not ended when a fault begins.
	LeastInFlight = 10
)

// worthless says why a run of real processes proves nothing: a fault that did not bite or met too little traffic, one
// that was planned and never came, or none at all. It goes by the record alone.
func worthless(run *history.Run) (why []string) {
	if run.Info.Kind != "real" {
		return nil
	}
	if len(run.Faults) == 0 {
		why = append(why, "no fault was in force")
	}
	for _, kind := range run.Info.Planned {
		if !slices.ContainsFunc(run.Faults, func(f history.Fault) bool { return f.Kind == kind }) {
			why = append(why, fmt.Sprintf("fault %s was planned and never came", kind))
		}
	}
	for _, f := range run.Faults {
		if f.Proof == "" {
			why = append(why, fmt.Sprintf("fault %s of %s did not bite", f.Kind, f.Target))
		}
		if f.InFlight < LeastInFlight {
			why = append(why, fmt.Sprintf("fault %s met %d tasks in flight, want %d", f.Kind, f.InFlight, LeastInFlight))
		}
	}
	return append(why, quietRounds(run)...)
}

// quietRounds returns the rounds before which too little was acknowledged.
func quietRounds(run *history.Run) (why []string) {
	begins, ends := map[int]int64{}, map[int]int64{}
	for _, f := range run.Faults {
		if at, ok := begins[f.Round]; !ok || f.From < at {
			begins[f.Round] = f.From
		}
		ends[f.Round] = max(ends[f.Round], f.Until)
	}
	for round, begin := range begins {
		answered := 0
		for i := range run.Operations {
			o := &run.Operations[i]
			if o.Answer == history.OK && o.Return > ends[round-1] && o.Return <= begin {
				answered++
			}
		}
		if answered < LeastAnswered {
			why = append(why, fmt.Sprintf("%d operations were acknowledged before round %d of the faults, want %d", answered, round, LeastAnswered))
		}
	}
	slices.Sort(why)
	return why
}
