package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

func TestSummary_TimesRerunsAfterAKill(t *testing.T) {
	const at = int64(10 * time.Second)
	h := &history.Run{
		Info:    history.Info{Snapshots: 3, Trimmed: 7, Archived: 9},
		Members: []history.Journals{{}},
		Faults:  []history.Fault{{Kind: history.KillKind, Target: "node1 dead", From: at, Until: at + 1, Proof: "it has ended"}},
		Executions: []history.Execution{
			{Task: "a", Node: "dead", Attempt: 1, Begin: at - 1},
			{Task: "a", Node: "other", Attempt: 2, Begin: at + int64(3*time.Second)},
			{Task: "a", Node: "other", Attempt: 3, Begin: at + int64(5*time.Second)},
			{Task: "ended before", Node: "dead", Attempt: 1, Begin: at - 2, End: at - 1},
			{Task: "elsewhere", Node: "other", Attempt: 1, Begin: at - 1},
			{Task: "never again", Node: "dead", Attempt: 1, Begin: at - 1},
		},
	}
	s := newSummary()
	s.Planned["rolling-restart"] = 1
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "node1.log"), []byte("late outcome refused\nlate outcome refused\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.add(h, &check.Judgement{Violations: []check.Violation{{Invariant: "5 outcomes"}, {Invariant: "8 ended"}}}, dir); err != nil {
		t.Fatal(err)
	}
	if len(s.Rerun.Times) != 1 || s.Rerun.Times[0] != 3*time.Second || len(s.RerunSlow.Times) != 0 {
		t.Errorf("reruns %v and %v, want one of 3s", s.Rerun.Times, s.RerunSlow.Times)
	}
	h.Faults = append(h.Faults, history.Fault{Kind: "bus-forged", From: at + int64(time.Second), Until: at + int64(2*time.Second)})
	if err := s.add(h, new(check.Judgement), dir); err != nil || len(s.RerunNear.Times) != 1 || len(s.Rerun.Times) != 1 {
		t.Errorf("near another fault: %v, %v", s.RerunNear.Times, err)
	}
	h.Faults = append(h.Faults[:1], history.Fault{Kind: "etcd-leader-kill", From: at - int64(time.Second), Until: at})
	if err := s.add(h, new(check.Judgement), dir); err != nil || len(s.RerunSlow.Times) != 1 {
		t.Errorf("beside a change of etcd's leader: %v, %v", s.RerunSlow.Times, err)
	}
	if s.green() || s.Refused != 6 || s.broken("5", "11") != 1 || s.broken("7", "8") != 1 || s.Fired[history.KillKind] != 3 {
		t.Errorf("green %t, %+v", s.green(), s)
	}
	var text strings.Builder
	if err := s.write(&text); err != nil || !strings.Contains(text.String(), "max 3s of 1 tasks") || !strings.Contains(text.String(), "0, planned for 1 histories") ||
		!strings.Contains(text.String(), "0, of which 21 trimmed, 27 archived") {
		t.Errorf("%v\n%s", err, &text)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}
