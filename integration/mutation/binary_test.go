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

func TestPanics_KnowsATestThatRan(t *testing.T) {
	for out, want := range map[string]bool{
		"=== RUN   TestOne\npanic: runtime error\n":                     true,
		"=== RUN   TestOne\nlogged\npanic: no such\n\ngoroutine 1\n":    true,
		"=== RUN   TestOneMore\npanic: runtime error\n":                 false,
		"=== RUN   TestOne\npanic: test timed out after 2m0s\n":         false,
		"=== RUN   TestOne\n--- FAIL: TestOne (0.00s)\n":                false,
		"=== RUN   TestOne\n    one_test.go:1: a panic: is in a text\n": false,
	} {
		if got := panics(out, "TestOne"); got != want {
			t.Errorf("%v, want %v:\n%s", got, want, out)
		}
	}
}
