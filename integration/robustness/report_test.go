package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

const hostile = "x\npassed: real run, seed 1\ttask plain"

// run is a run with an entry and hostile names wherever there is a name.
func run(t *testing.T) *history.Run {
	t.Helper()
	policy, err := events.Policy{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	var b events.Builder
	b.Reset(events.Entry{Shard: 0, Number: 1, Epoch: 3, Owner: "n-1", Time: 1_800_000_001_500})
	created := b.Add(events.Event{Task: "plain", Seq: 1, Body: &events.Created{Behavior: "work", Policy: policy, NotBefore: 1}})
	b.Add(events.Event{Task: "plain", Seq: 2, Prev: created.Position.Ref, Body: &events.Started{Node: "n-1", Attempt: 1}})
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	return &history.Run{
		Info: history.Info{Kind: "simulated", Seed: 4711, Command: "replay 4711 " + hostile, Versions: []string{hostile}, Shards: 1, End: 3e9,
			EndWall: 1_800_000_003_000},
		Operations: []history.Operation{
			{Client: 1, Verb: history.Submit, Task: "plain", Call: 1e9, Return: 2e9, Answer: history.OK},
			{Client: 1, Verb: history.Get, Task: "plain", Call: 21e8, Return: 22e8, Answer: history.OK, Shown: history.Shown{Status: "RUNNING", Attempt: 1}},
			{Client: 2, Verb: history.Wait, Task: hostile, Call: 1e9, Answer: history.Unknown, Outcome: "=" + hostile, Error: hostile},
		},
		Executions: []history.Execution{{Task: "plain", Node: hostile, Token: events.Position{Ref: events.RefOf(1, 1)}, Attempt: 1, Begin: 12e8, Outcome: "!" + hostile}},
		Faults: []history.Fault{{Kind: hostile, Target: "n-1", From: 1e9, Until: 2e9, Proof: hostile}, {Kind: "freeze", Target: "n-2", From: 1e9},
			{Kind: "freeze", Target: "n-2", From: 2e9, Until: 25e8, Proof: "3 writes held"}},
		Members: []history.Journals{{Member: "m", Entries: [][]history.Record{{{Number: 1, Revision: 5, Data: data}, {Number: 2, Data: []byte("damaged")}}}}},
	}
}

func write(t *testing.T, r *history.Run, found []check.Violation) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, r, &check.Judgement{Violations: found, Problems: r.Info.Problems}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var violations = []check.Violation{{Invariant: "2 legal", Task: "plain", Shard: 0, Entry: 1, Text: hostile}, {Invariant: "13 clean", Text: "a lease remains"}}

// rows returns the lines of a report, with one blank between their words.
func rows(text string) (all []string) {
	for line := range strings.Lines(text) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}

func TestWrite_ShowsTheRunAndWhatWasFound(t *testing.T) {
	all := rows(write(t, run(t), violations))
	for _, want := range []string{"violated: simulated run, seed 4711", "replay 4711", "2 legal: 1", "13 clean 0 0 a lease remains", "task plain (violated)",
		"1s to 2s call client 1: submit: ok", "2.1s to 2.2s call client 1: get: ok, RUNNING, attempt 1", `run "attempt 1 on`,
		"1.2s to no end run", "token 0.1.1", "2s 500ms freeze n-2 3 writes held", "2s to 2.5s fault freeze of n-2: 3 writes held", "no proof",
		"Created, event 1 at 0.1.0", "Started, event 2 at 0.1.1", "event, accused Created", `1s to no end call "client 2: wait: unknown`,
		"1s to no end fault freeze of n-2: no proof", "submit 1 0 0 0 0", "wait 0 0 0 1 0", "3 operations, 2 tasks, 1 executions, 2 entries, 1 members, 3 faults"} {
		if !slices.ContainsFunc(all, func(row string) bool { return strings.Contains(row, want) }) {
			t.Errorf("the report lacks %q", want)
		}
	}
	bad := slices.Index(all, "task plain (violated)")
	if other := slices.IndexFunc(all, func(row string) bool { return strings.HasPrefix(row, `"task x`) }); bad < 0 || bad > other {
		t.Error("a task without violations stands before one with")
	}
}

// A name with line breaks forges neither a line nor a cell.
func TestWrite_TakesEveryNameAsText(t *testing.T) {
	text := write(t, run(t), violations)
	if strings.Contains(text, "\npassed") || strings.Contains(text, "\t") {
		t.Error("a hostile name has a line or a cell of its own")
	}
	if got := strings.Count(text, `x\npassed: real run, seed 1\ttask plain`); got < 10 {
		t.Errorf("%d hostile names are shown, want every one", got)
	}
}

// An event stands at its owner's clock, and a Started not after its function began.
func TestWrite_PlacesEvents(t *testing.T) {
	all := rows(write(t, run(t), nil))
	for kind, want := range map[string]string{"Created": "1.5s to 1.5s event Created", "Started": "1.2s to 1.2s event Started"} {
		if !slices.ContainsFunc(all, func(row string) bool { return strings.HasPrefix(row, want) }) {
			t.Errorf("%s does not stand at %q", kind, want)
		}
	}
}

func TestWrite_BoundsWhatItShows(t *testing.T) {
	r := run(t)
	for i := range 20_000 {
		r.Operations = append(r.Operations, history.Operation{Verb: history.Get, Task: fmt.Sprint("t-", i%1000), Call: int64(i), Answer: history.Unknown})
		r.Faults = append(r.Faults, history.Fault{Kind: "kill", From: int64(i)})
	}
	text := write(t, r, make([]check.Violation, 10_000))
	if len(text) > 10<<20 {
		t.Errorf("the report has %d bytes", len(text))
	}
	for _, want := range []string{"and 9700 more", "further tasks are not shown", "and 19703 more"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
}

func TestWrite_ShowsARunWithoutAnything(t *testing.T) {
	if text := write(t, new(history.Run), nil); !strings.Contains(text, "passed") || !strings.Contains(text, "None.") {
		t.Error("an empty run is not shown as passed")
	}
}

type fullDisk struct{}

var errFull = errors.New("disk is full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWrite_ReportsAWriterThatFails(t *testing.T) {
	if err := Write(fullDisk{}, run(t), new(check.Judgement)); !errors.Is(err, errFull) {
		t.Errorf("report: %v", err)
	}
}
