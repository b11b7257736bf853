package stores_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// oldClient asks as the original client does: it knows a base URL alone, sets no header, and reads into types of its
// own.
type oldClient struct {
	t    *testing.T
	base string
	http *http.Client
}

type oldTask struct {
	ID       int64
	Group    string
	Data     string
	Duration int64
	OwnerID  int32
}

type oldAnswer struct {
	Tasks []*oldTask
	Error *struct{ Changes, Deletes, Depends, Owned, Bugs []int64 }
}

func (o *oldClient) ask(method, path, body string, into any) error {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), method, o.base+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	resp, err := o.http.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		o.t.Fatalf("%s: %v", text, err)
	}
	return nil
}

func (o *oldClient) change(path, body string) (a oldAnswer) {
	o.t.Helper()
	if err := o.ask("POST", path, body, &a); err != nil {
		o.t.Fatal(err)
	}
	return a
}

func old(s *server, base string) *oldClient {
	return &oldClient{s.t, strings.Replace(base, "http://", "http://any:submitter@", 1), s.http}
}

func TestCompat_ServesTheOriginalClient(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, base := range []string{s.url + "/store/b/compat", s.root + "/compat"} {
		o := old(s, base)
		begun := time.Now()
		added := o.change("/update", `{"clientid":183,"adds":[{"id":0,"group":"map","data":"x","duration":0,"ownerid":0},{"id":0,"group":"a b/c","data":"","duration":-60000000000,"ownerid":0}],"updates":null,"deletes":null,"depends":null}`)
		if added.Error != nil || len(added.Tasks) != 2 || added.Tasks[0].ID != 1 || added.Tasks[0].OwnerID != 183 || added.Tasks[0].Data != "x" ||
			added.Tasks[0].Duration < begun.Truncate(time.Millisecond).UnixNano() || added.Tasks[1].Duration < begun.Add(time.Minute-time.Millisecond).UnixNano() {
			t.Errorf("%+v", added)
		}
		var groups []string
		if err := o.ask("GET", "/group", "", &groups); err != nil || fmt.Sprint(groups) != "[a b/c map]" {
			t.Errorf("%v, %v", groups, err)
		}
		var one oldTask
		if err := o.ask("GET", "/task/1", "", &one); err != nil || one != *added.Tasks[0] {
			t.Errorf("%+v, %v", one, err)
		}
		if err := o.ask("GET", "/task/9", "", &one); err == nil || !strings.Contains(err.Error(), "task 9") {
			t.Errorf("a task that is not there: %v", err)
		}
		var list []*oldTask
		if err := o.ask("GET", "/tasks/9,2", "", &list); err != nil || len(list) != 2 || list[0] != nil || list[1].Group != "a b/c" {
			t.Errorf("%+v, %v", list, err)
		}
		for path, want := range map[string]int{"/group/a b/c?limit=0&owned=0": 0, "/group/a b/c?limit=0&owned=1": 1, "/group/map?limit=1&owned=0": 1, "/group/map?limit=-1&owned=0": 1, "/group/none?limit=0&owned=0": 0} {
			if err := o.ask("GET", strings.ReplaceAll(path, " ", "%20"), "", &list); err != nil || len(list) != want {
				t.Errorf("%s: %d, %v", path, len(list), err)
			}
		}
		claimed := o.change("/claim", `{"clientid":183,"group":"map","duration":60000000000,"depends":[2]}`)
		if claimed.Error != nil || len(claimed.Tasks) != 1 || claimed.Tasks[0].ID != 3 || claimed.Tasks[0].Duration < begun.Add(time.Minute-time.Millisecond).UnixNano() {
			t.Errorf("%+v", claimed)
		}
		none := o.change("/claim", `{"clientid":183,"group":"map","duration":60000,"depends":null}`)
		if none.Error != nil || len(none.Tasks) != 0 {
			t.Errorf("%+v", none)
		}
		failed := o.change("/update", `{"clientid":7,"adds":null,"updates":[{"id":3,"group":"","data":"","duration":0,"ownerid":0},{"id":78,"group":"","data":"","duration":0,"ownerid":0}],"deletes":[77,2],"depends":[88]}`)
		if e := failed.Error; e == nil || failed.Tasks != nil || fmt.Sprint(e.Changes, e.Deletes, e.Depends, e.Owned, e.Bugs) != "[78] [77] [88] [2 3] []" {
			t.Errorf("%+v, %+v", failed, failed.Error)
		}
		failed = o.change("/claim", `{"clientid":7,"group":"none","duration":60000,"depends":[88]}`)
		if e := failed.Error; e == nil || fmt.Sprint(e.Depends) != "[88]" {
			t.Errorf("%+v", failed)
		}
		renewed := o.change("/update", `{"clientid":183,"adds":null,"updates":[{"id":3,"group":"other","data":"y","duration":-1,"ownerid":5}],"deletes":null,"depends":null}`)
		if renewed.Error != nil || len(renewed.Tasks) != 1 || renewed.Tasks[0].Group != "map" || renewed.Tasks[0].Data != "y" {
			t.Errorf("%+v", renewed)
		}
		for _, bad := range []string{`{"clientid":1,"adds":null,"updates":null,"deletes":null,"depends":null}`, `{"clientid":-1,"deletes":[1]}`, `{"clientid":1,"adds":[{"id":0,"group":"","data":"","duration":0,"ownerid":0}]}`,
			`{"clientid":1,"adds":[{"id":0,"group":"g","data":"\ud800","duration":0,"ownerid":0}]}`} {
			if err := o.ask("POST", "/update", bad, &oldAnswer{}); err == nil || !strings.HasPrefix(err.Error(), "400") {
				t.Errorf("%s: %v", bad, err)
			}
		}
	}
}

// Its ids begin with 0, and those of others need not fit what it reads.
func TestCompat_ClientsOf0And53BitsCanBeTold(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	o := old(s, s.url+"/store/a/compat")
	mine := o.change("/update", `{"clientid":0,"adds":[{"id":0,"group":"g","data":"x","duration":-60000000000,"ownerid":0}],"updates":null,"deletes":null,"depends":null}`)
	if mine.Error != nil || mine.Tasks[0].OwnerID != 0 {
		t.Errorf("%+v", mine)
	}
	s.made(s.post("/store/a/update", `{"clientid":9007199254740992,"adds":[{"group":"g","timespec":253402300799999}]}`))
	var list []*oldTask
	if err := o.ask("GET", "/group/g?limit=0&owned=1", "", &list); err != nil || len(list) != 2 || list[1].OwnerID != -1 || list[1].Duration != 1<<63-1 {
		t.Errorf("%+v, %v", list, err)
	}
	if got := o.change("/update", `{"clientid":0,"adds":null,"updates":null,"deletes":[2],"depends":null}`); got.Error == nil || fmt.Sprint(got.Error.Owned) != "[2]" {
		t.Errorf("of another: %+v", got)
	}
	if got := o.change("/update", `{"clientid":0,"adds":null,"updates":null,"deletes":[1],"depends":null}`); got.Error != nil {
		t.Errorf("of its own: %+v", got.Error)
	}
}

// Its ids have 32 bits, and half of them are below 0.
func TestCompat_ClientsBelow0OwnWhatTheyClaim(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	o := old(s, s.url+"/store/a/compat")
	o.change("/update", `{"clientid":7,"adds":[{"id":0,"group":"g","data":"x","duration":0,"ownerid":0}],"updates":null,"deletes":null,"depends":null}`)
	for _, id := range []string{"-2", "-2147483648", "2147483647"} {
		claimed := o.change("/claim", `{"clientid":`+id+`,"group":"g","duration":60000000000,"depends":null}`)
		if claimed.Error != nil || len(claimed.Tasks) != 1 || fmt.Sprint(claimed.Tasks[0].OwnerID) != id {
			t.Fatalf("client %s: %+v", id, claimed)
		}
		at := claimed.Tasks[0].ID
		if got := o.change("/update", fmt.Sprintf(`{"clientid":3,"adds":null,"updates":null,"deletes":[%d],"depends":null}`, at)); got.Error == nil {
			t.Error("another client has deleted it")
		}
		back := fmt.Sprintf(`{"clientid":%s,"adds":null,"updates":[{"id":%d,"group":"g","data":"x","duration":0,"ownerid":0}],"deletes":null,"depends":null}`, id, at)
		if got := o.change("/update", back); got.Error != nil {
			t.Errorf("client %s: %+v", id, got.Error)
		}
	}
	for _, id := range []string{"-1", "-2147483649", "2147483648"} {
		s.refused(s.post("/store/a/compat/claim", `{"clientid":`+id+`,"group":"g","duration":1}`), 400, "clientid")
	}
}

func TestCompat_HonoursTheKeyOfARequest(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	add := `{"clientid":7,"adds":[{"id":0,"group":"g","data":"x","duration":0,"ownerid":0}]}`
	first := s.want(s.post("/store/a/compat/update", add, "Idempotency-Key", "k"), 200, `"id":1`)
	s.want(s.post("/store/a/compat/update", add, "Idempotency-Key", "k"), 200, strings.TrimSpace(first.text))
	claim := `{"clientid":7,"group":"g","duration":60000000000}`
	claimed := s.want(s.post("/store/a/compat/claim", claim, "Idempotency-Key", "c"), 200, `"ownerid":7`)
	s.want(s.post("/store/a/compat/claim", claim, "Idempotency-Key", "c"), 200, strings.TrimSpace(claimed.text))
}

func TestCompat_TellsOfATimeInNanoseconds(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	for _, d := range []string{"86400000000001", "9223372036854775807"} {
		s.refused(s.post("/store/a/compat/claim", `{"clientid":7,"group":"g","duration":`+d+`}`), 400, "duration: "+d+": want 86400000000000 at most, in nanoseconds")
	}
}
