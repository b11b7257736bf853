package api_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"taskledger/api/fieldtext"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/events"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/work/progress"
)

func TestOpenAPI_DescribesEveryOperationParameterHeaderAndField(t *testing.T) {
	_, d := documented(t)
	sentence := regexp.MustCompile(`^[A-Z].*[^ .]\.$`)
	describes := func(text, what string) {
		if !sentence.MatchString(text) {
			t.Errorf("%s has no sentence that describes it: %q", what, text)
		}
	}
	headers := func(of string, r *response) {
		describes(r.Description, of)
		for name, h := range r.Headers {
			describes(h.Description, of+": header "+name)
			if h.Schema == nil || h.Schema.Type == nil {
				t.Errorf("%s: header %s has no type", of, name)
			}
		}
		for media, content := range r.Content {
			if content.Schema == nil {
				t.Errorf("%s: %s has no schema", of, media)
			}
		}
	}
	d.each(func(name string, op *operation) {
		if op.Summary == "" {
			t.Errorf("%s has no summary", name)
		}
		describes(op.Description, name)
		for _, p := range op.Parameters {
			describes(p.Description, name+": "+p.Name)
			if p.Schema == nil || p.Schema.Type == nil {
				t.Errorf("%s: %s has no type", name, p.Name)
			}
		}
		if op.RequestBody != nil {
			describes(op.RequestBody.Description, name+": body")
		}
		for status, r := range op.Responses {
			if r.Ref == "" {
				headers(name+": "+status, r)
			}
		}
	})
	for name, r := range d.Components.Responses {
		headers(name, r)
	}
	for name, is := range d.Components.SecuritySchemes {
		describes(is.Description, name)
	}
	for _, tag := range d.Tags {
		describes(tag.Description, tag.Name)
	}
	texts := fieldtext.Read()
	unused := maps.Clone(texts)
	delete(unused, "*")
	for name, s := range d.Components.Schemas {
		describes(s.Description, name)
		of := strings.TrimSuffix(name, "Input")
		delete(unused, of)
		for field, is := range s.Properties {
			describes(is.Description, name+"."+field)
			_, as := texts.Field(of, field)
			delete(unused, as)
		}
	}
	for name, text := range unused {
		t.Errorf("%s describes nothing that the document has: %s", name, text)
	}
	for name, text := range texts {
		if !regexp.MustCompile(`^[A-Z][^.]*[^ .]([^ ]\.[^ ][^.]*)*\.$`).MatchString(text) {
			t.Errorf("%s: want one sentence, not %q", name, text)
		}
	}
}

// A problem of every operation has the form that it has on the way, and the headers that tell what to do.
func TestOpenAPI_TellsTheProblemsOfEveryOperation(t *testing.T) {
	s, d := documented(t)
	d.each(func(name string, op *operation) {
		_, path, _ := strings.Cut(name, " ")
		want := "Problem"
		switch {
		case strings.HasPrefix(path, "/store/"):
			want = "StoreErrors"
		case strings.HasPrefix(path, "/sync/"):
			want = "SyncFailure"
		}
		for _, status := range []string{"4XX", "5XX"} {
			if r := op.Responses[status]; r == nil || r.Ref != "#/components/responses/"+want {
				t.Errorf("%s: %s is %+v, want %s", name, status, r, want)
			}
		}
	})
	for name, r := range d.Components.Responses {
		for media, content := range r.Content {
			if content.Schema.Ref != "#/components/schemas/"+name || !strings.HasSuffix(media, "json") {
				t.Errorf("%s is %s of %q", name, media, content.Schema.Ref)
			}
		}
	}
	told := d.Components.Responses["Problem"].Headers
	for header, got := range map[string]answer{
		"Www-Authenticate": s.want(s.send("", "GET", "/v1/tasks", nil), 401, ""),
		"Allow":            s.want(s.send("viewer", "PUT", "/v1/tasks", nil), 405, ""),
	} {
		if got.header.Get(header) == "" || !slices.ContainsFunc(slices.Collect(maps.Keys(told)), func(name string) bool {
			return strings.EqualFold(name, header)
		}) {
			t.Errorf("header %s: %v, documented %v", header, got.header, told)
		}
	}
	if told["Retry-After"] == nil {
		t.Error("no header Retry-After")
	}
}

func TestOpenAPI_TellsTheHeadersOfAnswers(t *testing.T) {
	s, d := documented(t)
	told := func(op *operation, got answer) {
		t.Helper()
		is := op.Responses[fmt.Sprint(got.status)]
		for _, header := range []string{"ETag", "Location", "Retry-After"} {
			if has := is != nil && is.Headers[header] != nil; has != (got.header.Get(header) != "") {
				t.Errorf("%s, %d: header %s is documented: %t; %v", op.OperationID, got.status, header, has, got.header)
			}
		}
	}
	submit, show := d.Paths["/v1/tasks"]["post"], d.Paths["/v1/tasks/{id}"]["get"]
	waits := `{"behavior":"gate","params":"x","id":"waits"}`
	told(submit, s.want(s.send("submitter", "POST", "/v1/tasks", waits), 202, ""))
	told(submit, s.want(s.send("submitter", "POST", "/v1/tasks?wait=60s", `{"behavior":"noop","id":"ends"}`), 200, ""))
	got := s.want(s.send("viewer", "GET", "/v1/tasks/ends", nil), 200, "")
	told(show, got)
	told(show, s.want(s.send("viewer", "GET", "/v1/tasks/ends", nil, "If-None-Match", got.header.Get("ETag")), 304, ""))
	told(show, s.want(s.send("viewer", "GET", "/v1/tasks/waits?wait=1ms", nil), 202, ""))
	set := `{"behavior":"noop","cron":"0 0 0 1 1 ?"}`
	schedule, run := d.Paths["/v1/schedules/{name}"], d.Paths["/v1/schedules/{name}/run"]
	told(schedule["put"], s.want(s.send("submitter", "PUT", "/v1/schedules/a", set), 201, ""))
	told(schedule["put"], s.want(s.send("submitter", "PUT", "/v1/schedules/a", set), 200, ""))
	told(schedule["get"], s.want(s.send("viewer", "GET", "/v1/schedules/a", nil), 200, ""))
	told(run["post"], s.want(s.send("submitter", "POST", "/v1/schedules/a/run", nil), 202, ""))
}

// Whoever generates a client must not have it refuse what a later release adds to an answer.
func TestOpenAPI_LetsAnswersGrowAndNoRequest(t *testing.T) {
	s, d := documented(t)
	answers, requests := map[string]bool{}, map[string]bool{}
	grows := func(name string, is *schema) {
		if is.AdditionalProperties == false {
			t.Errorf("%s is an answer, and may have no other fields", name)
		}
	}
	d.each(func(name string, op *operation) {
		for _, r := range op.Responses {
			for _, content := range r.Content {
				d.within(content.Schema, answers, grows)
			}
		}
		if op.RequestBody == nil {
			return
		}
		for _, content := range op.RequestBody.Content {
			d.within(content.Schema, requests, func(name string, is *schema) {
				if name != "" && is.AdditionalProperties != false {
					t.Errorf("%s is a request, and may have other fields", name)
				}
			})
		}
		method, path, _ := strings.Cut(name, " ")
		at := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, "a")
		got := s.send("operator", method, at, `{"unheard_of":1}`)
		if got.status != 400 || !strings.Contains(got.text, "unheard_of") {
			t.Errorf("%s: an unknown field is answered with %d %s", name, got.status, got.text)
		}
	})
	for _, r := range d.Components.Responses {
		for _, content := range r.Content {
			d.within(content.Schema, answers, grows)
		}
	}
	for name := range answers {
		if requests[name] {
			t.Errorf("%s is a request and an answer", name)
		}
	}
}

// open names the texts that sound as if they were of few values, and are of any.
var open = map[string]string{
	"Health.status":        "says ok, or why not, in words",
	"Node.types":           "holds digests",
	"CheckpointHead.state": "holds a digest",
	"Schedule.why":         "tells it in words",
}

// A set that is closed is listed, so that generated clients have its values, and is the one that the engine has.
func TestOpenAPI_ListsTheValuesOfClosedSets(t *testing.T) {
	_, d := documented(t)
	statuses := texts(task.Created, task.Running, task.Success, task.Failure)
	if n := len(constants(t, "task", "Status")); n != len(statuses) {
		t.Errorf("there are %d statuses, not %d", n, len(statuses))
	}
	levels := texts(tasklog.Info, tasklog.Error)
	if n := len(constants(t, "tasklog", "Level")); n != len(levels) {
		t.Errorf("there are %d levels, not %d", n, len(levels))
	}
	var modes, forms, verbs []string
	for i := range constants(t, "events", "WorkMode") {
		modes = append(modes, progress.Mode(events.WorkMode(i)))
	}
	for i := range constants(t, "events", "WorkForm") {
		if form := progress.Form(events.WorkForm(i)); form != "" {
			forms = append(forms, form)
		}
	}
	for _, verb := range constants(t, "api/operations", "Verb") {
		if verb != string(operations.Pause) && verb != string(operations.Unpause) { // those two are for behaviors
			verbs = append(verbs, verb)
		}
	}
	var types []string
	for _, is := range problem.Types() {
		types = append(types, problem.Prefix+string(is))
	}
	if n := len(constants(t, "api/problem", "Type")); n != len(types) {
		t.Errorf("there are %d types of problems, not %d", n, len(types))
	}
	runs, states := constants(t, "collections/taskjson", "Status"), constants(t, "work/progress", "State")
	want := map[string][]string{
		"Change.operation":         verbs,
		"ChangeMatching.operation": texts(slices.Collect(maps.Keys(operations.OfMany))...),
		"Count.status":             statuses,
		"Count.substatus":          task.Substatuses(),
		"Event.record":             texts(events.Records()[1:]...),
		"Explanation.substatus":    task.Substatuses(),
		"Explanation.why":          constants(t, "task", "Reason"),
		"Header.format":            {"taskledger export"},
		"LogLine.level":            levels,
		"Problem.type":             types,
		"ScheduleForm.misfire":     constants(t, "schedule", "Misfire"),
		"ScheduleForm.overlap":     constants(t, "schedule", "Overlap"),
		"Submitted.status":         statuses,
		"SyncCancelled.status":     {"ok"},
		"SyncFailure.type":         types,
		"SyncLine.level":           levels,
		"SyncTask.status":          runs,
		"Task.status":              statuses,
		"Task.substatus":           task.Substatuses(),
		"Work.state":               states,
		"Work.status":              statuses,
		"WorkPartition.mode":       modes,
		"WorkPartition.state":      states,
		"WorkPartition.stream":     forms,
		"WorkRerun.failed":         {"true"},
		"WorkReset.thresholds":     {"true"},
		"WorkThreshold.mode":       modes,
	}
	grown := map[string][]string{
		"Event.kind":        texts(events.Kinds()...),
		"Reads.kind":        texts(events.Kinds()...),
		"StoreProblem.kind": constants(t, "item", "Kind"),
	}
	few := regexp.MustCompile(
		`^(status|substatus|state|mode|level|operation|kind|why|overlap|misfire|record|format|types?)$`)
	for name, s := range d.Components.Schemas {
		of := strings.TrimSuffix(name, "Input")
		for field, is := range s.Properties {
			at := of + "." + field
			same(t, at, is.Enum, want[at])
			same(t, at, is.Grows, grown[at])
			_, known := open[at]
			if few.MatchString(field) && is.Type == "string" && len(is.Enum)+len(is.Grows) == 0 && !known {
				t.Errorf("%s has no values", at)
			}
		}
	}
	params := map[string][]string{
		"status": statuses, "substatus": task.Substatuses(), "level": levels,
		"order": {"oldest", "newest"}, "kind": texts(events.Kinds()...), "work": {"true"},
	}
	d.each(func(name string, op *operation) {
		for _, p := range op.Parameters {
			values, got := params[p.Name], p.Schema.Enum
			if p.Name == "status" && strings.Contains(name, "/sync/") {
				values = runs
			}
			if p.Schema.Items != nil {
				got = p.Schema.Items.Enum
			}
			same(t, name+": "+p.Name, got, values)
		}
	})
	for at := range maps.Keys(want) {
		name, field, _ := strings.Cut(at, ".")
		if s := d.Components.Schemas[name]; s == nil || s.Properties[field] == nil {
			t.Errorf("there is no %s", at)
		}
	}
}

// The bounds of a number are those that the routes hold requests to.
func TestOpenAPI_BoundsNumbersAsTheRoutesDo(t *testing.T) {
	s, d := documented(t)
	s.want(s.send("submitter", "PUT", "/v1/schedules/1", `{"behavior":"noop"}`), 201, "")
	tried := 0
	d.each(func(name string, op *operation) {
		method, path, _ := strings.Cut(name, " ")
		at := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, "1")
		for _, p := range op.Parameters {
			if p.In != "query" || p.Schema.Type != "integer" || path == "/sync/tasks" { // the fixture has no source for it
				continue
			}
			if p.Schema.Minimum == nil {
				t.Errorf("%s: %s has no minimum", name, p.Name)
				continue
			}
			beyond := []float64{*p.Schema.Minimum - 1}
			if p.Schema.Maximum != nil {
				beyond = append(beyond, *p.Schema.Maximum+1)
			}
			for _, n := range beyond {
				if strings.Contains(path, "/compat/") && n < 0 { // the original client has any such number for all
					continue
				}
				query := fmt.Sprintf("?%s=%d", p.Name, int64(n))
				if path == "/v1/journal" && p.Name != "shard" {
					query += "&shard=0"
				}
				if got := s.send("operator", method, at+query, nil); got.status != 400 || !strings.Contains(got.text, p.Name) {
					t.Errorf("%s%s is answered with %d %s", name, query, got.status, got.text)
				}
				tried++
			}
		}
	})
	if tried < 20 {
		t.Errorf("%d numbers beyond a bound were tried", tried)
	}
}
