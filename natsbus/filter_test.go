package natsbus_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"taskledger/events"
	"taskledger/natsbus"
)

func TestFilter_OverlooksNobodyAndSeldomErrs(t *testing.T) {
	t.Parallel()
	for tasks, often := range map[int]float64{0: 1, 1: .2, 10: .03, 1000: .015, 4900: .015, 20000: .7} {
		inside := map[events.TaskID]struct{}{}
		for i := range tasks {
			inside[events.TaskID(fmt.Sprint("in-", i))] = struct{}{}
		}
		text := natsbus.NewFilter(inside)
		if len(text) > 8<<10 {
			t.Errorf("filter of %d tasks takes %d bytes, want 8 KiB at most", tasks, len(text))
		}
		mayHold := natsbus.ParseFilter(text)
		for task := range inside {
			if !mayHold(task) {
				t.Fatalf("filter of %d tasks overlooks %s", tasks, task)
			}
		}
		const asked = 10_000
		wrong := 0
		for i := range asked {
			if mayHold(events.TaskID(fmt.Sprint("out-", i))) {
				wrong++
			}
		}
		if rate := float64(wrong) / asked; rate > often {
			t.Errorf("filter of %d tasks errs at a rate of %.3f, want %.3f at most", tasks, rate, often)
		}
	}
}

func TestFilter_WhatIsNoneMayHoldEverything(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "?", "AA", base64.StdEncoding.EncodeToString([]byte{255})} {
		if !natsbus.ParseFilter(text)("task") {
			t.Errorf("filter %q overlooks a task", text)
		}
	}
}
