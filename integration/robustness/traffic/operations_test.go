package traffic

import (
	"testing"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// told is a word about a call; an empty answer says that it begins.
func told(number, caller int, v history.Verb, a history.Answer) *Call {
	op := history.Operation{Client: caller, Verb: v, Task: "a", Call: int64(number), Answer: a}
	if a != "" && a != history.Unknown {
		op.Return = op.Call + 1
	}
	return &Call{Number: number, Operation: op}
}

func hearAll(c *Calls, words ...*Call) {
	for _, w := range words {
		c.Hear(w)
	}
}

// What a process that was killed had under way may have been done: nobody was told, and nobody was untold.
func TestCalls_EndLeavesUnknownWhatWasUnderWay(t *testing.T) {
	done := NewOperations()
	c := NewCalls(done)
	hearAll(c, told(1, 1, history.Submit, ""), told(1, 1, history.Submit, history.OK), told(2, 1, history.Get, ""), told(3, 9, history.Wait, ""))
	if n := c.UnderWay(); n != 1 || len(done.Waited()) != 1 {
		t.Errorf("%d calls are under way, and %v is waited for", n, done.Waited())
	}
	if asked, waits := c.End(); asked != 1 || waits != 1 {
		t.Errorf("%d calls and %d waits were under way, want one each", asked, waits)
	}
	if asked, waits := c.End(); asked+waits != 0 || len(done.Waited()) != 0 {
		t.Errorf("%d calls and %d waits have ended twice, and %v is waited for", asked, waits, done.Waited())
	}
	answers := map[history.Verb]history.Answer{}
	for _, op := range done.All() {
		answers[op.Verb] = op.Answer
		if (op.Return == 0) != (op.Answer == history.Unknown) {
			t.Errorf("%+v", op)
		}
	}
	if answers[history.Submit] != history.OK || answers[history.Get] != history.Unknown || answers[history.Wait] != history.Unknown {
		t.Errorf("recorded are %v", answers)
	}
}

// A client makes one call at a time, and goes on under another number when it does not know what came of one.
func TestCalls_NumberWhoGoesOn(t *testing.T) {
	done := NewOperations()
	for range 2 { // processes
		c := NewCalls(done)
		hearAll(c, told(1, 1, history.Get, ""), told(2, 2, history.Get, ""), told(2, 2, history.Get, history.OK), told(1, 1, history.Get, history.OK),
			told(3, 1, history.Get, ""), told(3, 1, history.Get, history.Unknown), told(4, 2, history.Get, ""), told(4, 2, history.Get, history.OK),
			told(5, 1, history.Get, ""), told(5, 1, history.Get, history.OK))
	}
	by := map[int]int{}
	for _, op := range done.All() {
		by[op.Client]++
	}
	// Of each process: caller 2, caller 1 until it does not know, and caller 1 afterwards.
	if len(by) != 6 || done.All()[0].Client != done.All()[3].Client || done.All()[1].Client != done.All()[2].Client || done.All()[2].Client == done.All()[4].Client {
		t.Errorf("calls by client: %v", by)
	}
}

// A killed client's unknown operations accuse nobody.
func TestCalls_UnknownIsNoViolation(t *testing.T) {
	done := NewOperations()
	c := NewCalls(done)
	hearAll(c, told(1, 1, history.Submit, ""), told(2, 2, history.Delete, ""), told(3, 9, history.Wait, ""))
	c.End()
	h := &history.Run{Info: history.Info{Kind: "simulated", Shards: 1, EndWall: 1}, Operations: done.All(), Remains: history.Remains{Checked: true},
		Members: []history.Journals{{Entries: make([][]history.Record, 1)}}}
	if j := check.Judge(h); len(j.Violations) > 0 {
		t.Errorf("%v", j.Violations)
	}
}
