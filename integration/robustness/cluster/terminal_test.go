package cluster

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/integration/robustness/traffic"
	"taskledger/internal/testcluster"
)

// typeOne has a program that prints and ends as told carry out one command, and returns what is recorded of it.
func typeOne(t *testing.T, q traffic.Request, prints string, code int) (ops []history.Operation, broken string) {
	t.Helper()
	return typeAt(t, &Terminal{}, q, prints, "", code)
}

// typeAt does so at a terminal; the program says something on its standard error, too.
func typeAt(t *testing.T, at *Terminal, q traffic.Request, prints, says string, code int) (ops []history.Operation, broken string) {
	t.Helper()
	done := traffic.NewOperations()
	at.Links, at.program, at.calls = Links{ToNATS: &testcluster.Link{}}, script(t, prints, says, code), traffic.NewCalls(done)
	broken = at.enter(t.Context(), 1, q)
	if at.calls.UnderWay() > 0 || len(done.Waited()) > 0 {
		t.Error("a call is still under way")
	}
	return done.All(), broken
}

// script is a program that prints, says and ends as told.
func script(t *testing.T, prints, says string, code int) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\ncat <<'END'\n%sEND\ncat >&2 <<'END'\n%s\nEND\nexit %d\n", prints, says, code), 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

// What a fault pauses is recorded as what people type is.
func TestTerminal_RecordsWhatIsPaused(t *testing.T) {
	for code, want := range map[int]history.Answer{codeDone: history.OK, codeUnavailable: history.Unknown} {
		for _, on := range []bool{true, false} {
			done := traffic.NewOperations()
			at := &Terminal{Links: Links{ToNATS: &testcluster.Link{}}, program: script(t, "", "", code), calls: traffic.NewCalls(done)}
			err := at.SetPaused(t.Context(), on, "once", "a deployment")
			ops := done.All()
			if (err == nil) != (want == history.OK) || len(ops) != 1 {
				t.Fatalf("exit code %d: %v, recorded %+v", code, err, ops)
			}
			verb, reason := history.Unpause, ""
			if on {
				verb, reason = history.Pause, "a deployment"
			}
			if o := ops[0]; o.Verb != verb || o.Reason != reason || o.Behavior != "once" || o.Answer != want || o.Task != string(events.Settings) {
				t.Errorf("exit code %d: recorded %+v", code, o)
			}
		}
	}
}

// A request is typed in the words of the program's command line, and only if that has such a command.
func TestTerminal_TypesWhatTheProgramTakes(t *testing.T) {
	for name, row := range map[string]struct {
		q    traffic.Request
		want string // "" = it is not typed
	}{
		"a submit":            {traffic.Request{Verb: history.Submit, Task: "a", Delay: 1}, "submit once"},
		"a submit without id": {traffic.Request{Verb: history.Submit}, ""},
		"a pause":             {traffic.Request{Verb: history.Pause, Behavior: "spare", Reason: "why"}, "pause spare --reason why --force --timeout"},
		"the end of a pause":  {traffic.Request{Verb: history.Unpause, Behavior: "spare"}, "unpause spare --timeout"},
		"the settings":        {traffic.Request{Verb: history.Settings}, ""},
		"what is forbidden":   {traffic.Request{Verb: history.Pause, Behavior: "spare", Forbidden: "reason"}, ""},
	} {
		c := &typed{Terminal: &Terminal{Links: Links{ToNATS: &testcluster.Link{}}}, request: row.q}
		if got := strings.Join(c.args(), " "); typable(row.q) != (row.want != "") || !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: typed %t: %s", name, typable(row.q), got)
		}
	}
}

// A command that was about to be typed when typing ended does not begin. That is nobody's fault.
func TestTerminal_ACommandThatDoesNotBeginIsUnknown(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	done := traffic.NewOperations()
	at := &Terminal{Links: Links{ToNATS: &testcluster.Link{}}, program: "/bin/true", calls: traffic.NewCalls(done)}
	broken := at.enter(ended, 1, traffic.Request{Verb: history.Cancel, Task: "a"})
	if broken != "" || at.calls.UnderWay() > 0 || len(done.All()) != 1 || done.All()[0].Answer != history.Unknown {
		t.Errorf("recorded %+v, %d under way, broken %q", done.All(), at.calls.UnderWay(), broken)
	}
}

// What a command tells is recorded by its exit code and its output, and what does not go together is the program's
// fault.
func TestTerminal_RecordsWhatACommandTells(t *testing.T) {
	const id, success, failure = `{"id":"a","joined":true}` + "\n", `{"id":"a","status":"SUCCESS","result":"x"}` + "\n", `{"id":"a","status":"FAILURE","error":{"code":"no"}}` + "\n"
	submit := traffic.Request{Verb: history.Submit, Task: "a", Delay: 1}
	waiting := traffic.Request{Verb: history.Submit, Task: "a", Params: traffic.Params{Millis: 3}}
	of := func(v history.Verb) traffic.Request { return traffic.Request{Verb: v, Task: "a"} }
	for _, c := range []struct {
		name   string
		asked  traffic.Request
		prints string
		code   int
		want   string // verb, answer and outcome of every operation
		broken bool
	}{
		{"an acknowledged submit", submit, id, 0, "submit ok ;", false},
		{"a submit without an answer", submit, "", 4, "submit unknown ;", false},
		{"a refused submit", submit, "", 5, "submit refused ;", false},
		{"a submit that is done and says nothing", submit, "", 0, "submit unknown ;", true},
		{"a crash", submit, "", 2, "submit unknown ;", true},
		{"a submit that is acknowledged and then fails", submit, id, 1, "submit ok ;", true},
		{"an outcome", waiting, id + success, 0, "submit ok ;wait ok =\"x\";", false},
		{"a failed task", waiting, id + failure, 1, "submit ok ;wait ok !no;", false},
		{"no outcome in time", waiting, id, 4, "submit ok ;wait unknown ;", false},
		{"an interrupted wait", waiting, id, 130, "submit ok ;wait unknown ;", false},
		{"done without an outcome", waiting, id, 0, "submit ok ;wait unknown ;", true},
		{"a wait for nothing", of(history.Wait), "", 3, "wait absent ;", false},
		{"a failure without its code", of(history.Wait), "", 1, "wait unknown ;", true},
		{"a cancel", of(history.Cancel), "", 0, "cancel ok ;", false},
		{"a cancel of nothing", of(history.Cancel), "", 3, "cancel absent ;", false},
		{"a cancel that fails otherwise", of(history.Cancel), "", 1, "cancel unknown ;", true},
		{"a task that has ended", of(history.Get), success, 0, "wait ok =\"x\";", false},
		{"a task that goes on", of(history.Get), `{"status":"RUNNING"}` + "\n", 0, "", false},
		{"a task that is tried again", of(history.Get), `{"status":"FAILURE","schedule_not_before":"2026-11-22T17:00:00Z","error":{"code":"no"}}` + "\n", 0, "", false},
		{"a task that is not shown", of(history.Get), "", 0, "", true},
		{"a shard that does not answer", of(history.Get), "", 4, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ops, broken := typeOne(t, c.asked, c.prints, c.code)
			var got strings.Builder
			for _, o := range ops {
				fmt.Fprintf(&got, "%s %s %s;", o.Verb, o.Answer, o.Outcome)
				if (o.Return == 0) != (o.Answer == history.Unknown) {
					t.Errorf("%s %s returned at %d", o.Verb, o.Answer, o.Return)
				}
				if o.Verb == history.Submit && o.Answer == history.OK && !o.Joined {
					t.Error("it has not joined")
				}
			}
			if got.String() != c.want || (broken != "") != c.broken {
				t.Errorf("recorded %q, broken %q; want %q, %t", got.String(), broken, c.want, c.broken)
			}
		})
	}
}

// An owner whose clock is set wrong refuses what is asked by a right one. While no clock is wrong, that is the
// program's fault, as is any other invalid request.
func TestTerminal_ARefusalByTheClockIsOneOnlyWhileAClockIsWrong(t *testing.T) {
	const refusal = "taskledger: clock: asked at 2026-11-22T20:06:07Z by the caller's clock, which is another"
	for _, c := range []struct {
		name   string
		fault  string
		ago    time.Duration // since its end
		says   string
		want   history.Answer
		broken bool
	}{
		{"wrong clock", StepKind, 0, refusal, history.Refused, false},
		{"wrong clock while nobody asks", UnseenKind, 0, refusal, history.Refused, false},
		{"clock that is right again", StepKind, time.Minute, refusal, history.Refused, true},
		{"clock that is wrong only later", StepKind, -2 * time.Hour, refusal, history.Refused, true},
		{"right clocks", history.KillKind, 0, refusal, history.Refused, true},
		{"another field", StepKind, 0, "taskledger: id: too long", history.Unknown, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Cluster{Servers: &Servers{Begin: history.Now()}, Terminal: &Terminal{}}
			r.Terminal.begun = r.Begin
			ops, broken := typeAt(t, r.Terminal, traffic.Request{Verb: history.Cancel, Task: "a"}, "", c.says, codeInvalid)
			until := history.Since(r.Begin) - int64(c.ago)
			r.Faults = []history.Fault{{Kind: c.fault, From: until - int64(time.Hour), Until: until}}
			r.judgeUntimely()
			if damaged := broken != "" || len(r.Damage) > 0; len(ops) != 1 || ops[0].Answer != c.want || damaged != c.broken {
				t.Errorf("recorded %+v, broken %q, damage %v; want %s, %t", ops, broken, r.Damage, c.want, c.broken)
			}
		})
	}
}

func TestTerminal_NotesWhoseMailACommandCouldNotRemove(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	log.Warn("mail stays until it is swept", "sender", "sender-1", "err", "deadline exceeded")
	log.Warn("answers through the store are delayed", "sender", "sender-2")
	log.Warn("mail stays until it is swept", "sender", "sender-3", "err", "deadline exceeded")
	c := &Terminal{}
	c.noteLeft(said.String())
	if want := []string{"sender-1", "sender-3"}; !slices.Equal(c.Left, want) {
		t.Errorf("noted %q, want %q", c.Left, want)
	}
}
