package ui_test

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/ui"
	"taskledger/behaviors"
	"taskledger/engine/enginetest"
)

// nested returns an array of numbers below so many levels of arrays, of almost as many bytes as parameters may have.
func nested(levels int) string {
	n := (255<<10 - 2*levels) / 2
	return strings.Repeat("[", levels) + strings.Repeat("1,", n) + "1" + strings.Repeat("]", levels)
}

// submitAs submits a task with parameters, which are its result, too.
func (s *server) submitAs(id, params string) {
	s.t.Helper()
	s.submit("keeps", id, params)
	if len(s.see(id).Params) < len(params) {
		s.t.Fatalf("%s has no such parameters", id)
	}
}

// However deep a value is, the pages that show it are as large as its text, some times over.
func TestTask_OfDeepJSONIsAPageOfBoundedSize(t *testing.T) {
	s := serve(t)
	for id, params := range map[string]string{"deep": nested(60), "flat": nested(1)} {
		s.submitAs(id, params)
		for path, most := range map[string]int{
			"/ui/tasks/" + id:                  3 << 19,
			"/ui/tasks/" + id + "/state?seq=1": 3 << 20,
			"/ui/submit?like=" + id:            1 << 20,
		} {
			got := s.want(s.get("admin", path), 200)
			if len(got.text) > most || len(got.text) < len(params) {
				t.Errorf("%s has %d bytes, want at most %d", path, len(got.text), most)
			}
		}
		s.want(s.get("viewer", "/ui/tasks/"+id), 200, "It is cut here")
		s.want(s.get("viewer", "/ui/tasks/"+id+"/state?seq=1"), 200, "What the event holds")
	}
}

// nests ends with as many levels as its parameter says: a program may make more than the API takes.
var nests = behaviors.Define[int, json.RawMessage]("nests", nil)

func TestTask_OfAVeryDeepResultIsAPageOfBoundedSize(t *testing.T) {
	s := serveOn(t, enginetest.Memory(t, nests.Bind(
		func(_ context.Context, levels int) (json.RawMessage, error) {
			return json.RawMessage(nested(levels)), nil
		})))
	for id, levels := range map[string]string{"deep": "5000", "deeper": "100000"} {
		s.submit("nests", id, levels)
		for _, path := range []string{"/ui/tasks/" + id, "/ui/tasks/" + id + "/state?seq=3"} {
			if got := s.want(s.get("viewer", path), 200); len(got.text) > 3<<19 {
				t.Errorf("%s has %d bytes", path, len(got.text))
			}
		}
	}
}

// Pages that may be large ask routes that are large, too: each has its place after the other, so none waits for itself.
func TestTask_ManyLargePagesAtOnceAreAllWhole(t *testing.T) {
	s := serve(t, func(_ *api.Config, of *ui.Config) { of.Within = time.Minute }) // the last one waits for all others
	s.submitAs("deep", nested(60))
	var asking sync.WaitGroup
	for range 12 {
		asking.Go(func() {
			s.wantNot(s.want(s.get("viewer", "/ui/tasks/deep"), 200), "This page is not whole")
		})
	}
	asking.Wait()
}

func TestTask_MarksWhatItsParametersConsistOf(t *testing.T) {
	s := serve(t)
	s.submit("keeps", "a", `{"name":"<b> \\u003c","n":-1.5e3,"ok":true,"none":null,"all":["x:"]}`)
	got := s.want(s.get("viewer", "/ui/tasks/a"), 200,
		`<span class="j-k">"name"</span>: <span class="j-s">"&lt;b&gt; \\u003c"</span>`,
		`<span class="j-n">-1.5e3</span>`, `<span class="j-w">true</span>`, `<span class="j-w">null</span>`,
		`<span class="j-s">"x:"</span>`, `<details id="params-of"><summary>Parameters`, `<details id="result-of"><summary>Result`)
	s.wantNot(got, "<b>", " open>")
	s.submitAs("many", nested(1))
	if n := strings.Count(s.get("viewer", "/ui/tasks/many").text, "<span"); n > 11_000 {
		t.Errorf("%d marks", n)
	}
}

// The form of a copy takes back what it was given, however large that is.
func TestSubmit_TakesACopyOfTheLargestTask(t *testing.T) {
	s := serve(t)
	for id, params := range map[string]string{
		"array":  nested(1),
		"deep":   nested(60),
		"markup": `"` + strings.Repeat("<&>", 85<<10) + `"`,
		"wide":   `"` + strings.Repeat("ä", 127<<10) + `"`,
	} {
		body, err := json.Marshal(map[string]any{"behavior": "keeps", "id": id})
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSuffix(string(body), "}") + `,"params":` + params + "}"
		if got := apitest.Ask(s.api, "admin", http.MethodPost, "/v1/tasks", text); got.Code != http.StatusAccepted {
			t.Fatalf("%s: %d %s", id, got.Code, got.Body)
		}
		page := s.want(s.get("submitter", "/ui/submit?like="+id), 200).text
		_, page, _ = strings.Cut(page[strings.Index(page, "<textarea"):], ">\n")
		page, _, _ = strings.Cut(page, "</textarea>")
		form := formOfTask(id + "2")
		form.Set("behavior", "keeps")
		form.Set("params", strings.ReplaceAll(html.UnescapeString(page), "\n", "\r\n"))
		s.want(s.send("submitter", http.MethodPost, "/ui/submit", form), 303)
		var is, was any
		if json.Unmarshal(s.see(id).Params, &was) != nil || json.Unmarshal(s.see(id+"2").Params, &is) != nil {
			t.Fatalf("%s cannot be read", id)
		}
		if x, y := must(json.Marshal(is)), must(json.Marshal(was)); string(x) != string(y) {
			t.Errorf("%s is another one: %d bytes, it was %d", id, len(x), len(y))
		}
	}
	s.want(s.send("submitter", http.MethodPost, "/ui/submit", url.Values{"params": {strings.Repeat("\n", 256<<10)}}), 400, "behavior")
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}
