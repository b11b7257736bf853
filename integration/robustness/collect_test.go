package main

import (
	"context"
	"strings"
	"testing"

	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/internal/testcluster"
)

// A submit whose client did not live to tell the id of its task is found by its request.
func TestOperations_NameWhatWasCreated(t *testing.T) {
	h := journalOf(t, "drawn", "sender")
	o := traffic.NewOperations()
	for _, op := range []history.Operation{
		{Verb: history.Submit, By: "ada work", Request: "request", Answer: history.Unknown},
		{Verb: history.Submit, By: "ada work", Request: "other", Answer: history.Unknown},
		{Verb: history.Submit, By: "ada work", Request: "request", Task: "named", Answer: history.Unknown},
		{Verb: history.Wait, By: "ada work", Request: "request", Answer: history.Unknown},
		{Verb: history.Submit, By: "bob work", Request: "request", Answer: history.Unknown},
		{Verb: history.Submit, By: "ada other", Request: "request", Answer: history.Unknown},
	} {
		o.Add(op)
	}
	o.Name(createdBy(h.Members[0]))
	for i, want := range []string{"drawn", "", "named", "", "", ""} {
		if got := o.All()[i].Task; got != want {
			t.Errorf("operation %d is of task %q, want %q", i, got, want)
		}
	}
	if tasks := o.Tasks(); strings.Join(tasks, " ") != "drawn named" || !o.AnyUnnamed() {
		t.Errorf("tasks are %v", tasks)
	}
}

// The entry that created a task may have been trimmed since.
func TestNameTasks_FindsWhatWasTrimmed(t *testing.T) {
	_, etcd := testcluster.StartEtcd(t)
	r := &cluster.Cluster{Servers: &cluster.Servers{Members: []*cluster.Member{{Client: etcd}}}, Keys: &cluster.Keys{}, Operations: traffic.NewOperations()}
	ctx, stop := context.WithCancel(t.Context())
	defer r.Keys.Wait()
	defer stop()
	r.Keys.Start(ctx, 0, r.Observers())
	const key = cluster.KeyPrefix + "journal/0/0000000000000001"
	if _, err := etcd.Put(ctx, key, string(journalOf(t, "drawn", "sender").Members[0].Entries[0][0].Data)); err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	r.Operations.Add(history.Operation{Verb: history.Submit, By: "ada work", Request: "request", Answer: history.Unknown})
	if err := nameTasks(ctx, r); err != nil || r.Operations.All()[0].Task != "drawn" {
		t.Errorf("%+v, %v", r.Operations.All()[0], err)
	}
}
