package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/history"
)

// journalOf returns the journal of a task that a sender submitted.
func journalOf(t *testing.T, task, sender string) *history.Run {
	t.Helper()
	policy, err := events.Policy{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	var b events.Builder
	b.Reset(events.Entry{Number: 1, Epoch: 1, Owner: "n-1", Time: 1_800_000_000_000})
	b.AddOrigin(events.Origin{Sender: "other", Number: 1})
	batch := b.AddOrigin(events.Origin{Sender: sender, Number: 1, Caller: events.Caller{Principal: "client"}})
	origin := b.AddOrigin(events.Origin{Batch: batch, Caller: events.Caller{Principal: "ada"}})
	b.Add(events.Event{Task: events.TaskID(task), Seq: 1, Origin: origin, RequestID: "request", Body: &events.Created{Behavior: "work", Policy: policy, NotBefore: 1_800_000_000_000}})
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	return &history.Run{Members: []history.Journals{{Entries: [][]history.Record{{{Number: 1, Data: data}}}}}}
}

// Only the mail of who could not clean up may remain.
func TestRemain_ExcusesTheDeadAlone(t *testing.T) {
	h := journalOf(t, cluster.Source("node1", 123)+"-1", "sender-1")
	letter := []byte{0x92, 1, 0xc4, 1, 'x'}
	for _, row := range []struct {
		killed []string
		left   []string // senders of which commands have said so
		path   string
		want   bool
	}{
		{nil, nil, "meta", true},
		{nil, nil, "nodes", true},
		{nil, nil, "owner/1", true},
		{nil, nil, "node/n-1", false},
		{nil, nil, "mailbox/1/sender-1/0", false},
		{nil, nil, "answer/sender-1/1/0", false},
		{nil, nil, "stray", false},
		{[]string{"node1-123"}, nil, "mailbox/1/sender-1/0", true},
		{[]string{"node1-123"}, nil, "answer/sender-1/1/0", true},
		{[]string{"node1-123"}, nil, "node/n-1", false},
		{[]string{"node1-123"}, nil, "answer/asks-for-a-plan/8/2", true},
		{[]string{"node1-123"}, nil, "mailbox/8/asks-for-a-plan/2", true},
		{nil, nil, "answer/asks-for-a-plan/8/2", false},
		{[]string{"node1-123"}, nil, "mailbox/1/sender-2/0", false},
		{[]string{"node1-123"}, nil, "answer/sender-2/1/0", false},
		{[]string{"node1-12"}, nil, "mailbox/1/sender-2/0", true}, // it never submitted: nobody knows who it was
		{nil, []string{"sender-2"}, "answer/sender-2/0/2", true},
		{nil, []string{"sender-2"}, "mailbox/8/sender-2/2", true},
		{nil, []string{"sender-2"}, "answer/sender-1/0/2", false},
	} {
		r := &cluster.Cluster{Killed: row.killed, Terminal: &cluster.Terminal{Left: row.left}}
		key, err := history.KeyOf(row.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := senders(r, h).remain(key, letter); got != row.want {
			t.Errorf("killed %v: %s may remain: %t, want %t", row.killed, row.path, got, row.want)
		}
	}
}

func TestReadLogs_FindsWhatProcessesSurvive(t *testing.T) {
	for _, a := range alarms {
		r := &cluster.Cluster{Servers: &cluster.Servers{Dir: t.TempDir()}}
		for name, text := range map[string]string{"node1.log": "all is well", "node2.log": "ERROR " + a.text + " shard=1", "etcd1.log": a.text} {
			if err := os.WriteFile(filepath.Join(r.Dir, name), []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := readLogs(r); err != nil {
			t.Fatal(err)
		}
		if len(r.Damage) != 1 || r.Damage[0].Invariant != a.invariant || !strings.Contains(r.Damage[0].Text, "1 times in node*.log") {
			t.Errorf("%q: %+v", a.text, r.Damage)
		}
	}
}

// What the harness sees goes into the record, whatever else goes wrong.
func TestDamage_IsAViolation(t *testing.T) {
	r := &cluster.Cluster{}
	r.Broken(check.Ended, "task %s has not ended", "a")
	h := &history.Run{Info: history.Info{Kind: "real", Problems: []string{"etcd takes no writes"}}, Damage: r.Damage}
	if j := check.Judge(h); j.Verdict() != check.Violated || j.Violations[0].Text != "task a has not ended" {
		t.Errorf("%+v", j)
	}
}

// A process whose name nobody knows has the mail of one sender.
func TestRemain_OneUnknownProcessExcusesOneSender(t *testing.T) {
	r := &cluster.Cluster{Killed: []string{"node1-12"}}
	may := senders(r, journalOf(t, cluster.Source("node1", 123)+"-1", "sender-1"))
	for _, row := range []struct {
		path string
		want bool
	}{{"answer/sender-2/1/0", true}, {"mailbox/1/sender-3/0", false}, {"mailbox/4/sender-2/0", true}} {
		key, err := history.KeyOf(row.path)
		if err != nil {
			t.Fatal(err)
		}
		if got := may.remain(key, []byte{0x92, 1, 0xc4, 1, 'x'}); got != row.want {
			t.Errorf("%s may remain: %t, want %t", row.path, got, row.want)
		}
	}
}

// A history in which an entry of one shard was damaged on purpose says nothing of the others.
func TestReadLogs_ExcusesTheQuarantineOfADamagedShardAlone(t *testing.T) {
	for shard, want := range map[int]int{3: 0, 33: 1, 4: 1} {
		r := &cluster.Cluster{Servers: &cluster.Servers{Dir: t.TempDir()}, Aliens: map[int]bool{3: true}}
		line := fmt.Sprintf("level=ERROR msg=%q node=a session=a-1 shard=%d err=x\n", quarantined, shard)
		if err := os.WriteFile(filepath.Join(r.Dir, "node1.log"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := readLogs(r); err != nil {
			t.Fatal(err)
		}
		if len(r.Damage) != want {
			t.Errorf("shard %d: %d violations, want %d", shard, len(r.Damage), want)
		}
	}
}
