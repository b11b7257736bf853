package main

import (
	"context"
	"strings"
	"testing"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/role"
	"taskledger/internal/testcluster"
)

// told is a word about a call; an empty answer says that it begins.
func told(number, caller int, v history.Verb, a history.Answer) *role.Call {
	op := history.Operation{Client: caller, Verb: v, Task: "a", Call: int64(number), Answer: a}
	if a != "" && a != history.Unknown {
		op.Return = op.Call + 1
	}
	return &role.Call{Number: number, Operation: op}
}

func hearAll(c *calls, words ...*role.Call) {
	for _, w := range words {
		c.hear(w)
	}
}

// What a process that was killed had under way may have been done: nobody was told, and nobody was untold.
func TestCalls_EndLeavesUnknownWhatWasUnderWay(t *testing.T) {
	done := newOperations()
	c := newCalls(done)
	hearAll(c, told(1, 1, history.Submit, ""), told(1, 1, history.Submit, history.OK), told(2, 1, history.Get, ""), told(3, 9, history.Wait, ""))
	if n := c.underWay(); n != 1 || len(done.waited()) != 1 {
		t.Errorf("%d calls are under way, and %v is waited for", n, done.waited())
	}
	if asked, waits := c.end(); asked != 1 || waits != 1 {
		t.Errorf("%d calls and %d waits were under way, want one each", asked, waits)
	}
	if asked, waits := c.end(); asked+waits != 0 || len(done.waited()) != 0 {
		t.Errorf("%d calls and %d waits have ended twice, and %v is waited for", asked, waits, done.waited())
	}
	answers := map[history.Verb]history.Answer{}
	for _, op := range done.all {
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
	done := newOperations()
	for range 2 { // processes
		c := newCalls(done)
		hearAll(c, told(1, 1, history.Get, ""), told(2, 2, history.Get, ""), told(2, 2, history.Get, history.OK), told(1, 1, history.Get, history.OK),
			told(3, 1, history.Get, ""), told(3, 1, history.Get, history.Unknown), told(4, 2, history.Get, ""), told(4, 2, history.Get, history.OK),
			told(5, 1, history.Get, ""), told(5, 1, history.Get, history.OK))
	}
	by := map[int]int{}
	for _, op := range done.all {
		by[op.Client]++
	}
	// Of each process: caller 2, caller 1 until it does not know, and caller 1 afterwards.
	if len(by) != 6 || done.all[0].Client != done.all[3].Client || done.all[1].Client != done.all[2].Client || done.all[2].Client == done.all[4].Client {
		t.Errorf("calls by client: %v", by)
	}
}

// A submit whose client did not live to tell the id of its task is found by its request.
func TestOperations_NameWhatWasCreated(t *testing.T) {
	h := journalOf(t, "drawn", "sender")
	o := newOperations()
	for _, op := range []history.Operation{
		{Verb: history.Submit, Request: "request", Answer: history.Unknown},
		{Verb: history.Submit, Request: "other", Answer: history.Unknown},
		{Verb: history.Submit, Request: "request", Task: "named", Answer: history.Unknown},
		{Verb: history.Wait, Request: "request", Answer: history.Unknown},
	} {
		o.add(op)
	}
	o.name(createdBy(h.Members[0]))
	for i, want := range []string{"drawn", "", "named", ""} {
		if got := o.all[i].Task; got != want {
			t.Errorf("operation %d is of task %q, want %q", i, got, want)
		}
	}
	if tasks := o.tasks(); strings.Join(tasks, " ") != "drawn named" || !o.anyUnnamed() {
		t.Errorf("tasks are %v", tasks)
	}
}

// The entry that created a task may have been trimmed since.
func TestNameTasks_FindsWhatWasTrimmed(t *testing.T) {
	_, etcd := testcluster.StartEtcd(t)
	r := &run{cluster: &cluster{members: []*member{{client: etcd}}}, recorder: &recorder{}, done: newOperations()}
	ctx, stop := context.WithCancel(t.Context())
	defer r.recorder.watching.Wait()
	defer stop()
	r.recorder.start(ctx, r.members)
	const key = prefix + "journal/0/0000000000000001"
	if _, err := etcd.Put(ctx, key, string(journalOf(t, "drawn", "sender").Members[0].Entries[0][0].Data)); err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	r.done.add(history.Operation{Verb: history.Submit, Request: "request", Answer: history.Unknown})
	if err := r.nameTasks(ctx); err != nil || r.done.all[0].Task != "drawn" {
		t.Errorf("%+v, %v", r.done.all[0], err)
	}
}

// A killed client's unknown operations accuse nobody.
func TestCalls_UnknownIsNoViolation(t *testing.T) {
	done := newOperations()
	c := newCalls(done)
	hearAll(c, told(1, 1, history.Submit, ""), told(2, 2, history.Delete, ""), told(3, 9, history.Wait, ""))
	c.end()
	h := &history.Run{Info: history.Info{Kind: "simulated", Shards: 1, EndWall: 1}, Operations: done.all, Remains: history.Remains{Checked: true},
		Members: []history.Journals{{Entries: make([][]history.Record, 1)}}}
	if j := check.Judge(h); len(j.Violations) > 0 {
		t.Errorf("%v", j.Violations)
	}
}
