package stores_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// One test for each defect that the service of the original, or of its successor, was seen to have: what it did is the
// comment.
func TestOriginal_DefectsOfItsServiceAreNotThere(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	stores := 0
	for name, test := range map[string]func(t *testing.T, s *server, base string){
		// It answered 400 to every question with an id or a name.
		"a question with an id or a name is answered": func(_ *testing.T, s *server, base string) {
			s.made(s.post(base+"/update", `{"clientid":1,"adds":[{"group":"g","data":"x","timespec":5}]}`))
			task := `{"id":1,"group":"g","data":"x","timespec":5,"ownerid":1}`
			s.want(s.get(base+"/task/1"), 200, task)
			s.want(s.get(base+"/tasks/1,2"), 200, "["+task+",null]")
			s.want(s.get(base+"/group/g"), 200, "["+task+"]")
		},
		// It wanted a form field, and took no JSON.
		"a body is JSON without a Content-Type": func(t *testing.T, s *server, base string) {
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+base+"/update", strings.NewReader(`{"clientid":1,"adds":[{"group":"g"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer submitter")
			resp, err := s.http.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
			s.refused(s.post(base+"/update", `update={"clientid":1,"adds":[{"group":"g"}]}`), 400, "body")
		},
		// It answered with null, and beside tasks with an error of null.
		"a claim of nothing is an empty list and nothing beside": func(_ *testing.T, s *server, base string) {
			s.want(s.post(base+"/claim", `{"clientid":1,"group":"g","duration":1000}`), 200, `{"tasks":[]}`)
		},
		// It answered 200.
		"what is refused has status 409 and a text for each problem": func(_ *testing.T, s *server, base string) {
			s.made(s.post(base+"/update", `{"clientid":1,"adds":[{"group":"g","timespec":-60000}]}`))
			got := s.post(base+"/update", `{"clientid":2,"deletes":[77],"depends":[88],"updates":[{"id":1}]}`)
			s.refused(got, 409, "depends: task 88: it is not there\ndeletes: task 77: it is not there\nupdates: task 1: it is held by 1")
			s.refused(s.post(base+"/claim", `{"clientid":2,"group":"g","duration":1000,"depends":[88]}`), 409, "depends: task 88")
		},
		// It answered 200, and lost the text.
		"an empty update and an empty group are 400 and say so": func(_ *testing.T, s *server, base string) {
			s.refused(s.post(base+"/update", `{"clientid":1}`), 400, "update: empty")
			s.refused(s.post(base+"/update", `{"clientid":1,"adds":[{"group":""}]}`), 400, "adds[0].group: empty")
		},
		// It passed over timespec, and read and wrote another field in its place.
		"timespec is read and written, and no other time is known": func(t *testing.T, s *server, base string) {
			if got := s.made(s.post(base+"/update", `{"clientid":1,"adds":[{"group":"g","timespec":1388552400000}]}`)); got[0].Timespec != 1388552400000 {
				t.Errorf("%+v", got)
			}
			for _, field := range []string{"duration", "at"} {
				s.refused(s.post(base+"/update", `{"clientid":1,"adds":[{"group":"g","`+field+`":5}]}`), 400, field)
			}
		},
		// The names of its fields began with capitals here, and not there; data were a text here, and base64 there.
		"what changes and what is read have the same fields": func(_ *testing.T, s *server, base string) {
			task := `{"id":1,"group":"g","data":"x","timespec":5,"ownerid":1}`
			s.want(s.post(base+"/update", `{"clientid":1,"adds":[{"group":"g","data":"x","timespec":5}]}`), 200, `{"tasks":[`+task+`]}`)
			s.want(s.get(base+"/task/1"), 200, task)
		},
		// Its client asked for /group where it meant /groups, and was sent on to what is refused.
		"groups are listed, and a group without a name is refused by field": func(_ *testing.T, s *server, base string) {
			s.want(s.get(base+"/groups"), 200, `[]`)
			s.refused(s.get(base+"/group"), 400, "group")
		},
		"GET of what changes is 405 with Allow and a text": func(t *testing.T, s *server, base string) {
			for _, path := range []string{"/update", "/claim"} {
				got := s.get(base + path)
				if s.refused(got, 405, "want"); got.header.Get("Allow") != "POST" {
					t.Errorf("%s: Allow %q", path, got.header.Get("Allow"))
				}
			}
		},
		"owned is yes or no in any case, and else refused": func(_ *testing.T, s *server, base string) {
			s.made(s.post(base+"/update", `{"clientid":1,"adds":[{"group":"g","data":"x","timespec":253402300799999}]}`))
			for _, yes := range []string{"yes", "Yes", "TRUE", "1"} {
				s.want(s.get(base+"/group/g?owned="+yes), 200, `"id":1`)
			}
			for _, no := range []string{"no", "NO", "False", "0", ""} {
				s.want(s.get(base+"/group/g?owned="+no), 200, `[]`)
			}
			s.refused(s.get(base+"/group/g?owned=2"), 400, "owned")
		},
		// Its successor released what was renewed over the network.
		"a renewal keeps the claim and its data": func(t *testing.T, s *server, base string) {
			s.made(s.post(base+"/update", `{"clientid":1,"adds":[{"group":"g","data":"x"}]}`))
			it := s.made(s.post(base+"/claim", `{"clientid":1,"group":"g","duration":60000}`))[0]
			is := s.made(s.post(base+"/update", fmt.Sprintf(`{"clientid":1,"updates":[{"id":%d,"keep":true,"timespec":-3600000}]}`, it.ID)))[0]
			s.want(s.post(base+"/claim", `{"clientid":2,"group":"g","duration":60000}`), 200, `{"tasks":[]}`)
			if all := s.listOf(s.get(base + "/group/g?owned=1")); len(all) != 1 || all[0].Timespec != is.Timespec || *all[0].Data != "x" || is.Timespec < it.Timespec+3_500_000 {
				t.Errorf("claimed %+v, renewed %+v, there is %+v", it, is, all[0])
			}
		},
		// Its successor ended for all when one request changed and deleted the same task.
		"a task that is changed and deleted is 400 and the store goes on": func(_ *testing.T, s *server, base string) {
			s.made(s.post(base+"/update", `{"clientid":1,"adds":[{"group":"g","data":"x"}]}`))
			s.refused(s.post(base+"/update", `{"clientid":1,"updates":[{"id":1}],"deletes":[1]}`), 400, "updates: task 1")
			s.refused(s.post(base+"/update", `{"clientid":1,"updates":[{"id":1},{"id":1}]}`), 400, "updates: task 1")
			s.want(s.get(base+"/group/g"), 200, `"data":"x"`)
		},
		// It answered with what was asked.
		"there is no /test/": func(_ *testing.T, s *server, base string) { s.refused(s.get(base+"/test/"), 404, "") },
	} {
		stores++
		base := fmt.Sprint("/store/s", stores)
		t.Run(name, func(t *testing.T) {
			of := *s
			of.t = t
			test(t, &of, base)
		})
	}
}

// The original server dropped the connection of a caller that used a closed store.
func TestOriginal_WhatIsClosedOrAwayIsToldWith503(t *testing.T) {
	t.Parallel()
	f := &failing{}
	s := serve(t, f)
	for _, err := range []error{task.ErrClosed, store.ErrUnavailable} {
		f.err = err
		got := s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g"}]}`)
		if s.refused(got, 503, ""); got.header.Get("Retry-After") == "" {
			t.Errorf("%v: no Retry-After", err)
		}
	}
}

// A GET is answered by the owner, whatever node was asked: it tells of one's own updates without linear.
func TestRead_TellsOfOnesOwnUpdatesOverAnyNode(t *testing.T) {
	t.Parallel()
	a, b := serveTwo(t)
	for i := range 20 {
		here, there := a, b
		if i%2 == 1 {
			here, there = b, a
		}
		it := here.made(here.post("/store/a/update", fmt.Sprintf(`{"clientid":1,"adds":[{"group":"g%d","data":"x"}]}`, i)))[0]
		there.want(there.get(fmt.Sprint("/store/a/task/", it.ID)), 200, `"data":"x"`)
		there.want(there.get(fmt.Sprint("/store/a/tasks/", it.ID)), 200, `"data":"x"`)
		there.want(there.get(fmt.Sprint("/store/a/group/g", i)), 200, `"data":"x"`)
		there.want(there.get("/store/a/groups"), 200, fmt.Sprintf(`"g%d"`, i))
		here.want(here.post("/store/a/update", fmt.Sprintf(`{"clientid":1,"deletes":[%d]}`, it.ID)), 200, `{"tasks":[]}`)
		there.refused(there.get(fmt.Sprint("/store/a/task/", it.ID)), 404, "")
	}
}

// What is asked beyond what one may have under way is told in the form of a store.
func TestLimit_TooManyRequestsOfOneAre429WithRetryAfter(t *testing.T) {
	t.Parallel()
	p := &parking{parked: make(chan struct{})}
	c := testcluster.New(t, testcluster.Options{NoNATS: true})
	s := serveWith(t, api.Limits{InFlight: 2}, operations.Direct{Client: c.StartNode("a", nil).Client}, p)
	ended := make(chan answer, 2)
	for range 2 {
		go func() {
			a, _ := s.try("submitter", "POST", "/store/a/claim", `{"clientid":1,"group":"g","duration":60000,"wait":60000}`)
			ended <- a
		}()
		<-p.parked
	}
	got := s.post("/store/a/claim", `{"clientid":1,"group":"g","duration":60000,"wait":60000}`)
	if s.refused(got, 429, ""); got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s.stop()
	for range 2 {
		select {
		case a := <-ended:
			s.want(a, 200, `{"tasks":[]}`)
		case <-time.After(10 * time.Second):
			t.Fatal("a claim still waits")
		}
	}
}
