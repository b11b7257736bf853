package problem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"taskledger/api/problem"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

func TestOf_AnErrorOfTheEngineComesBackAtTheClient(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		is     problem.Type
	}{
		{&store.InvalidError{Field: "id", Problem: "a space"}, 400, problem.Invalid},
		{&task.LimitError{Field: "key", Limit: 128, Got: 200}, 400, problem.Limit},
		{&task.LimitError{Field: "priority", Limit: 9, Got: -1}, 400, problem.Limit},
		{&task.LimitError{Field: "parameters", Limit: 262144, Got: 262145}, 413, problem.TooLarge},
		{&task.StateError{Task: "a/1", Problem: "retry: it is RUNNING", Changed: true}, 409, problem.State},
		{errors.Join(&task.StateError{Task: "a/1", Problem: "other parameters"}, task.ErrOtherRequest), 422, problem.KeyReused},
		{fmt.Errorf("submit: %w", task.ErrUnknownBehavior), 422, problem.UnknownBehavior},
		{&task.OverloadError{Cause: "the store is full", RetryAfter: 5 * time.Second}, 503, problem.Overloaded},
		{fmt.Errorf("a/1: %w", task.ErrNotFound), 404, problem.NotFound},
		{fmt.Errorf("schedule a: %w", schedule.ErrNotFound), 404, problem.NotFound},
		{fmt.Errorf("schedule a: %w", schedule.ErrChanged), 412, problem.Changed},
		{task.ErrNotKept, 410, problem.NotKept},
		{store.ErrTrimmed, 410, problem.NotKept},
		{store.ErrUnavailable, 503, problem.Unavailable},
		{task.ErrClosed, 503, problem.Unavailable},
		{fmt.Errorf("%w: %w", task.ErrUnknown, context.DeadlineExceeded), 503, problem.OutcomeUnknown},
		{task.ErrNoneSubmitted, 409, problem.NoneSubmitted},
		{context.DeadlineExceeded, 504, problem.Timeout},
	} {
		w := httptest.NewRecorder()
		problem.Of(c.err).Write(w)
		var got problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%v: %v", c.err, err)
		}
		if w.Code != c.status || got.Status != c.status || got.Type != c.is || w.Header().Get("Content-Type") != problem.ContentType {
			t.Errorf("%v: %d %+v", c.err, w.Code, got)
		}
		if after := w.Header().Get("Retry-After"); (after != "") != (c.status == 503) {
			t.Errorf("%v: Retry-After %q", c.err, after)
		}
		back := got.Err()
		if same := reflect.TypeOf(back) == reflect.TypeOf(c.err) && back.Error() == c.err.Error(); !same && !matches(c.err, back) {
			t.Errorf("%v came back as %#v", c.err, back)
		}
	}
}

// matches reports whether an error wraps what the other one is.
func matches(was, is error) bool {
	for _, sentinel := range []error{
		task.ErrOtherRequest, task.ErrUnknownBehavior, task.ErrNotFound, task.ErrUnknown, task.ErrNoneSubmitted,
		task.ErrNotKept, store.ErrTrimmed, store.ErrUnavailable, schedule.ErrChanged, schedule.ErrNotFound,
	} {
		if errors.Is(was, sentinel) {
			return errors.Is(is, sentinel)
		}
	}
	if errors.Is(was, task.ErrClosed) {
		return errors.Is(is, store.ErrUnavailable)
	}
	return errors.Is(was, context.DeadlineExceeded) && errors.Is(is, context.DeadlineExceeded)
}

// A client has errors of the engine alone to branch on, but for what only a server knows.
func TestErr_OfATypeWithoutAnErrorOfTheEngineIsTheProblem(t *testing.T) {
	own := map[problem.Type]bool{
		problem.Malformed:    true,
		problem.Slow:         true,
		problem.Unauthorized: true,
		problem.Forbidden:    true,
		problem.Method:       true,
		problem.MediaType:    true,
		problem.OtherCount:   true,
		problem.Internal:     true,
	}
	for _, is := range problem.Types() {
		p := problem.New(is, "detail")
		n := int64(1)
		p.Field, p.Limit, p.Got = "field", &n, &n
		if back := p.Err(); (back == error(p)) != own[is] {
			t.Errorf("%s comes back as %#v", is, back)
		}
		if again := problem.Of(p.Err()); again.Type != is && is != problem.TooMany && is != problem.TooLarge {
			t.Errorf("%s comes back, and goes out again as %s", is, again.Type)
		}
	}
}

func TestOf_WhatIsNotOfTheEngineTellsNothing(t *testing.T) {
	p := problem.Of(errors.New("dial tcp 10.0.0.1: secret"))
	if p.Status != 500 || p.Type != problem.Internal || strings.Contains(p.Error(), "secret") {
		t.Errorf("%+v", p)
	}
	if p := problem.Of(fmt.Errorf("read: %w", problem.New(problem.Malformed, "no JSON"))); p.Status != 400 || p.Detail != "no JSON" {
		t.Errorf("%+v", p)
	}
}

func TestType_HasAStatusAndATitle(t *testing.T) {
	for _, is := range problem.Types() {
		if p := problem.New(is, ""); p.Status < 400 || p.Title == "" || p.Error() != p.Title {
			t.Errorf("%s: %+v", is, p)
		}
	}
}

func TestType_OfALaterReleaseIsKept(t *testing.T) {
	var p problem.Problem
	if err := json.Unmarshal([]byte(`{"type":"urn:taskledger:problem:new","title":"T","status":418}`), &p); err != nil || p.Err().Error() != "T" {
		t.Errorf("%+v, %v", p, err)
	}
	if err := json.Unmarshal([]byte(`{"type":"about:blank"}`), &p); err == nil {
		t.Error("a type of somebody else was taken")
	}
}

// A client cannot branch on what it cannot know.
func TestTypes_StandInTheDocuments(t *testing.T) {
	text, err := os.ReadFile("../../docs/http-api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, is := range problem.Types() {
		if row := fmt.Sprintf("\n- `%s` (%d):", is, problem.New(is, "").Status); !strings.Contains(string(text), row) {
			t.Errorf("docs/http-api.md has no row %q", row)
		}
	}
}
