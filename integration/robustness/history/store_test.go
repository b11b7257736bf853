package history_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/item"
)

// sample is a run with something in every field.
func sample() *history.Run {
	return &history.Run{
		Info: history.Info{Kind: "real", Seed: 1<<64 - 1, Command: "run --seed 1", Versions: []string{"etcd 3"}, Shards: 3, TTLMs: 3000,
			BoundMs: 60_000, Commands: 8, Healed: 7, End: 9, Read: 10, EndWall: 1_800_000_000_000, Problems: []string{"a fault did not bite"}, Planned: []string{"kill"}},
		Operations: []history.Operation{
			{Client: 1, Verb: history.Submit, Task: "a", Call: 1, Return: 2, Answer: history.OK, Joined: true, RunsAgain: true, Options: history.Options{Delay: 5}, Request: "r-1"},
			{
				Client: 2,
				Verb:   history.Get,
				Task:   "<b>\u2028",
				Call:   1,
				Answer: history.Unknown,
				Shown: history.Shown{
					Status:    "SUCCESS",
					Attempt:   1,
					Substatus: "final",
					Since:     1_800_000_000_000,
					Looked:    1_800_000_000_001,
				},
				Outcome: "=1\n2",
				Error:   "x",
				Terms:   "priority 1",
			},
			{Verb: history.Submit, Caller: events.Caller{Principal: "ada", RequestID: "r", Traceparent: "00-1"}, Forbidden: "priority", OtherRequest: true},
			{Verb: history.SetSchedule, Task: "nightly/schedule:", Schedule: &history.ScheduleCall{
				Plan:    &events.SchedulePlan{Cron: "@hourly", Zone: "UTC", Overlap: events.OverlapAllow, Policy: events.Policy{MaxAttempts: 2}},
				Params:  "1",
				Seen:    3,
				Version: events.RefOf(1<<44-1, 3),
				Changed: true,
			}},
			{Verb: history.GetSchedule, Task: "nightly/schedule:", Schedule: &history.ScheduleCall{
				From:  1,
				To:    2,
				Run:   "nightly/run:1",
				Ticks: 4,
				Shown: []history.ShownSchedule{{
					Name:    "nightly",
					Version: 1,
					Next:    2,
					Last:    3,
					Active:  4,
					Kept:    5,
					Paused:  true,
					Left:    -1,
					Why:     "the store is full",
				}},
			}},
			{Verb: history.Settings, Task: string(events.Settings), Behavior: "work", Reason: "a deployment", Paused: history.PausedText([]history.PausedBehavior{{Behavior: "work"}})},
		},
		Items: []history.ItemCall{
			{Store: "crawl", Call: 1, Return: 2, Answer: history.OK, Items: []item.Item{{ID: 2, Group: "g", At: 3, Owner: 4, Data: []byte("x")}},
				Update: &item.Update{Client: 4, Key: "k", Depends: []int64{1}, Deletes: []int64{2}, Changes: []item.Change{{ID: 3, Keep: true}}, Adds: []item.Add{{Group: "g", At: -5}}}},
			{Store: "crawl", Answer: history.Refused, Claim: &item.Claim{Client: 4, Group: "g", Duration: 5, Wait: 6}, Problems: []item.Problem{{Field: "depends", ID: 1, Kind: item.NotThere}}},
			{Store: "crawl", Read: []int64{1}, Group: "g", OtherRequest: true, Error: "x"},
		},
		Executions: []history.Execution{{Task: "a", Node: "n-1", Token: events.Position{Shard: 2, Ref: events.RefOf(1<<44-1, 3)}, Attempt: 1,
			Begin: 3, End: 4, Outcome: "!no", Final: true}},
		Faults: []history.Fault{{Kind: "kill", Target: "n-1", From: 1, Until: 2, Proof: "signal: killed", Round: 1, InFlight: 12}},
		Members: []history.Journals{
			{Member: "http://127.0.0.1/../x", Entries: [][]history.Record{nil, {{Number: 1, Revision: 5, Created: 5, At: 4, Data: []byte{0, 255, '\n'}}, {Number: 2, Revision: 6}}, nil}},
			{Member: "", Entries: [][]history.Record{}},
		},
		Keys: []history.KeyChange{{Revision: 1, Node: "n-1"}, {Revision: 2, Shard: 1, Owner: "n-1"}, {Revision: 3, Node: "n-1", Deleted: true}},
		Served: []history.Served{{Task: "a", Status: "SUCCESS", Seq: 3, Attempt: 1, Runs: 1, Outcome: "=1", Whole: true, Suspended: true, Due: 3, Failures: 4, Lost: 5,
			Creator: "ada", LastNode: "n-1", WaitCause: "Lost", WaitSince: 6, SuspendedAt: 7, Terms: "priority 2", Substatus: "lost", Since: 8, Looked: 9}},
		Remains: history.Remains{Checked: true, Leases: 1, Keys: []string{"mailbox/1"}, Others: []string{"a goroutine"}},
		Damage:  []history.Finding{{Invariant: "8 ended", Text: "a node does not come back"}},
	}
}

func TestLoad_ReturnsWhatWasSaved(t *testing.T) {
	for name, run := range map[string]*history.Run{"everything": sample(), "nothing": {}} {
		dir := filepath.Join(t.TempDir(), "kept")
		if err := history.Save(dir, sample()); err != nil { // something is there already
			t.Fatal(err)
		}
		if err := history.Save(dir, run); err != nil {
			t.Fatal(err)
		}
		got, err := history.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, run) {
			t.Errorf("%s: loaded\n%+v, saved\n%+v", name, got, run)
		}
	}
}

func TestSave_SaysWhatItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := history.Save(file, sample()); err == nil {
		t.Error("saved into a file")
	}
	if err := history.Save(t.TempDir(), &history.Run{Members: make([]history.Journals, 65)}); err == nil {
		t.Error("saved more members than are loaded")
	}
}

func TestLoad_RefusesWhatSaveDoesNotWrite(t *testing.T) {
	for _, row := range []struct{ name, file, text, want string }{
		{"an unknown field", "operations.jsonl", `{"Client":1,"Colour":"red"}`, "operations.jsonl, line 1"},
		{"two values in a line", "faults.jsonl", `{"Kind":"kill"} {"Kind":"stop"}`, "more than one value"},
		{"a cut line", "executions.jsonl", "{\"Task\":\"a\"}\n{\"Task\":", "line 2"},
		{"a value of another type", "keys.jsonl", `{"Revision":"x"}`, "keys.jsonl, line 1"},
		{"a token that is none", "executions.jsonl", `{"Token":"1.2"}`, "want shard.entry.index"},
		{"two infos", "info.json", "{}\n{}", "want one each"},
		{"no remains", "remains.json", "", "want one each"},
		{"a journal without a member", "entries-1.jsonl", "", "empty"},
		{"an entry before the member", "entries-1.jsonl", `{"Record":{"Number":1}}`, "names no member"},
		{"too many shards", "entries-1.jsonl", `{"Member":"m","Shards":257}`, "names no member"},
		{"an entry of a shard beyond", "entries-1.jsonl", "{\"Shards\":2}\n{\"Shard\":2,\"Record\":{}}", "one of 2 shards"},
		{"a line without an entry", "entries-1.jsonl", "{\"Shards\":2}\n{\"Shard\":1}", "no entry"},
		{"a line beyond the limit", "served.jsonl", `{"Task":"` + strings.Repeat("a", 5<<20) + `"}`, "token too long"},
	} {
		dir := t.TempDir()
		if err := history.Save(dir, sample()); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, row.file), []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := history.Load(dir); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want an error with %q", row.name, err, row.want)
		}
	}
	dir := t.TempDir()
	if err := errors.Join(history.Save(dir, sample()), os.Remove(filepath.Join(dir, "entries-1.jsonl"))); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Load(dir); err == nil || !strings.Contains(err.Error(), "1 members, want those of 2") {
		t.Errorf("without the journals of a member: %v", err)
	}
	if _, err := history.Load(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty folder: %v, want os.ErrNotExist", err)
	}
}
