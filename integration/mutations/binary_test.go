package main

import "testing"

func TestWaitsForEver_KnowsATestByItsPartsAlone(t *testing.T) {
	const timedOut = "panic: test timed out after 2m0s\n\trunning tests:\n"
	for out, want := range map[string]bool{
		timedOut + "\t\tTestOne (2m0s)\n":                 true,
		timedOut + "\t\tTestOne/nats (2m0s)\n":            true,
		timedOut + "\t\tTestOneMore (2m0s)\n":             false,
		timedOut + "\t\tTestOther/TestOne (2m0s)\n":       false,
		"\t\tTestOne (2m0s)\n":                            false,
		"--- FAIL: TestOther (0.00s)\n\t\tTestOne (0s)\n": false,
	} {
		if got := waitsForEver(out, "TestOne"); got != want {
			t.Errorf("%v, want %v:\n%s", got, want, out)
		}
	}
}
