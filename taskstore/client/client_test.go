package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/api/problem"
	"taskledger/api/stores/form"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
	"taskledger/taskstore"
	"taskledger/taskstore/client"
)

// against returns a client of a server that answers so.
func against(t *testing.T, answer http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return open(t, client.Options{URL: s.URL + "/base/", Token: "secret"})
}

// fixed answers all requests alike.
func fixed(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var (
	check = &item.Update{Client: 1, Key: "k", Depends: []int64{1}}
	claim = &item.Claim{Client: 1, Key: "k", Group: "g", Duration: time.Second}
)

func TestClient_SendsWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	var got []string
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprintf("%s %s %s key=%s type=%s %s", r.Method, r.RequestURI, body, r.Header.Get("Idempotency-Key"), r.Header.Get("Content-Type"), r.Header.Get("Authorization")))
		answer := map[string]string{"update": `{"tasks":[{"id":5,"group":"a/b","data64":"/w==","timespec":7,"ownerid":1},{"id":6,"group":"g","keep":true,"timespec":8,"ownerid":1}]}`, "claim": `{"tasks":[]}`,
			"tasks": `[null,{"id":8,"group":"g","data":"é","timespec":9,"ownerid":2}]`, "stats": `[{"group":"a","tasks":6,"available":1,"waiting":2,"claimed":3,"bytes":4,"oldest":5},{"group":"b"}]`, "group": `[]`}
		_, _ = io.WriteString(w, answer[strings.Split(r.URL.Path, "/")[4]])
	})
	ctx := t.Context()
	made, err := c.Update(ctx, "s", &item.Update{Client: 1, Key: "k", Depends: []int64{3}, Deletes: []int64{4}, Adds: []item.Add{{Group: "a/b", At: -5, Data: []byte{0xff}}}, Changes: []item.Change{{ID: 2, Keep: true}}})
	if err != nil || made[0].ID != 5 || made[0].At != 7 || string(made[0].Data) != "\xff" || made[1].ID != 6 || made[1].Data != nil {
		t.Errorf("made %+v, %v", made, err)
	}
	if it, err := c.Claim(ctx, "s", &item.Claim{Client: 1, Group: "g", Duration: time.Minute, Wait: time.Second, Depends: []int64{1}}); it != nil || err != nil {
		t.Errorf("claimed %v, %v", it, err)
	}
	found, err := c.Items(ctx, "s", []int64{7, 8}, true)
	if err != nil || found[0] != nil || found[1].ID != 8 || string(found[1].Data) != "é" || found[1].Owner != 2 {
		t.Errorf("found %+v, %v", found, err)
	}
	if page, more, err := c.Group(ctx, "s", item.Page{Group: "../x?", After: 9, Limit: 10, Owned: true}); len(page) != 0 || more || err != nil {
		t.Errorf("page %v, %v, %v", page, more, err)
	}
	groups := []item.Group{{Name: "a", Available: 1, Waiting: 2, Claimed: 3, Bytes: 4, Oldest: 5}, {Name: "b"}}
	if got, err := c.Groups(ctx, "s", false); err != nil || !slices.Equal(got, groups) {
		t.Errorf("groups %+v, %v", got, err)
	}
	want := []string{
		`POST /base/store/s/update {"clientid":1,"adds":[{"group":"a/b","data64":"/w==","timespec":-5}],"updates":[{"id":2,"keep":true}],"deletes":[4],"depends":[3]} key=k type=application/json Bearer secret`,
		`POST /base/store/s/claim {"clientid":1,"group":"g","duration":60000,"wait":1000,"depends":[1]} key= type=application/json Bearer secret`,
		`GET /base/store/s/tasks/7,8?linear=1  key= type= Bearer secret`,
		`GET /base/store/s/group?after=9&limit=10&name=..%2Fx%3F&owned=1  key= type= Bearer secret`,
		`GET /base/store/s/stats  key= type= Bearer secret`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestClient_EveryNameOfAStoreIsASegmentOfItsOwn(t *testing.T) {
	t.Parallel()
	var path string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.EscapedPath()
		_, _ = io.WriteString(w, "[]")
	}))
	defer s.Close()
	c := open(t, client.Options{URL: s.URL})
	for name, want := range map[string]string{".": "/store/%2E/stats", "..": "/store/%2E%2E/stats", "...": "/store/.../stats", "a:b_c-d.e": "/store/a:b_c-d.e/stats"} {
		if _, err := c.Groups(t.Context(), name, false); err != nil || path != want {
			t.Errorf("%s: asked for %s: %v", name, path, err)
		}
	}
}

func TestClient_TheRootOfAListenerIsOneStore(t *testing.T) {
	t.Parallel()
	var path string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		_, _ = io.WriteString(w, "[]")
	}))
	defer s.Close()
	c := open(t, client.Options{URL: s.URL, Root: true})
	if _, err := c.Groups(t.Context(), "whatever", false); err != nil || path != "/stats" {
		t.Errorf("asked for %s: %v", path, err)
	}
}

func TestClient_MakesOfEveryStatusTheErrorThatAnEngineReturns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		is     func(error) bool
	}{
		{400, `{"errors":["adds[0].group: empty, want 1 to 256 bytes"]}`, func(err error) bool {
			bad, is := errors.AsType[*store.InvalidError](err)
			return is && bad.Field == "adds[0].group" && bad.Problem == "empty, want 1 to 256 bytes"
		}},
		{401, `{"errors":["no token"]}`, isProblem(problem.Unauthorized)},
		{403, `{"errors":["not yours"]}`, isProblem(problem.Forbidden)},
		{404, `not even JSON`, isProblem(problem.NotFound)},
		{413, `{"errors":["large"]}`, isProblem(problem.TooLarge)},
		{500, `{"errors":["oops"]}`, isProblem(problem.Internal)},
		{302, ``, isProblem(problem.Internal)},
		{422, `{"errors":["other"]}`, func(err error) bool { return errors.Is(err, task.ErrOtherRequest) }},
		{429, `{"errors":["slowly"]}`, overloaded},
		{503, `{"errors":["full"]}`, func(err error) bool { return overloaded(err) && errors.Is(err, task.ErrUnknown) }},
		{502, `<html>`, func(err error) bool { return errors.Is(err, task.ErrUnknown) }},
		{200, `{"tasks":[`, func(err error) bool { return errors.Is(err, task.ErrUnknown) }},
		{200, ``, func(err error) bool { return errors.Is(err, task.ErrUnknown) }},
		{200, `{"tasks":[{"id":1},{"id":2}]}`, func(err error) bool { return errors.Is(err, task.ErrUnknown) }},
	} {
		cl := against(t, fixed(c.status, c.body, "Retry-After", "7"))
		_, err := cl.Update(t.Context(), "s", check)
		_, err2 := cl.Claim(t.Context(), "s", claim)
		if !c.is(err) || !c.is(err2) {
			t.Errorf("status %d, %q: got %v and %v", c.status, c.body, err, err2)
		}
	}
	for _, status := range []int{503, 504, 502, 408} {
		cl := against(t, fixed(status, `{"errors":["full"]}`))
		if _, err := cl.Items(t.Context(), "s", []int64{1}, false); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, task.ErrUnknown) {
			t.Errorf("status %d: a read got %v", status, err)
		}
	}
}

func isProblem(of problem.Type) func(error) bool {
	return func(err error) bool {
		p, is := errors.AsType[*problem.Problem](err)
		return is && p.Type == of && !errors.Is(err, task.ErrUnknown)
	}
}

func overloaded(err error) bool {
	full, is := errors.AsType[*task.OverloadError](err)
	return is && full.RetryAfter == 7*time.Second
}

func TestClient_ReadsAConflictAsItWasWritten(t *testing.T) {
	t.Parallel()
	want := &item.ConflictError{Store: "s", Problems: []item.Problem{
		{Field: "depends", ID: 7, Kind: item.NotThere, Text: "it is not there"},
		{Field: "updates", ID: 9, Kind: item.OtherGroup, Text: `it is of group "a: b", not "task 1: c"`},
		{Field: "deletes", ID: 8, Kind: "of a later release", Text: "it is something else"},
	}}
	told := form.ErrorsOf(want)
	told.Errors = append(told.Errors, "another text") // for people alone, as whatever stands between may write one
	body, err := json.Marshal(told)
	want.Problems = append(want.Problems, item.Problem{Text: "another text"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = against(t, fixed(409, string(body))).Update(t.Context(), "s", check)
	got, is := errors.AsType[*item.ConflictError](err)
	if !is || got.Store != "s" || !slices.Equal(got.Problems, want.Problems) {
		t.Errorf("got %+v, want %+v", err, want)
	}
}

func TestClient_ReadsNoMoreOfAnAnswerThanItMayHave(t *testing.T) {
	t.Parallel()
	endless := func(status int, begin, again string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, err := io.WriteString(w, begin)
			for part := strings.Repeat(again, 64<<10/len(again)); err == nil; {
				_, err = io.WriteString(w, part)
			}
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"blanks": endless(200, "", " "), "text": endless(200, `{"tasks":[{"id":1,"data":"`, "x"), "tasks": endless(200, `{"tasks":[null`, ",null"), "error": endless(500, `{"errors":["`, "x"),
	} {
		c := against(t, answer)
		if _, err := c.Update(t.Context(), "s", check); err == nil {
			t.Errorf("%s: an update was answered", name)
		}
		if _, err := c.Claim(t.Context(), "s", claim); err == nil {
			t.Errorf("%s: a claim was answered", name)
		}
		if _, err := c.Items(t.Context(), "s", []int64{1}, false); err == nil {
			t.Errorf("%s: a read was answered", name)
		}
	}
	page, more, err := against(t, endless(200, `[{"id":1,"group":"g"}`, `,{"id":2,"group":"g","data":"x"}`)).Group(t.Context(), "s", item.Page{Group: "g"})
	if len(page) != 1_000 || !more || err != nil {
		t.Errorf("%d items, %t, %v, want a page of 1,000 and more", len(page), more, err)
	}
}

func TestClient_AListThatIsCutIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, `[`, `[{"id":1}`, `[{"id":1},`, `{}`} {
		if page, _, err := against(t, fixed(200, body)).Group(t.Context(), "s", item.Page{Group: "g"}); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%q: got %v, %v", body, page, err)
		}
	}
}

func TestClient_WhatWasNotSentIsUnavailableAndWhatWasSentIsUnknown(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(nil)
	c := open(t, client.Options{URL: s.URL})
	s.Close()
	if _, err := c.Update(t.Context(), "s", check); !errors.Is(err, store.ErrUnavailable) || errors.Is(err, task.ErrUnknown) {
		t.Errorf("nobody listens: %v", err)
	}
	c = against(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(nil)
		panic(http.ErrAbortHandler)
	})
	if _, err := c.Update(t.Context(), "s", check); !errors.Is(err, task.ErrUnknown) {
		t.Errorf("the connection was lost: %v", err)
	}
	if _, err := c.Groups(t.Context(), "s", false); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the connection of a read was lost: %v", err)
	}
	sent := make(chan struct{})
	c = against(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		close(sent)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	go func() { <-sent; cancel(cause) }()
	if _, err := c.Claim(ctx, "s", claim); !errors.Is(err, task.ErrUnknown) || !errors.Is(err, cause) {
		t.Errorf("the context has ended: %v", err)
	}
}

func TestStore_RepeatsOverHTTPUnderOneKey(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	keys := make(chan string, 10)
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key")
		switch n.Add(1) {
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			fixed(503, `{"errors":["the outcome is unknown"]}`)(w, r)
		case 3:
			fixed(200, `{"tasks":[{"id"`)(w, r)
		default:
			fixed(200, `{"tasks":[{"id":1,"group":"g","timespec":1,"ownerid":1}]}`)(w, r)
		}
	})
	s, err := taskstore.Open(c, "s", taskstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.Update(t.Context(), item.Update{Adds: []item.Add{{Group: "g"}}})
	if err != nil || len(made) != 1 {
		t.Fatalf("made %v, %v", made, err)
	}
	close(keys)
	var all []string
	for key := range keys {
		all = append(all, key)
	}
	if len(all) < 4 || all[0] == "" || len(slices.Compact(all)) != 1 {
		t.Errorf("keys %q", all)
	}
}

func TestNew_RefusesBadInputByField(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:80", "ftp://x", "http://", "unix:", "http://x?y=1", "http://x#y", "http://[", "/path"} {
		if _, err := client.New(client.Options{URL: url}); !badField(err, "url") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := client.New(client.Options{URL: "http://x", Token: "a\nb"}); !badField(err, "token") {
		t.Error(err)
	}
	c := against(t, fixed(200, `{"tasks":[]}`))
	if _, err := c.Update(t.Context(), "a/b", check); !badField(err, "store") {
		t.Error(err)
	}
	for _, key := range []string{"a\nb", " a", "é"} {
		if _, err := c.Update(t.Context(), "s", &item.Update{Client: 1, Key: key, Depends: []int64{1}}); !badField(err, "key") {
			t.Errorf("%q: %v", key, err)
		}
	}
	if _, err := c.Update(t.Context(), "s", &item.Update{Client: 1}); !badField(err, "update") {
		t.Error(err)
	}
	if _, err := c.Claim(t.Context(), "s", &item.Claim{Client: 1, Group: "g"}); !badField(err, "duration") {
		t.Error(err)
	}
}

func badField(err error, field string) bool {
	bad, is := errors.AsType[*store.InvalidError](err)
	return is && bad.Field == field
}
