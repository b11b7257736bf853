package main_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCommands_SubmitAndHold(t *testing.T) {
	t.Parallel()
	commandsOfANode(t, map[string]func(*testing.T, string){
		"Submit_PrintsTheIDAlone":                submitPrintsTheIDAlone,
		"Submit_ReadsParametersFromFileAndInput": submitReadsParameters,
		"Submit_WaitPrintsTheResult":             submitWaitPrintsTheResult,
		"Submit_RepeatedUnderAKeyIsOneRequest":   submitRepeatedUnderAKey,
		"SubmitBatch_TellsOfEachLine":            submitBatchTellsOfEachLine,
		"SubmitBatch_WithAWrongLineSubmitsNone":  submitBatchWithAWrongLine,
		"Delayed_WaitsUntilItIsRunNow":           delayedWaitsUntilRunNow,
		"Suspended_DoesNotStartUntilResumed":     suspendedDoesNotStart,
		"Pause_KeepsABehaviorFromStarting":       pauseKeepsFromStarting,
		"Submit_SaysThatItJoins":                 submitSaysThatItJoins,
	})
}

func TestCommands_SayHowTheyEnd(t *testing.T) {
	t.Parallel()
	commandsOfANode(t, map[string]func(*testing.T, string){
		"ExitCode_OfAFailedTaskIs1":          failedTaskIs1,
		"ExitCode_OfWrongUsageIs2":           wrongUsageIs2,
		"ExitCode_OfNoSuchTaskIs3":           noSuchTaskIs3,
		"ExitCode_OfATimeOutIs4":             timeOutIs4,
		"ExitCode_OfARefusalIs5":             refusalIs5,
		"ExitCode_OfANodeThatCannotStartIs4": cannotStartIs4,
		"JSON_IsOneObjectALineInSnakeCase":   jsonIsOneObjectALine,
		"Verb_WithAWrongIDChangesNothing":    wrongIDChangesNothing,
		"Completion_OffersBehaviorsAndTasks": completionOffers,
		"Serve_OnADirectoryInUseIsRefused":   serveTwiceIsRefused,
	})
}

func TestCommands_ChangeAndTell(t *testing.T) {
	t.Parallel()
	commandsOfANode(t, map[string]func(*testing.T, string){
		"Explain_TellsWhoAskedAndWhyItFailed":         explainTells,
		"Filter_SelectsWhatIsChanged":                 filterSelectsWhatIsChanged,
		"Retry_RunsAFinalTaskAgain":                   retryRunsAgain,
		"Delete_ForgetsATask":                         deleteForgets,
		"History_TellsEveryEvent":                     historyTellsEveryEvent,
		"History_ComesInPages":                        historyComesInPages,
		"Cancel_OfARetryIsToldWithItsReason":          cancelOfARetryIsTold,
		"List_TellsSinceWhen":                         listTellsSinceWhen,
		"Version_IsThePositionOfTheLastEvent":         versionIsThePosition,
		"Shards_AreOwnedAndVerifyIsClean":             shardsAreOwned,
		"List_FiltersByStatusBehaviorNodeAndAffinity": listFilters,
	})
}

// commandsOfANode runs the tests, one after the other in any order, beside a node that serves in the directory which
// they are given: with its store in etcd, and again with its store in files, where commands ask by the API.
func commandsOfANode(t *testing.T, tests map[string]func(*testing.T, string)) {
	t.Helper()
	beside(t, tests)
	t.Run("InFiles", func(t *testing.T) {
		t.Parallel()
		beside(t, tests, "--store", "files")
	})
}

// beside runs the tests beside a node with further flags.
func beside(t *testing.T, tests map[string]func(*testing.T, string), args ...string) {
	t.Helper()
	dir := t.TempDir()
	flags := []string{"--exec-allow", "sh", "--name", "a", "--concurrency", "exec=2", "--checksum-root", "."}
	n := serve(t, dir, append(flags, args...)...)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, dir) })
	}
	if state := func() bool { n.stop(t); return n.cmd.ProcessState.Success() }(); !state {
		t.Errorf("ended with %s: %s", n.cmd.ProcessState, n.stderr.String())
	}
}

// inFiles reports whether the node that serves in a directory has its store in files.
func inFiles(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "taskledger-data", "format"))
	return err == nil
}

func submitPrintsTheIDAlone(t *testing.T, dir string) {
	if got := must(t, dir, "submit", "noop", "--id", "alone"); got != "alone" {
		t.Errorf("printed %q", got)
	}
	r := run(t, dir, "submit", "noop", "--wait")
	if id := strings.TrimSuffix(r.out, "\n"); r.code != 0 || id == "" || strings.ContainsAny(id, " \n") || r.err != "" {
		t.Errorf("printed %q, %q, code %d", r.out, r.err, r.code)
	}
}

func submitRepeatedUnderAKey(t *testing.T, dir string) {
	args := []string{"submit", "sleep", `{"duration":"1ms"}`, "--key", "order 4711", "--delay", "10ms", "-o", "json"}
	var first, again struct {
		ID               string
		Joined, Repeated bool
	}
	for i, v := range []any{&first, &again} {
		if err := json.Unmarshal([]byte(must(t, dir, args...)), v); err != nil {
			t.Fatalf("submit %d: %v", i, err)
		}
	}
	if first.ID == "" || first.Joined || first.Repeated || again.ID != first.ID || !again.Joined || !again.Repeated {
		t.Errorf("first %+v, again %+v", first, again)
	}
	args[2] = `{"duration":"2ms"}`
	if r := run(t, dir, args...); r.code != 5 || r.out != "" || !strings.Contains(r.err, "order 4711") || !strings.Contains(r.err, first.ID) {
		t.Errorf("another request: code %d, printed %q, %q", r.code, r.out, r.err)
	}
}

func submitReadsParameters(t *testing.T, dir string) {
	const params = `{"duration":"1ms"}`
	if err := os.WriteFile(filepath.Join(dir, "params.json"), []byte(params), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "submit", "sleep", "@params.json", "--wait", "--id", "from-file")
	cmd := command(t.Context(), dir, "submit", "sleep", "-", "--wait", "--id", "from-input")
	cmd.Stdin = strings.NewReader(params)
	if r := finish(t, cmd); r.code != 0 {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	for _, id := range []string{"from-file", "from-input"} {
		if h := must(t, dir, "history", id, "-o", "json"); !strings.Contains(h, `"params":{"duration":"1ms"}`) {
			t.Errorf("history of %s: %s", id, h)
		}
	}
}

// batch writes a file of requests.
func batch(t *testing.T, dir string, lines ...string) (file string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "requests.jsonl"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "requests.jsonl"
}

func submitBatchTellsOfEachLine(t *testing.T, dir string) {
	file := batch(t, dir, `{"behavior":"noop","id":"batch/1"}`, "", `{"behavior":"sleep","params":{"duration":"1ms"},"id":"batch/2","priority":3,"delay":"1ms"}`,
		`{"behavior":"noop","id":"batch/1"}`, `{"behavior":"noop"}`)
	all := objects(t, must(t, dir, "submit", "--batch", file, "-o", "json"))
	if len(all) != 4 {
		t.Fatalf("%d lines are told of, want 4: %v", len(all), all)
	}
	for i, line := range []float64{1, 3, 4, 5} {
		if all[i]["line"] != line || all[i]["id"] == "" || all[i]["joined"] != (i == 2) {
			t.Errorf("request %d is told as %v", i, all[i])
		}
	}
	cmd := command(t.Context(), dir, "submit", "--batch", "-", "--wait", "--key", "a batch", "--timeout", "1m")
	cmd.Stdin = strings.NewReader(strings.Repeat(`{"behavior":"sleep","params":{"duration":"1ms"}}`+"\n", 3))
	if r := finish(t, cmd); r.code != 0 || strings.Count(r.out, "/0")+strings.Count(r.out, "/1")+strings.Count(r.out, "/2") != 3 {
		t.Errorf("of a key: code %d, printed %q, %q", r.code, r.out, r.err)
	}
	again := batch(t, dir, strings.Repeat(`{"behavior":"sleep","params":{"duration":"1ms"}}`+"\n", 3))
	for _, o := range objects(t, must(t, dir, "submit", "--batch", again, "--key", "a batch", "-o", "json")) {
		if o["repeated"] != true {
			t.Errorf("repeated, it is told as %v", o)
		}
	}
}

func submitBatchWithAWrongLine(t *testing.T, dir string) {
	for i, row := range []struct{ line, says string }{
		{`{"behavior":"noop","id":"b c"}`, "line 2: id"},
		{`{"behavior":"noop","parms":1}`, "line 2: parms: the request has no such field"},
		{`{"behavior":"noop","priority":"high"}`, "line 2: priority: want a whole number, got the JSON type string"},
		{`{"behavior":7}`, "line 2: behavior: want a text, got the JSON type number"},
		{`[]`, "line 2: want an object, got the JSON type array"},
		{`{"behavior":"noop","key":""}`, "1 line is wrong, nothing is submitted: line 2: key is empty"},
		{`{"behavior":"noop"} {}`, "line 2: want one JSON object on a line"},
		{`{"behavior":"noop","priority":-1}`, "line 2: priority: -1"},
		{`{"behavior":"noop","delay":"soon"}`, "line 2: delay"},
		{`{"id":"x"}`, "line 2: behavior is missing"},
		{`{"behavior":"noop","id":""}`, "line 2: id is empty"},
		{`{"behavior":"sleep","params":{"duration":"1ms","drudge":1}}`, "line 2: "}, // its behavior refuses it
		{`nonsense`, "line 2: want a JSON object"},
	} {
		first, third := fmt.Sprintf("batch-wrong/%d-1", i), fmt.Sprintf("batch-wrong/%d-3", i)
		file := batch(t, dir, fmt.Sprintf(`{"behavior":"noop","id":%q}`, first), row.line, fmt.Sprintf(`{"behavior":"noop","id":%q}`, third))
		if r := run(t, dir, "submit", "--batch", file); r.code != 2 || !strings.Contains(r.err, row.says) {
			t.Errorf("%s: code %d, printed %q, want %q", row.line, r.code, r.err, row.says)
		}
		for _, id := range []string{first, third} {
			if r := run(t, dir, "get", id); r.code != 3 {
				t.Errorf("%s: task %s was submitted beside a wrong line", row.line, id)
			}
		}
		r := run(t, dir, "submit", "--batch", file, "--skip-bad")
		if !strings.Contains(r.err, "line 2") || !strings.Contains(r.out, first) || !strings.Contains(r.out, third) {
			t.Errorf("%s left out: code %d, printed %q, %q", row.line, r.code, r.out, r.err)
		}
	}
	many := batch(t, dir, strings.Repeat(`{"behavior":"noop"}`+"\n", 1001))
	if r := run(t, dir, "submit", "--batch", many, "--key", "k"); r.code != 2 || !strings.Contains(r.err, "requests: 1001 exceeds the limit of 1000") {
		t.Errorf("1,001 lines: code %d, printed %q", r.code, r.err)
	}
}

// What a filter selects is counted, and changed only with --yes.
func filterSelectsWhatIsChanged(t *testing.T, dir string) {
	file := batch(t, dir, strings.Repeat(`{"behavior":"noop","delay":"1h"}`+"\n", 7))
	must(t, dir, "submit", "--batch", file, "--key", "filter")
	affinity, _, _ := strings.Cut(objects(t, must(t, dir, "submit", "--batch", file, "--key", "filter", "-o", "json"))[0]["id"].(string), "/")
	of := []string{"--filter", "affinity=" + affinity, "--filter", "status=CREATED"}
	counted := run(t, dir, append([]string{"cancel", "-o", "json"}, of...)...)
	if rows := objects(t, counted.out); counted.code != 0 || len(rows) != 1 || rows[0]["tasks"] != 7.0 || !strings.Contains(counted.err, "7 tasks match") {
		t.Errorf("counted: code %d, printed %q, %q", counted.code, counted.out, counted.err)
	}
	for _, verb := range []string{"run-now", "cancel", "retry", "delete"} {
		filter := of
		if verb != "run-now" && verb != "cancel" {
			filter = of[:2]
		}
		if verb == "cancel" { // what run-now started may have ended: wait for it, and have it wait again
			for i := range 7 {
				must(t, dir, "wait", fmt.Sprintf("%s/%d", affinity, i))
			}
			filter = append([]string{"--reason", "cleared"}, of[:2]...)
		}
		r := run(t, dir, append([]string{verb, "--yes", "-o", "json"}, filter...)...)
		told := objects(t, r.out)
		if len(told) == 0 {
			t.Fatalf("%s: code %d, printed nothing, %q", verb, r.code, r.err)
		}
		last, want := told[len(told)-1], "changed"
		if verb == "cancel" { // they have ended
			want = "refused"
		}
		if last["matched"] != 7.0 || last[want] != 7.0 || (r.code == 0) != (want == "changed") {
			t.Errorf("%s: code %d, told %v, %q", verb, r.code, last, r.err)
		}
		if verb == "retry" {
			for i := range 7 {
				must(t, dir, "wait", fmt.Sprintf("%s/%d", affinity, i))
			}
		}
	}
	if out := must(t, dir, append([]string{"delete", "--yes"}, of...)...); !strings.Contains(out, "0        0") {
		t.Errorf("when nothing is left it prints %q", out)
	}
	if r := run(t, dir, "retry", "--yes", "--filter", "status=FAILURE", "--cursor", "garbled"); r.code != 2 || r.out != "" || !strings.Contains(r.err, "cursor") {
		t.Errorf("cursor of nothing: code %d, printed %q, said %q", r.code, r.out, r.err)
	}
	if r := run(t, dir, "retry", "--filter", "creator=a,b"); r.code != 0 || !strings.Contains(r.err, "0 tasks match") {
		t.Errorf("text with a comma: code %d, said %q", r.code, r.err)
	}
}

func submitWaitPrintsTheResult(t *testing.T, dir string) {
	out := must(t, dir, "submit", "exec", `{"program":"sh","args":["-c","echo hello"]}`, "--wait", "--id", "hello")
	id, text, _ := strings.Cut(out, "\n")
	var r struct{ Stdout string }
	if err := json.Unmarshal([]byte(text), &r); err != nil || id != "hello" || r.Stdout != "hello\n" {
		t.Errorf("printed %q, %v", out, err)
	}
	if got := must(t, dir, "wait", "hello"); got != text {
		t.Errorf("wait printed %q, want %q", got, text)
	}
}

func failedTaskIs1(t *testing.T, dir string) {
	r := run(t, dir, "submit", "checksum", `{"path":"no-such-file"}`, "--wait", "--id", "fails")
	if r.code != 1 || r.out != "fails\n" || !strings.Contains(r.err, "not-found") {
		t.Errorf("code %d, printed %q, %q", r.code, r.out, r.err)
	}
	r = run(t, dir, "wait", "fails", "-o", "json")
	var v struct {
		ID, Status string
		Error      struct {
			Attempt int
			Code    string
		}
	}
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || r.code != 1 || v.Status != "FAILURE" || v.Error.Code != "not-found" {
		t.Errorf("code %d, printed %q, %v", r.code, r.out, err)
	}
}

func wrongUsageIs2(t *testing.T, dir string) {
	for _, args := range [][]string{
		{"frobnicate"},
		{"submit"},
		{"submit", "noop", "{"},
		{"submit", "noop", "@no-such-file"},
		{"submit", "noop", "--at", "tomorrow"},
		{"submit", "noop", "--at", "2026-11-21T00:00:00Z", "--delay", "1s"},
		{"submit", "noop", "--priority", "-1"},
		{"submit", "noop", "--id", "no blanks"},
		{"submit", "--batch", "no-such-file"},
		{"submit", "noop", "--batch", "requests.jsonl"},
		{"retry", "--filter", "colour=red"},
		{"retry", "--filter", "status"},
		{"retry", "--filter", "status=failed"},
		{"retry", "some-task", "--filter", "status=FAILURE"},
		{"delete", "--yes"},
		{"cancel", "some-task", "--cursor", "x"},
		{"submit", "--batch", "requests.jsonl", "--id", "x"},
		{"submit", "noop", "--skip-bad"},
		{"get", "no blanks"},
		{"get", "x", "--no-such-flag"},
		{"get", "x", "-o", "xml"},
		{"list", "--status", "DONE"},
		{"list", "--substatus", "SUCCESS"},
		{"list", "--limit", "ten"},
		{"history", "x", "--limit", "-1"},
		{"history", "x", "--newest", "--states"},
		{"history", "x", "--cursor", "nonsense"},
		{"list", "--limit", "-1"},
		{"list", "--behavior", "No Behavior"},
		{"list", "--created-from", "yesterday"},
		{"list", "--created-from", "2026-11-23T00:00:00Z", "--created-to", "2026-11-23T00:00:00Z"},
		{"list", "--cursor", "none"},
		{"list", "--nats", "nats://127.0.0.1:1"},
		{"serve", "--slots", "many"},
		{"serve", "--concurrency", "no-such-behavior=1", "--join", "taskledger-data"},
		{"serve", "--ttl", "1s", "--join", "taskledger-data"},
		{"serve", "--join", "taskledger-data", "--etcd", "127.0.0.1:1"},
		{"bench", "--in-flight", "0"},
		{"submit", "noop", "--id", ""},
		{"submit", "noop", "--key", ""},
		{"submit", "noop", "--priority", "9223372"},
		{"submit", "noop", "--delay", "-1s"},
		{"serve", "--data", ""},
		{"list", "--data", ""},
		{"list", "--etcd", ""},
		{"list", "--status", ""},
		{"list", "--timeout", "-1s"},
		{"list", "--timeout", "0"},
		{"submit", "noop", "{\"a\":\"\xff\"}"},
		{"list", "--cluster", "a b"},
		{"serve", "--data", "new", "--cluster", "a b"},
		{"serve", "--data", "new", "--shards", "0"},
		{"serve", "--data", "new", "--shards", "3"},
		{"serve", "--data", "new", "--shards", "512"},
		{"serve", "--data", "new", "--slots", "-1"},
		{"serve", "--data", "new", "--grace", "-1s"},
		{"serve", "--data", "new", "--archive-replicas", "3"},
		{"serve", "--data", "new", "--archive-settle", "1m"},
		{"serve", "--data", "new", "--logs", "elsewhere"},
		{"serve", "--data", "new", "--log-bytes", "0"},
		{"serve", "--data", "new", "--log-age", "1ms"},
		{"serve", "--data", "new", "--log-replicas", "3"},
		{"serve", "--data", "new", "--logs", "none", "--log-age", "1h"},
		{"serve", "--data", "new", "--exec-allow", "no-such-program"},
		{"serve", "--data", "new", "--exec-allow", "./program"},
		{"serve", "--data", "new", "--checksum-root", "no-such-directory"},
		{"serve", "--data", "new", "--name", "a b\n"},
		{"help", "frobnicate"},
		{"completion", "tcsh"},
		{"bench", "--in-flight", "16385"},
	} {
		r := run(t, dir, args...)
		if r.code != 2 || r.out != "" || r.err == "" {
			t.Errorf("%q: code %d, printed %q, %q", args, r.code, r.out, r.err)
		}
		// What refuses the value of a flag names the flag.
		if n := len(args); n > 2 && strings.HasPrefix(args[n-2], "--") && args[n-2] != "--join" &&
			!strings.Contains(r.err, strings.TrimPrefix(args[n-2], "--")) {
			t.Errorf("%q: said %q", args, r.err)
		}
	}
}

func noSuchTaskIs3(t *testing.T, dir string) {
	for _, verb := range []string{"get", "explain", "delete"} {
		if r := run(t, dir, verb, "nobody"); r.code != 3 || !strings.Contains(r.err, "get --forgotten") {
			t.Errorf("%s: code %d, said %q", verb, r.code, r.err)
		}
	}
	for _, args := range [][]string{{"get", "nobody"}, {"wait", "nobody"}, {"cancel", "nobody"}, {"retry", "nobody"}, {"history", "nobody"}, {"explain", "nobody"}} {
		if r := run(t, dir, args...); r.code != 3 || r.out != "" && args[0] != "history" {
			t.Errorf("%q: code %d, printed %q, %q", args, r.code, r.out, r.err)
		}
	}
}

func timeOutIs4(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "later", "--delay", "1h")
	must(t, dir, "submit", "exec", `{"program":"sh","args":["-c","echo"]}`, "--id", "earlier", "--wait")
	r, within := result{}, time.Second
	for ; r.out == "" && within < time.Minute; within *= 2 { // a busy machine may need seconds to tell of the earlier one
		r = run(t, dir, "wait", "later", "earlier", "--timeout", within.String())
	}
	if r.out == "" || r.code != 4 || strings.Count(r.err, "\n") != 1 ||
		!strings.Contains(r.err, "no outcome within --timeout") || strings.Contains(r.err, "unavailable") {
		t.Errorf("within %s: code %d, %q", within/2, r.code, r.err)
	}
}

func cannotStartIs4(t *testing.T, dir string) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	write(t, filepath.Join(dir, "a-file"), "")
	for _, args := range [][]string{{"serve", "--data", "new", "--nats-port", port}, {"serve", "--data", "a-file"}, {"serve", "--join", "nowhere"}} {
		if r := run(t, dir, args...); r.code != 4 || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%q: code %d, %q", args, r.code, r.err)
		}
	}
}

func refusalIs5(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "over", "--wait")
	defer must(t, dir, "unpause", "noop")
	refused := [][]string{{"submit", "no-such-behavior"}, {"cancel", "over"}, {"run-now", "over"}, {"submit", "sleep", `{"duration":"1s"}`, "--id", "over"},
		{"pause", "no-such-behavior"}, {"pause", "noop", "no-such-behavior"}}
	if inFiles(dir) {
		refused = append(refused, []string{"repair"}, []string{"serve"})
	} else {
		refused = append(refused, []string{"serve", "--join", "taskledger-data", "--shards", "4"})
	}
	for _, args := range refused {
		if r := run(t, dir, args...); r.code != 5 || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%q: code %d, %q", args, r.code, r.err)
		}
	}
}

// objects returns the lines, each of which must be one object.
func objects(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var o map[string]any
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, o)
	}
	return all
}

func jsonIsOneObjectALine(t *testing.T, dir string) {
	must(t, dir, "submit", "sleep", `{"duration":"1ms"}`, "--id", "shape", "--priority", "7", "--wait")
	got := objects(t, must(t, dir, "get", "shape", "-o", "json"))
	if len(got) != 1 {
		t.Fatalf("%d objects", len(got))
	}
	for field, want := range map[string]any{"id": "shape", "behavior": "sleep", "status": "SUCCESS", "priority": 7.0, "attempt": 1.0,
		"failures": 0.0, "lost": 0.0, "runs": 1.0, "substatus": "final", "since": got[0]["ended_at"]} {
		if got[0][field] != want {
			t.Errorf("%s is %v, want %v", field, got[0][field], want)
		}
	}
	for _, field := range []string{"created_at", "started_at", "ended_at"} {
		text, _ := got[0][field].(string)
		if at, err := time.Parse(time.RFC3339, text); err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("%s is %q, %v", field, text, err)
		}
	}
	for _, args := range [][]string{{"list"}, {"nodes"}, {"shards"}, {"verify"}, {"explain", "shape"}, {"history", "shape"}, {"wait", "shape"}} {
		for _, o := range objects(t, must(t, dir, append(args, "-o", "json")...)) {
			for name := range o {
				if strings.ToLower(name) != name || strings.Contains(name, "-") {
					t.Errorf("%s: field %q", args[0], name)
				}
			}
		}
	}
}

// field reads one field of a task.
func field(t *testing.T, dir, id, name string) any {
	t.Helper()
	return objects(t, must(t, dir, "get", id, "-o", "json"))[0][name]
}

func delayedWaitsUntilRunNow(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "delayed", "--delay", "1h")
	if why := must(t, dir, "explain", "delayed"); !strings.Contains(why, "scheduled") {
		t.Errorf("explained: %s", why)
	}
	must(t, dir, "run-now", "delayed")
	must(t, dir, "wait", "delayed")
}

func suspendedDoesNotStart(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "held", "--delay", "1h")
	must(t, dir, "suspend", "held")
	must(t, dir, "run-now", "held")
	if why := must(t, dir, "explain", "held"); !strings.Contains(why, "suspended") {
		t.Errorf("explained: %s", why)
	}
	if r := run(t, dir, "resume", "held"); r.code != 0 || r.err != "" {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	must(t, dir, "wait", "held")
	if r := run(t, dir, "resume", "held"); r.code != 0 || !strings.Contains(r.err, "held was not suspended") {
		t.Errorf("resumed again: code %d, %q", r.code, r.err)
	}
}

// What people read of tasks that do not run as they should, word by word.
func explainTells(t *testing.T, dir string) {
	const when = `[0-9T:.-]+Z`
	who := `[^ ]+@[^ ]+`
	if inFiles(dir) { // the API knows the user of the machine by a name of its own
		who = "local"
	}
	for _, c := range []struct {
		id      string
		make    func(id string)
		explain string // the text of the explanation
		row     string // of the list: status, substatus, attempts, node, error
	}{
		{
			"texts-final",
			func(id string) {
				run(t, dir, "submit", "checksum", `{"path":"no-such-file"}`, "--wait", "--id", id)
			},
			`it has ended with FAILURE: attempt 1 of 25 failed: not-found: .*no-such-file.*`,
			`FAILURE final 1 a not-found: .*no-such-file.*`,
		},
		{
			"texts-cancelled",
			func(id string) {
				must(t, dir, "submit", "noop", "--id", id, "--delay", "1h")
				must(t, dir, "cancel", id, "--reason", "no longer wanted")
			},
			`it was cancelled by ` + who + `: no longer wanted`,
			`FAILURE cancelled 0 - cancelled: no longer wanted`,
		},
		{
			"texts-suspended",
			func(id string) {
				must(t, dir, "submit", "noop", "--id", id, "--delay", "1h")
				must(t, dir, "suspend", id, "--reason", "the disk is full")
			},
			who + ` suspended the task: the disk is full`,
			`CREATED suspended suspended 0 - -`,
		},
		{
			"texts-retry",
			func(id string) {
				must(t, dir, "submit", "exec", `{"program":"sh","args":["-c","exit 3"]}`, "--id", id)
				fails := func() bool { return field(t, dir, id, "status") == "FAILURE" }
				eventually(t, "it has failed", fails)
				must(t, dir, "suspend", id, "--reason", "enough")
				eventually(t, "it waits for its retry", fails)
			},
			who + ` suspended the task: enough; attempt [0-9]+ of 25 failed: exit: .*exit status 3.*`,
			`FAILURE suspended suspended [0-9]+ a exit: .*exit status 3.*`,
		},
		{
			"texts-running",
			func(id string) {
				must(t, dir, "submit", "sleep", `{"duration":"1h"}`, "--id", id)
				eventually(t, "it runs", func() bool { return field(t, dir, id, "substatus") == "running" })
			},
			`attempt 1 of 25 runs on node a \(a-[a-z0-9]+\)`,
			`RUNNING running 1 a -`,
		},
		{
			"texts-due",
			func(id string) { must(t, dir, "submit", "noop", "--id", id, "--delay", "1h") },
			`it is due at ` + when,
			`CREATED scheduled 0 - -`,
		},
	} {
		c.make(c.id)
		text := objects(t, must(t, dir, "explain", c.id, "-o", "json"))[0]["text"].(string)
		if !regexp.MustCompile("^" + c.explain + "$").MatchString(text) {
			t.Errorf("%s is explained as %q, want %s", c.id, text, c.explain)
		}
		cells := listed(t, dir, c.id)
		row := strings.Join([]string{cells["STATUS"], cells["SUBSTATUS"], cells["ATTEMPT"], cells["NODE"], cells["ERROR"]}, " ")
		if !regexp.MustCompile("^" + c.row + "$").MatchString(row) {
			t.Errorf("%s is listed as %q, want %s", c.id, row, c.row)
		}
	}
	must(t, dir, "cancel", "texts-running", "--reason", "it takes too long")
	eventually(t, "it has ended", func() bool { return field(t, dir, "texts-running", "status") == "FAILURE" })
	if text := must(t, dir, "explain", "texts-running"); !regexp.MustCompile(`it was cancelled by ` + who + `: it takes too long`).MatchString(text) {
		t.Errorf("of a cancelled attempt: %s", text)
	}
	must(t, dir, "cancel", "texts-retry", "texts-due", "texts-suspended")
}

// listed is the row of a task in the table of list, by the names of the columns.
func listed(t *testing.T, dir, id string) map[string]string {
	t.Helper()
	lines := strings.Split(must(t, dir, "list", "--affinity", id), "\n")
	columns := regexp.MustCompile(" {2,}")
	row, cells := map[string]string{}, columns.Split(lines[1], -1)
	for i, name := range columns.Split(lines[0], -1) {
		if i < len(cells) {
			row[name] = strings.TrimSpace(cells[i])
		}
	}
	return row
}

func retryRunsAgain(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "again", "--wait")
	must(t, dir, "retry", "again")
	must(t, dir, "wait", "again")
	if got := field(t, dir, "again", "runs"); got != 2.0 {
		t.Errorf("%v runs", got)
	}
}

func pauseKeepsFromStarting(t *testing.T, dir string) {
	must(t, dir, "pause", "http", "--reason", "a migration")
	must(t, dir, "submit", "http", `{"url":"http://127.0.0.1:1/"}`, "--id", "paused")
	eventually(t, "the task waits because its behavior is paused", func() bool {
		return strings.Contains(must(t, dir, "explain", "paused"), "paused")
	})
	paused := objects(t, must(t, dir, "settings", "-o", "json"))
	if len(paused) != 1 || paused[0]["behavior"] != "http" || paused[0]["reason"] != "a migration" || paused[0]["by"] == "" || paused[0]["since"] == "" {
		t.Errorf("settings: %v", paused)
	}
	for _, again := range []struct{ verb, tells string }{{"pause", "was paused already"}, {"unpause", ""}, {"unpause", "was not paused"}} {
		if r := run(t, dir, again.verb, "http"); r.code != 0 || !strings.Contains(r.err, again.tells) || again.tells == "" && r.err != "" {
			t.Errorf("%s: code %d, %q, want %q", again.verb, r.code, r.err, again.tells)
		}
	}
	if got := objects(t, must(t, dir, "settings", "-o", "json")); len(got) != 0 {
		t.Errorf("settings after the pause: %v", got)
	}
	var replayed []string
	for _, e := range objects(t, must(t, dir, "replay", "--record", "settings")) {
		replayed = append(replayed, fmt.Sprint(e["record"], " ", e["kind"]))
	}
	if len(replayed) < 2 || !slices.Equal(replayed[len(replayed)-2:], []string{"settings Paused", "settings Unpaused"}) {
		t.Errorf("replayed %q", replayed)
	}
	if r := run(t, dir, "replay", "--record", "tasks"); r.code != 2 || !strings.Contains(r.err, "want task, journal, settings") {
		t.Errorf("another record: code %d, %q", r.code, r.err)
	}
	eventually(t, "the task has run and its address was refused", func() bool {
		return field(t, dir, "paused", "status") == "FAILURE"
	})
	must(t, dir, "pause", "of-tomorrow", "--force")
	for _, tells := range []string{"was paused, and is no longer; no node runs of-tomorrow", "was not paused; no node runs of-tomorrow"} {
		if r := run(t, dir, "unpause", "of-tomorrow"); r.code != 0 || !strings.Contains(r.err, tells) {
			t.Errorf("code %d, %q, want %q", r.code, r.err, tells)
		}
	}
}

// One wrong id must not leave half of the others done.
func wrongIDChangesNothing(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "beside", "--delay", "1h")
	for _, verb := range []string{"cancel", "suspend", "run-now", "delete"} {
		if r := run(t, dir, verb, "beside", "b c"); r.code != 2 || !strings.Contains(r.err, `"b c"`) {
			t.Errorf("%s: code %d, %q", verb, r.code, r.err)
		}
	}
	if r := run(t, dir, "cancel", "beside", "--reason", strings.Repeat("r", 257)); r.code != 2 || !strings.Contains(r.err, "--reason: 257 exceeds the limit of 256 bytes") {
		t.Errorf("a long reason: code %d, %q", r.code, r.err)
	}
	if kinds := must(t, dir, "history", "beside"); strings.Count(kinds, "\n") != 1 {
		t.Errorf("something has changed: %s", kinds)
	}
}

func submitSaysThatItJoins(t *testing.T, dir string) {
	args := []string{"submit", "noop", "--id", "meeting", "--delay", "1h"}
	for _, c := range []struct {
		key   []string
		tells string
	}{{nil, ""}, {nil, "joined"}, {[]string{"--key", "k"}, "joined"}, {[]string{"--key", "k"}, "submitted before"}} {
		r := run(t, dir, append(args, c.key...)...)
		if r.code != 0 || r.out != "meeting\n" || !strings.Contains(r.err, c.tells) || (r.err == "") != (c.tells == "") {
			t.Errorf("%q: code %d, printed %q, said %q, want %q", c.key, r.code, r.out, r.err, c.tells)
		}
	}
}

func deleteForgets(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "gone", "--wait")
	must(t, dir, "delete", "gone")
	if r := run(t, dir, "get", "gone"); r.code != 3 || !strings.Contains(r.err, "get --forgotten") {
		t.Errorf("code %d, %q", r.code, r.err)
	}
	if r := run(t, dir, "get", "gone", "--forgotten"); r.code != 3 || !strings.Contains(r.err, "it was deleted") {
		t.Errorf("looked for: code %d, %q", r.code, r.err)
	}
}

func historyTellsEveryEvent(t *testing.T, dir string) {
	must(t, dir, "submit", "sleep", `{"duration":"1h"}`, "--id", "told")
	must(t, dir, "cancel", "told", "--reason", "enough")
	if r := run(t, dir, "wait", "told"); r.code != 1 {
		t.Errorf("code %d: %s", r.code, r.err)
	}
	var kinds []string
	for i, e := range objects(t, must(t, dir, "history", "told", "-o", "json")) {
		kinds = append(kinds, e["kind"].(string))
		if e["seq"] != float64(i+1) || e["task"] != "told" {
			t.Errorf("event %d: %v", i, e)
		}
		if data, _ := e["data"].(map[string]any); e["kind"] == "CancelRequested" && data["reason"] != "enough" {
			t.Errorf("reason: %v", data)
		}
	}
	if want := []string{"Created", "Started", "CancelRequested", "Failed"}; !slices.Equal(kinds, want) {
		t.Errorf("events %v, want %v", kinds, want)
	}
}

// A task that waits for a retry loses the retry, and keeps its failure.
func cancelOfARetryIsTold(t *testing.T, dir string) {
	must(t, dir, "submit", "exec", `{"program":"sh","args":["-c","exit 3"]}`, "--id", "tried")
	eventually(t, "it has failed once", func() bool { return field(t, dir, "tried", "status") == "FAILURE" })
	eventually(t, "it waits for its retry, and may not start meanwhile", func() bool {
		return run(t, dir, "suspend", "tried").code == 0 && field(t, dir, "tried", "status") == "FAILURE"
	})
	must(t, dir, "cancel", "tried", "--reason", "no use")
	all := objects(t, must(t, dir, "history", "tried", "-o", "json"))
	last := all[len(all)-1]
	if data, _ := last["data"].(map[string]any); last["kind"] != "Rescheduled" || data["reason"] != "no use" {
		t.Errorf("its last event is %v", last)
	}
	if r := run(t, dir, "wait", "tried"); r.code != 1 || strings.Contains(r.err, "cancelled") {
		t.Errorf("code %d: %q", r.code, r.err)
	}
}

func historyComesInPages(t *testing.T, dir string) {
	must(t, dir, "submit", "sleep", `{"duration":"1ms"}`, "--id", "paged", "--wait")
	kinds := func(r result) string {
		t.Helper()
		if r.code != 0 {
			t.Fatalf("exit code %d: %s", r.code, r.err)
		}
		var kinds []string
		for _, e := range objects(t, r.out) {
			kinds = append(kinds, e["kind"].(string))
		}
		return strings.Join(kinds, " ")
	}
	page := run(t, dir, "history", "paged", "--newest", "--limit", "2", "-o", "json")
	_, cursor, follows := strings.Cut(strings.TrimSpace(page.err), "more follows: --cursor ")
	if got := kinds(page); got != "Succeeded Started" || !follows {
		t.Errorf("newest two: %s, said %q", got, page.err)
	}
	page = run(t, dir, "history", "paged", "--newest", "--limit", "2", "--cursor", cursor, "-o", "json")
	if got := kinds(page); got != "Created" || page.err != "" {
		t.Errorf("the rest: %s, said %q", got, page.err)
	}
	if r := run(t, dir, "history", "paged", "--cursor", cursor); r.code != 2 || !strings.Contains(r.err, "cursor: of a history newest first") {
		t.Errorf("cursor of the other order: code %d, %q", r.code, r.err)
	}
	var statuses []string
	for _, e := range objects(t, must(t, dir, "history", "paged", "--states", "-o", "json")) {
		statuses = append(statuses, e["state"].(map[string]any)["status"].(string))
	}
	if want := []string{"CREATED", "RUNNING", "SUCCESS"}; !slices.Equal(statuses, want) {
		t.Errorf("statuses %v, want %v", statuses, want)
	}
	if table := must(t, dir, "history", "paged", "--states"); !strings.Contains(table, "SUBSTATUS") || strings.Count(table, "\n") != 3 {
		t.Errorf("table: %s", table)
	}
}

// Cells have two blanks between them, a time has one within.
func listTellsSinceWhen(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "since/1", "--wait") // it is final since its end
	lines := strings.Split(must(t, dir, "list", "--affinity", "since"), "\n")
	cells := regexp.MustCompile(" {2,}")
	names, row := cells.Split(lines[0], -1), cells.Split(lines[1], -1)
	since, ended := slices.Index(names, "SINCE"), slices.Index(names, "ENDED")
	if since < 0 || ended < 0 || len(row) != len(names) || row[since] == "-" || row[since] != row[ended] {
		t.Fatalf("of a task that has ended: %q", lines)
	}
	if got := must(t, dir, "state", "since/1", "--at", row[ended], "-o", "json"); !strings.Contains(got, `"status":"SUCCESS"`) {
		t.Errorf("at the time of the table, %s: %s", row[ended], got)
	}
	if got := must(t, dir, "replay", "--task", "since/1", "--since", row[ended]); !strings.Contains(got, "Succeeded") {
		t.Errorf("from the time of the table on, %s: %s", row[ended], got)
	}
}

func versionIsThePosition(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "versioned", "--wait")
	all := objects(t, must(t, dir, "history", "versioned", "-o", "json"))
	want := all[len(all)-1]["position"]
	if got := field(t, dir, "versioned", "version"); got != want {
		t.Errorf("get: %v, want %v", got, want)
	}
	if listed := objects(t, must(t, dir, "list", "--affinity", "versioned", "-o", "json")); len(listed) != 1 || listed[0]["version"] != want {
		t.Errorf("list: %v, want %v", listed, want)
	}
	if then := objects(t, must(t, dir, "state", "versioned", "--seq", "1", "-o", "json")); then[0]["version"] != all[0]["position"] {
		t.Errorf("state: %v, want %v", then[0]["version"], all[0]["position"])
	}
}

func shardsAreOwned(t *testing.T, dir string) {
	shards := objects(t, must(t, dir, "shards", "-o", "json"))
	if len(shards) != 16 {
		t.Errorf("%d shards", len(shards))
	}
	for _, s := range shards {
		if s["node"] != "a" {
			t.Errorf("shard %v is owned by %v", s["shard"], s["node"])
		}
	}
	if !inFiles(dir) { // whose API has no route for it
		if strays := objects(t, must(t, dir, "repair", "--yes", "-o", "json")); len(strays) > 0 {
			t.Errorf("there is something to repair: %v", strays)
		}
	}
	for _, v := range objects(t, must(t, dir, "verify", "-o", "json")) {
		if v["problem"] != nil {
			t.Errorf("shard %v: %v", v["shard"], v["problem"])
		}
	}
}

func completionOffers(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "complete-me")
	for _, c := range []struct {
		args []string
		want string
	}{{[]string{"__complete", "submit", ""}, "noop"}, {[]string{"__complete", "get", ""}, "complete-me"}, {[]string{"__complete", "ver"}, "verify"}} {
		if got := must(t, dir, c.args...); !strings.Contains(got, c.want) {
			t.Errorf("%q offers %q", c.args, got)
		}
	}
	if script := must(t, dir, "completion", "bash"); !strings.Contains(script, "__complete") {
		t.Errorf("script: %.80s", script)
	}
}

func serveTwiceIsRefused(t *testing.T, dir string) {
	args := []string{"serve"}
	if inFiles(dir) {
		args = append(args, "--store", "files")
	}
	if r := run(t, dir, args...); r.code != 5 || !strings.Contains(r.err, "in use") || strings.Count(r.err, "\n") != 1 {
		t.Errorf("code %d: %q", r.code, r.err)
	}
}

func listFilters(t *testing.T, dir string) {
	must(t, dir, "submit", "noop", "--id", "group/done", "--wait")
	must(t, dir, "submit", "sleep", `{"duration":"1h"}`, "--id", "group/runs")
	for _, c := range []struct {
		args []string
		want []any
	}{
		{[]string{"--affinity", "group"}, []any{"group/runs", "group/done"}},
		{[]string{"--affinity-prefix", "gro", "--behavior", "noop"}, []any{"group/done"}},
		{[]string{"--affinity", "group", "--creator", "nobody"}, nil},
		{[]string{"--affinity", "group", "--substatus", "running"}, []any{"group/runs"}},
		{[]string{"--affinity", "group", "--ended-from", "2020-01-01T00:00:00Z"}, []any{"group/done"}},
		{[]string{"--affinity", "group", "--created-to", "2020-01-01T00:00:00Z"}, nil},
		{[]string{"--affinity", "group", "--status", "SUCCESS"}, []any{"group/done"}},
		{[]string{"--affinity", "group", "--behavior", "sleep"}, []any{"group/runs"}},
		{[]string{"--affinity", "group", "--node", "a"}, []any{"group/runs"}},
		{[]string{"--affinity", "group", "--node", "b-aaaaaaaaaa"}, nil},
		{[]string{"--affinity", "group", "--limit", "1"}, []any{"group/runs"}},
	} {
		var ids []any
		for _, o := range objects(t, must(t, dir, append([]string{"list", "-o", "json"}, c.args...)...)) {
			ids = append(ids, o["id"])
		}
		if !slices.Equal(ids, c.want) {
			t.Errorf("%q lists %v, want %v", c.args, ids, c.want)
		}
	}
	first := run(t, dir, "list", "--affinity", "group", "--limit", "1")
	_, cursor, told := strings.Cut(strings.TrimSpace(first.err), "--cursor ")
	if second := must(t, dir, "list", "--affinity", "group", "--cursor", cursor); !told || !strings.Contains(second, "group/done") || strings.Contains(second, "group/runs") {
		t.Errorf("after %q the list goes on with %q", first.err, second)
	}
	if r := run(t, dir, "list", "--affinity", "other", "--cursor", cursor); r.code != 2 || !strings.Contains(r.err, "another filter") {
		t.Errorf("cursor of another filter: code %d: %q", r.code, r.err)
	}
	counted := map[any]any{}
	for _, o := range objects(t, must(t, dir, "counts", "-o", "json")) {
		counted[fmt.Sprint(o["behavior"], " ", o["substatus"])] = o["tasks"]
	}
	if running, _ := counted["sleep running"].(float64); running < 1 {
		t.Errorf("counts %v, want a sleep that runs", counted)
	}
	if r := run(t, dir, "list", "--node", "b"); r.code != 2 || !strings.Contains(r.err, "no node of that name") {
		t.Errorf("code %d: %q, want that there is no node b", r.code, r.err)
	}
	if r := run(t, dir, "cancel", "group/runs"); r.code != 0 {
		t.Errorf("cancel: %s", r.err)
	}
}
