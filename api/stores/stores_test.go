package stores_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The URLs of the document hold below /store/NAME, and at the root of a listener.
func TestStore_SpeaksAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, base := range []string{"/store/b", s.root} {
		s.want(s.get(base+"/groups"), 200, `[]`)
		begun := time.Now().UnixMilli()
		added := s.made(s.post(base+"/update", `{"clientid":1643,"adds":[{"group":"map","data":"/path/to/file:1024:2048"},{"group":"map","data":"b","timespec":1388552400000}],"updates":null,"deletes":[],"depends":null}`))
		if len(added) != 2 || added[0].ID != 1 || added[1].ID != 2 || added[1].Timespec != 1388552400000 || added[0].Timespec < begun || added[0].OwnerID != 1643 {
			t.Errorf("%+v", added)
		}
		s.want(s.get(base+"/task/2"), 200, `{"id":2,"group":"map","data":"b","timespec":1388552400000,"ownerid":1643}`)
		s.refused(s.get(base+"/task/3"), 404, "task 3")
		s.want(s.get(base+"/groups"), 200, `["map"]`)
		late := s.post(base+"/update", `{"clientid":1,"depends":[9],"updates":[{"id":1,"group":"x","keep":true}]}`)
		s.want(late, 409, `"problems":[{"field":"depends","id":9,"kind":"not-there","text":"it is not there"},`+
			`{"field":"updates","id":1,"kind":"other-group","text":"it is of group \"map\", not \"x\""}]`)
		s.want(s.get(base+"/stats"), 200,
			`[{"group":"map","tasks":2,"available":2,"waiting":0,"claimed":0,"bytes":24,"oldest":1388552400000}]`)
		if got := ids(s.listOf(s.get(base + "/tasks/2,9,1,2"))); got != "2 - 1 2" {
			t.Errorf("tasks: %s", got)
		}
		changed := s.made(s.post(base+"/update", `{"clientid":7,"adds":[{"group":"reduce"}],"updates":[{"id":1,"data":"x","timespec":-60000}],"deletes":[2],"depends":[1]}`))
		if len(changed) != 2 || changed[0].ID != 3 || *changed[0].Data != "" || changed[1].ID != 4 || changed[1].Group != "map" || changed[1].OwnerID != 7 || changed[1].Timespec < begun+60000 {
			t.Errorf("%+v", changed)
		}
		s.refused(s.post(base+"/update", `{"clientid":1643,"deletes":[4,1],"depends":[2]}`), 409, "depends: task 2: it is not there\ndeletes: task 4: it is held by 7")
		if got := ids(s.listOf(s.get(base + "/group/map"))); got != "" {
			t.Errorf("available: %s", got)
		}
		for _, yes := range []string{"1", "yes", "true", "YES", "True"} {
			if got := ids(s.listOf(s.get(base + "/group/map?owned=" + yes))); got != "4" {
				t.Errorf("owned=%s: %s", yes, got)
			}
		}
		claimed := s.made(s.post(base+"/claim", `{"clientid":1532,"group":"reduce","duration":60000,"depends":[4]}`))
		if len(claimed) != 1 || claimed[0].ID != 5 || claimed[0].OwnerID != 1532 || claimed[0].Timespec < begun+60000 {
			t.Errorf("%+v", claimed)
		}
		s.want(s.post(base+"/claim", `{"clientid":1532,"group":"reduce","duration":60000}`), 200, `{"tasks":[]}`)
		s.want(s.post(base+"/claim", `{"clientid":1532,"group":"reduce","duration":60000,"depends":null}`), 200, `{"tasks":[]}`)
		s.refused(s.post(base+"/claim", `{"clientid":1532,"group":"none","duration":60000,"depends":[3]}`), 409, "depends: task 3")
		s.want(s.post(base+"/update", `{"clientid":1,"depends":[5]}`), 200, `{"tasks":[]}`)
		s.want(s.post(base+"/update", `{"clientid":1,"deletes":[5]}`), 409, "held by 1532")
		s.want(s.post(base+"/update", `{"clientid":1532,"deletes":[5]}`), 200, `{"tasks":[]}`)
	}
	s.want(s.get("/store/a/groups?linear=1"), 200, `["map"]`)
	s.want(s.get("/store/a/stats"), 200, `[{"group":"map","tasks":1,"available":0,"waiting":1,"claimed":0,"bytes":1}]`)
	s.want(s.get("/store/never/stats?linear=1"), 200, `[]`)
	s.want(s.get("/store/never/group/x"), 200, `[]`)
	s.want(s.get("/store/%2E%2E/groups"), 200, `[]`)
	s.want(s.get("/store/never/tasks/1"), 200, `[null]`)
	if got := s.send("viewer", "GET", s.root+"/v1/nodes", ""); got.status != 404 {
		t.Errorf("the listener of a store answers for more than it: %d", got.status)
	}
}

// What is kept is not repeated, and can be sent back as it was answered.
func TestUpdate_TakesTasksAsTheyWereServed(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.made(s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"x"}]}`))
	renewed := s.post("/store/a/update", `{"clientid":1,"updates":[{"id":1,"keep":true,"timespec":-60000}]}`)
	is := s.made(renewed)[0]
	if !is.Keep || is.Data != nil || is.ID != 2 {
		t.Fatalf("%s", renewed.text)
	}
	var back struct {
		Tasks []json.RawMessage `json:"tasks"`
	}
	if err := json.Unmarshal([]byte(renewed.text), &back); err != nil {
		t.Fatal(err)
	}
	s.made(s.post("/store/a/update", fmt.Sprintf(`{"clientid":1,"updates":[%s]}`, back.Tasks[0])))
	served := s.get("/store/a/task/3")
	s.want(served, 200, fmt.Sprintf(`{"id":3,"group":"g","data":"x","timespec":%d,"ownerid":1,"claims":1}`, is.Timespec))
	s.made(s.post("/store/a/update", fmt.Sprintf(`{"clientid":1,"updates":[%s],"adds":[%[1]s]}`, strings.TrimSpace(served.text))))
	if got := s.listOf(s.get("/store/a/group/g?owned=1")); ids(got) != "4 5" || *got[0].Data != "x" || *got[1].Data != "x" {
		t.Errorf("%s", ids(got))
	}
	s.refused(s.post("/store/a/update", `{"clientid":1,"updates":[{"id":4,"group":"other"}]}`), 409, "updates: task 4")
}

func TestData_OfAnyBytesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for i, data := range []string{"", "x", "é\u2028<&>", "\x00\x1f", "\xff\xfe", "a\xc3", "\xed\xa0\x80", strings.Repeat("\x00", 200<<10), strings.Repeat("\xff", 200<<10)} {
		body := fmt.Sprintf(`{"clientid":1,"adds":[{"group":"g","data64":%q}]}`, base64.StdEncoding.EncodeToString([]byte(data)))
		s.made(s.post("/store/a/update", body))
		got := s.listOf(s.get(fmt.Sprintf("/store/a/tasks/%d", i+1)))[0]
		if is := string(got.Data64); got.Data != nil && *got.Data != data || got.Data == nil && is != data || got.Data != nil && got.Data64 != nil {
			t.Errorf("%.20q came back as %.20v, %.20q", data, got.Data, is)
		}
	}
	s.made(s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"\ud83d\ude00\\ud800\u00e9"}]}`))
	if got := s.listOf(s.get("/store/a/tasks/10"))[0]; *got.Data != "😀\\ud800é" {
		t.Errorf("%q", *got.Data)
	}
	s.made(s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"`+strings.Repeat(`\u0001`, 255<<10)+`"}]}`))
}

func TestGroup_OfAnyNameIsListed(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, name := range []string{"a/b", "/", "//", "a//b", "../..", "é", "a b", "%", "a?b", "a+b", "#", "\x00", `"`, "..."} {
		body, _ := json.Marshal(map[string]any{"clientid": 1, "adds": []any{map[string]string{"group": name}}})
		want := fmt.Sprint(s.made(s.post("/store/a/update", string(body)))[0].ID)
		for _, base := range []string{"/store/a", s.root} {
			if got := ids(s.listOf(s.get(base + "/group/" + url.PathEscape(name)))); got != want {
				t.Errorf("%q: %s, want %s", name, got, want)
			}
		}
	}
	for _, name := range []string{".", "..", "a/b"} {
		body, _ := json.Marshal(map[string]any{"clientid": 1, "adds": []any{map[string]string{"group": name}}})
		want := fmt.Sprint(s.made(s.post("/store/a/update", string(body)))[0].ID)
		if got := ids(s.listOf(s.get("/store/a/group?name=" + url.QueryEscape(name)))); !strings.HasSuffix(got, want) {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	s.refused(s.get("/store/a/group/"), 400, "group: empty")
	s.refused(s.get("/store/a/group"), 400, "group: empty")
}

// An answer of one page is no stream: a caller may have two streams at once.
func TestTasks_OfAPageAreNoStream(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.made(s.post("/store/a/update", `{"clientid":1,"adds":[`+strings.Repeat(`{"group":"g"},`, 999)+`{"group":"g"}]}`))
	large := `{"group":"h","data":"` + strings.Repeat("x", 240<<10) + `"}`
	for range 3 {
		s.made(s.post("/store/a/update", `{"clientid":1,"adds":[`+large+`]}`))
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprint(i + 1)
	}
	if got := s.get("/store/a/tasks/" + strings.Join(many, ",")); len(s.listOf(got)) != 1000 || got.header.Get("Content-Length") == "" {
		t.Error("a thousand small tasks are a stream")
	}
	if got := s.get("/store/a/tasks/1001,1002,1003," + strings.Join(many[:47], ",") + ",1"); len(s.listOf(got)) != 51 || got.header.Get("Content-Length") != "" {
		t.Error("720 KiB of data, and a task more, are no stream")
	}
}

// A group of more than a page comes whole, and in the order of ids.
func TestGroup_OfManyPagesIsOneArray(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const parts, each = 3, 900
	for range parts {
		s.made(s.post("/store/a/update", `{"clientid":1,"adds":[`+strings.Repeat(`{"group":"g","data":"x"},`, each-1)+`{"group":"g","timespec":-3600000}]}`))
	}
	all := s.listOf(s.get("/store/a/group/g?owned=yes"))
	for i, t1 := range all {
		if t1.ID != int64(i+1) {
			t.Fatalf("task %d at %d", t1.ID, i)
		}
	}
	if len(all) != parts*each || len(s.listOf(s.get("/store/a/group/g"))) != parts*(each-1) {
		t.Errorf("%d tasks", len(all))
	}
	for _, limit := range []int{1, 999, 1000, 1001, 2000, parts * each, parts*each + 1} {
		got := s.listOf(s.get(fmt.Sprintf("/store/a/group/g?owned=yes&limit=%d&linear=1", limit)))
		if want := min(limit, parts*each); len(got) != want || got[want-1].ID != int64(want) {
			t.Errorf("limit %d: %d tasks", limit, len(got))
		}
	}
	for _, after := range []int{1, 1700, parts*each - 1, parts * each} {
		got := s.listOf(s.get(fmt.Sprintf("/store/a/group/g?owned=yes&after=%d", after)))
		if want := parts*each - after; len(got) != want || want > 0 && got[0].ID != int64(after+1) {
			t.Errorf("after %d: %d tasks, want %d", after, len(got), want)
		}
	}
	var list []string
	for i := range 1000 {
		list = append(list, fmt.Sprint(3*(1000-i)))
	}
	got := s.listOf(s.get("/store/a/tasks/" + strings.Join(list, ",")))
	if len(got) != 1000 || got[0] != nil || got[999].ID != 3 || got[500].ID != 1500 {
		t.Errorf("%d tasks of ids", len(got))
	}
	s.refused(s.get("/store/a/tasks/"+strings.Join(append(list, "1"), ",")), 400, "1001 ids")
}

func TestKey_ARepeatedRequestIsAnsweredAsTheFirst(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	first := s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"x"}]}`, "Idempotency-Key", "k")
	s.want(s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"x","ownerid":5}]}`, "Idempotency-Key", "k"), 200, strings.TrimSpace(first.text))
	s.refused(s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"y"}]}`, "Idempotency-Key", "k"), 422, "k")
	s.made(s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"x"}]}`))
	claimed := s.post("/store/a/claim", `{"clientid":1,"group":"g","duration":60000}`, "Idempotency-Key", "c")
	s.want(s.post("/store/a/claim", `{"clientid":1,"group":"g","duration":60000}`, "Idempotency-Key", "c"), 200, strings.TrimSpace(claimed.text))
	s.refused(s.post("/store/a/claim", `{"clientid":1,"group":"h","duration":60000}`, "Idempotency-Key", "c"), 422, "c")
	s.refused(s.post("/store/a/claim", `{"clientid":1,"group":"h","duration":60000}`, "Idempotency-Key", ""), 400, "Idempotency-Key")
}

func TestKey_ARepetitionOfWhatMayBeForgottenIs410AndNotDone(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const add = `{"clientid":1,"adds":[{"group":"g","data":"x"}]}`
	s.refused(s.post("/store/a/update", add, "Idempotency-Key", "k", "Idempotency-Age", "3600000"), 410, "forgotten")
	s.refused(s.post("/store/a/claim", `{"clientid":1,"group":"g","duration":60000}`, "Idempotency-Key", "c", "Idempotency-Age", "3600000"), 410, "forgotten")
	s.made(s.post("/store/a/update", add, "Idempotency-Key", "k", "Idempotency-Age", "60000"))
	if got := s.listOf(s.get("/store/a/group/g")); ids(got) != "1" {
		t.Errorf("%s", ids(got))
	}
	for _, age := range []string{"", "-1", "1.5", "soon", "9223372036854775807"} {
		s.refused(s.post("/store/a/update", add, "Idempotency-Key", "k", "Idempotency-Age", age), 400, "Idempotency-Age")
	}
	s.refused(s.post("/store/a/update", add, "Idempotency-Age", "1"), 400, "age")
}

// A body that is held makes a repetition arrive later than its age says.
func TestKey_ARepetitionWhoseBodyComesLateIs410BehindOthersOfItsClient(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const add = `{"clientid":1,"adds":[{"group":"g","data":"x"}]}`
	began := time.Now()
	var first time.Duration // until all that lies between the first key and the next is over
	for i := range 65 {
		s.made(s.post("/store/a/update", add, "Idempotency-Key", fmt.Sprint("k", i)))
		if i == 1 {
			first = time.Since(began)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	body, in := io.Pipe()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/store/a/update", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer submitter")
	r.Header.Set("Idempotency-Key", "k0")
	r.Header.Set("Idempotency-Age", fmt.Sprint(max(time.Since(began).Milliseconds(), 1)))
	go func() {
		time.Sleep(2 * first) // the server waits for a body for seconds alone
		_, err := io.WriteString(in, add)
		_ = in.CloseWithError(err)
	}()
	resp, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusGone {
		t.Errorf("status %d, want 410", resp.StatusCode)
	}
	if got := s.listOf(s.get("/store/a/group/g")); len(got) != 65 {
		t.Errorf("%d tasks, want 65", len(got))
	}
	again := func(within string) answer {
		return s.post("/store/a/update", add, "Idempotency-Key", "new", "Idempotency-Age", "1", "Idempotency-Within", within)
	}
	s.refused(again("65"), 410, "forgotten")
	for _, within := range []string{"", "-1", "many", "4294967296"} {
		s.refused(again(within), 400, "Idempotency-Within")
	}
	s.made(again("64"))
	s.refused(s.post("/store/a/update", add, "Idempotency-Key", "k", "Idempotency-Within", "1"), 400, "within")
}

func TestRequest_BadInputNamesTheField(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.made(s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"x"}]}`))
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/store/a/update", ``, 400, "empty"},
		{"/store/a/update", `{`, 400, "body"},
		{"/store/a/update", `[]`, 400, "want an object"},
		{"/store/a/update", `{"clientid":1}`, 400, "update: empty"},
		{"/store/a/update", `{"adds":[{"group":"g"}]}`, 400, "clientid"},
		{"/store/a/update", `{"clientid":0,"adds":[{"group":"g"}]}`, 400, "clientid"},
		{"/store/a/update", `{"clientid":-1,"adds":[{"group":"g"}]}`, 400, "clientid"},
		{"/store/a/update", `{"clientid":9007199254740993,"adds":[{"group":"g"}]}`, 400, "clientid"},
		{"/store/a/update", `{"clientid":"1","adds":[{"group":"g"}]}`, 400, "clientid: want a whole number"},
		{"/store/a/update", `{"clientid":1,"adds":[{"data":"x"}]}`, 400, "adds[0].group"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":""}]}`, 400, "adds[0].group"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"` + strings.Repeat("g", 257) + `"}]}`, 400, "adds[0].group"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":7}]}`, 400, "adds[0].group: 7: want a text"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g","colour":1}]}`, 400, "colour"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g","keep":true}]}`, 400, "keep"},
		{"/store/a/update", `{"clientid":1,"Adds":[{"group":"g"}]}`, 400, "Adds"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g","timespec":253402300800000}]}`, 400, "adds[0].timespec"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g","timespec":1.5}]}`, 400, "adds[0].timespec: want a whole number"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"x","data64":"eA=="}]}`, 400, "adds[0].data64"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g","data64":"eA"}]}`, 400, "adds[0].data64"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"\ud800"}]}`, 400, "adds[0].data"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"\udc00\ud800"}]}`, 400, "half of a pair"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g"},{"group":"g","data":"\ud800"},{"group":7}],"updates":[{"id":1.5}]}`, 400, `adds[1].data: \ud800 is half of a pair`},
		{"/store/a/update", `{"clientid":1,"deletes":[1,2,"3"]}`, 400, "deletes[2]: want a whole number, got the JSON type string"},
		{"/store/a/update", `{"clientid":1,"adds":{}}`, 400, "adds: want an array"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g\ud800x"}]}`, 400, "half of a pair"},
		{"/store/a/update", "{\"clientid\":1,\"adds\":[{\"group\":\"g\",\"data\":\"\xff\"}]}", 400, "UTF-8"},
		{"/store/a/update", `{"clientid":1,"updates":[{"id":1,"keep":true,"data":""}]}`, 400, "updates[0].keep"},
		{"/store/a/update", `{"clientid":1,"updates":[{}]}`, 400, "updates[0].id"},
		{"/store/a/update", `{"clientid":1,"deletes":[0]}`, 400, "deletes[0]"},
		{"/store/a/update", `{"clientid":1,"depends":[9007199254740993]}`, 400, "depends[0]"},
		{"/store/a/update", `{"clientid":1,"deletes":[1,1]}`, 400, "deletes: task 1"},
		{"/store/a/update", `{"clientid":1,"deletes":[1],"updates":[{"id":1}]}`, 400, "updates: task 1"},
		{"/store/a/update", `{"clientid":1,"depends":[1,1` + strings.Repeat(",1", 999) + `]}`, 400, "1000"},
		{"/store/a/update", `{"clientid":1,"adds":[{}` + strings.Repeat(",{}", 50000) + `]}`, 400, "1000"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"` + strings.Repeat("x", 256<<10) + `"}]}`, 400, "262144"},
		{"/store/a/update", `{"clientid":1,"adds":[{"group":"g","data":"` + strings.Repeat("x", 3<<20) + `"}]}`, 413, "2097152"},
		{"/store/a/claim", `{"clientid":1,"group":"g","duration":-1}`, 400, "duration"},
		{"/store/a/claim", `{"clientid":1,"group":"g","duration":86400001}`, 400, "duration"},
		{"/store/a/claim", `{"clientid":1,"group":"g","duration":1,"wait":60001}`, 400, "wait"},
		{"/store/a/claim", `{"clientid":1,"group":"g","duration":1,"wait":-1}`, 400, "wait"},
		{"/store/a/claim", `{"clientid":1,"group":"","duration":1}`, 400, "group"},
		{"/store/a/claim", `{"group":"g","duration":1}`, 400, "clientid"},
		{"/store/a/claim", `{"clientid":1,"group":"g","duration":1,"random":1}`, 400, "random"},
		{"/store/" + strings.Repeat("a", 65) + "/update", `{"clientid":1,"adds":[{"group":"g"}]}`, 400, "store"},
		{"/store/a%2Fb/update", `{"clientid":1,"adds":[{"group":"g"}]}`, 400, "store"},
	} {
		s.refused(s.post(c.path, c.body), c.status, c.want)
	}
	for path, want := range map[string]string{
		"/store/a/task/0": "task", "/store/a/task/x": "task", "/store/a/task/1,2": "task", "/store/a/task/-1": "task", "/store/a/task/+1": "task", "/store/a/tasks/1,,2": "tasks",
		"/store/a/task/9007199254740993": "task", "/store/a/group/g?limit=-1": "limit", "/store/a/group/g?limit=x": "limit", "/store/a/group/g?after=x": "after", "/store/a/group/g?after=0": "after", "/store/a/group/g?after=1,2": "after", "/store/a/group/g?owned=maybe": "owned",
		"/store/a/group/g?linear=2": "linear", "/store/a/group/g?colour=1": "colour", "/store/a/group/%ff": "UTF-8", "/store/a/groups?limit=1": "limit", "/store/%20/groups": "store",
	} {
		s.refused(s.get(path), 400, want)
	}
	if got := s.listOf(s.get("/store/a/group/g")); ids(got) != "1" {
		t.Errorf("something was applied: %s", ids(got))
	}
	s.refused(s.get("/store/a"), 404, "")
	s.refused(s.get("/store/a/groups/"), 404, `there is no "/store/a/groups/"`)
	s.refused(s.get(s.root+"/groups/"), 404, `there is no "/groups/"`)
	s.refused(s.post("/store/a/update", `{}`, "Content-Type", "text/plain"), 415, "Content-Type")
	for path, allow := range map[string]string{"/store/a/update": "POST", "/store/a/claim": "POST"} {
		got := s.get(path)
		s.refused(got, 405, "want")
		if got.header.Get("Allow") != allow {
			t.Errorf("Allow: %s", got.header.Get("Allow"))
		}
	}
	got := s.send("operator", http.MethodDelete, "/store/a/task/1", "")
	s.refused(got, 405, "want")
	if got.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow: %s", got.header.Get("Allow"))
	}
}

// A claim that does not say for how long is for as long as one in Go.
func TestClaim_HasADurationByDefault(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.made(s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g"}]}`))
	begun := time.Now().UnixMilli()
	got := s.made(s.post("/store/a/claim", `{"clientid":1,"group":"g"}`))[0]
	if wait := got.Timespec - begun; wait < 20_000 || wait > 600_000 {
		t.Errorf("claimed for %d ms, want 30,000", wait)
	}
}

func TestBody_ThatIsEncodedOrMarkedIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.refused(s.post("/store/a/update", `{"clientid":1}`, "Content-Encoding", "gzip"), 415, "Content-Encoding")
	s.refused(s.post("/store/a/update", "\ufeff"+`{"clientid":1}`), 400, "byte order mark")
}
