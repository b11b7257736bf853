package ui_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"taskledger/api/operations"
	"taskledger/api/ui"
	"taskledger/store"
	"taskledger/task"
)

func TestTasks_AreFoundByIDAndByTheBeginningOfAnAffinity(t *testing.T) {
	s := serve(t)
	s.submit("noop", "tenant.a/1", "{}")
	s.submit("noop", "tenant.b/1", "{}")
	s.submit("noop", "other", "{}")
	got := s.want(s.get("viewer", "/ui/tasks?find=tenant.a%2F1"), 303)
	if to := got.header.Get("Location"); to != "/ui/tasks/tenant.a~1" {
		t.Error(to)
	}
	s.want(s.get("viewer", "/ui/tasks/tenant.a~1"), 200, "tenant.a/1", "SUCCESS", "attempt 1")
	got = s.want(s.get("viewer", "/ui/tasks?find=tenant."), 200, "tenant.a/1", "tenant.b/1", `value="tenant."`)
	s.wantNot(got, `href="/ui/tasks/other"`)
	s.want(s.get("viewer", "/ui/tasks?find=nothing"), 200, "No task matches")
}

// The search box says itself what is wrong with it, and no other field does.
func TestTasks_TheSearchBoxSaysWhatIsWrongWithIt(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a/1", "{}")
	for query, says := range map[string]string{
		"find=a%2F99":                      "no node has a task a/99 in memory",
		"find=a%2Fb%2Fc":                   "there is no task a/b/c",
		"find=a&affinity-prefix=a":         "want it or affinity-prefix, not both",
		"find=" + strings.Repeat("x", 200): "",
	} {
		got := s.want(s.get("operator", "/ui/tasks?"+query), 200, `id="w-find"`, `aria-describedby="w-find"`, says)
		s.wantNot(got, `id="w-affinity-prefix"`, "No task matches", `href="/ui/tasks/a~1"`, `name="operation" value="cancel"`)
		s.want(s.get("viewer", "/ui/tasks.jsonl?"+query), 400, "find")
	}
	s.want(s.get("viewer", "/ui/tasks?find=a%2F1"), 303)
}

// What was typed stays where it was, and says what is wrong with it.
func TestTasks_KeepAHalfTypedFilterAndNameItsField(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	for field, text := range map[string]string{
		"status": "DON", "substatus": "x", "created-from": "yesterday", "behavior": "No Behavior", "affinity": "a/b", "node": "x",
	} {
		got := s.want(s.get("viewer", "/ui/tasks?"+url.Values{field: {text}, "creator": {"ada"}}.Encode()), 200,
			`aria-invalid="true"`, `id="w-`+field+`"`, `value="ada"`, text)
		s.wantNot(got, "No task matches")
		got = s.want(s.get("operator", "/ui/tasks?"+url.Values{field: {text}}.Encode()), 200, "Mend the filter first.",
			"<li>tasks: not asked for, the filter is wrong</li>")
		s.wantNot(got, "Set a field of the filter")
	}
	s.wantNot(s.want(s.get("operator", "/ui/tasks"), 200, "Set a field of the filter"), "Mend the filter")
	s.want(s.get("viewer", "/ui/tasks?colour=red"), 400, "colour")
	s.want(s.get("viewer", "/ui/tasks?status=SUCCESS&status=FAILURE"), 400, "status", "more than once")
	s.want(s.get("viewer", "/ui/tasks?cursor=old"), 200, "<li>cursor: ")
}

func TestTasks_ComeInPagesThatOneCanDownload(t *testing.T) {
	s := serve(t)
	for i := range 60 {
		s.begin("noop", fmt.Sprintf("n%d", i), "{}")
	}
	seen := map[string]bool{}
	pages := 0
	for path := "/ui/tasks?behavior=noop"; path != ""; pages++ {
		got := s.want(s.get("viewer", path), 200)
		down := strings.Replace(path, "/ui/tasks", "/ui/tasks.jsonl", 1)
		for line := range strings.Lines(s.want(s.get("viewer", down), 200).text) {
			var is task.Task
			if err := json.Unmarshal([]byte(line), &is); err != nil || !strings.Contains(got.text, `id="t-`+string(is.ID)+`"`) {
				t.Fatalf("%v: %s", err, line)
			}
			seen[string(is.ID)] = true
		}
		_, next, more := strings.Cut(got.text, `href="/ui/tasks?behavior=noop&amp;cursor=`)
		if path = ""; more && strings.Contains(got.text, "Older tasks") {
			cursor, _, _ := strings.Cut(next, `"`)
			path = "/ui/tasks?behavior=noop&cursor=" + cursor
		}
	}
	if len(seen) != 60 || pages < 2 {
		t.Errorf("%d tasks on %d pages", len(seen), pages)
	}
}

func TestTasks_AreCountedByStatusForTheBehaviorOfTheFilter(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	s.submit("noop", "b", "{}")
	s.submit("fails", "c", `"why"`)
	s.want(s.get("viewer", "/ui/tasks?creator=ada&cursor="), 200,
		`href="/ui/tasks?creator=ada&amp;status=SUCCESS">SUCCESS 2</a>`, `>FAILURE 1</a>`, `>CREATED 0</a>`, "of all behaviors")
	s.want(s.get("viewer", "/ui/tasks?behavior=fails&status=FAILURE"), 200, `>SUCCESS 0</a>`,
		`href="/ui/tasks?behavior=fails&amp;status=FAILURE" aria-current="true">FAILURE 1</a>`, `href="/ui/tasks?behavior=fails">any status`)
}

func TestTasks_ShowTheColumnsThatOneChooses(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	got := s.want(s.get("viewer", "/ui/tasks?column=creator&column=ended"), 200, `data-label="creator"`, `data-label="ended"`, "ada")
	s.wantNot(got, `data-label="substatus"`)
	s.want(s.get("viewer", "/ui/tasks"), 200, `data-label="substatus"`)
}

// A row says once that its task is suspended, and parts what has been done from the note on it.
func TestTasks_SayEachThingOnce(t *testing.T) {
	s := serve(t)
	s.asleep("a/1")
	s.want(s.do(s.get("operator", "/ui/tasks/a~1"), "a/1", "suspend", ""), 303)
	const status = `<span class="status s-CREATED">CREATED</span>`
	s.want(s.get("viewer", "/ui/tasks"), 200, status+"</span>", `data-label="substatus">suspended<`)
	s.want(s.get("viewer", "/ui/tasks?column=status"), 200, status+" suspended</span>")
	with := task.Task{ID: "b", Behavior: "noop", Status: task.Running, Substatus: task.SubRunning}
	without := with
	with.Progress, without.Progress = &task.Progress{Done: 65, Total: 99, Note: "bucket 1"}, &task.Progress{Done: 7}
	page := task.Page{Tasks: []task.Task{with, without}}
	other := serveClient(t, queueing{operations.Direct{Client: s.node.Client}, []task.Page{page}}, ui.Config{})
	other.want(other.get("viewer", "/ui/tasks?column=progress"), 200,
		`progress">65 of 99, <bdi>bucket 1</bdi><`, `progress">7<`)
}

// A download that lacks the tasks of a shard says so in its last line, as the page does.
func TestTasks_DownloadNamesTheShardsThatItLacks(t *testing.T) {
	s := serve(t)
	page := task.Page{
		Tasks:   []task.Task{{ID: "a", Behavior: "noop", Status: task.Created, Substatus: task.SubReady}},
		Missing: []task.Missing{{Shard: 3, Err: store.ErrUnavailable}},
	}
	other := serveClient(t, queueing{operations.Direct{Client: s.node.Client}, []task.Page{page}}, ui.Config{})
	got := other.want(other.get("viewer", "/ui/tasks.jsonl"), 200, `"id":"a"`)
	lines := strings.Split(strings.TrimSpace(got.text), "\n")
	var last struct {
		Missing []struct{ Shard int }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 2 ||
		len(last.Missing) != 1 || last.Missing[0].Shard != 3 {
		t.Errorf("%v: %s", err, got.text)
	}
}
