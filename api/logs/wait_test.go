package logs_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api"
	"taskledger/api/logs"
	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/tasklog"
)

// late is an answer that has come after a while.
type late struct {
	*httptest.ResponseRecorder
	took time.Duration
}

// later asks for a page, and returns the answer when it has come.
func (s *server) later(secret, path string) <-chan late {
	got := make(chan late, 1)
	go func() {
		began := time.Now()
		a := s.get(secret, path)
		got <- late{a, time.Since(began)}
	}()
	return got
}

func TestWait_HoldsUntilALineComesOrTheTaskEndsOrTheTimeIsOver(t *testing.T) {
	const moment = 10 * time.Second // at which something happens
	line := func(t *testing.T, w *world) { w.write(t, "x", 2, 1, 1) }
	end := func(_ *testing.T, w *world) { w.set(func() { w.ended = true }) }
	for name, c := range map[string]struct {
		wait        string
		happens     func(t *testing.T, w *world)
		least, most time.Duration
		want        string
	}{
		"a line":        {"60s", line, moment, moment + 2*time.Second, `"attempt":2`},
		"an end":        {"60s", end, moment, moment + 2*time.Second, `{"lines":[],"cursor":`},
		"the time":      {"7s", line, 7 * time.Second, 7 * time.Second, `{"lines":[],"cursor":`},
		"no time":       {"0s", line, 0, 0, `{"lines":[],"cursor":`},
		"the last time": {"10001ms", line, moment + time.Millisecond, moment + time.Millisecond, `"attempt":2`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.write(t, "x", 1, 1, 1)
				s := serve(t, w)
				got := s.later("viewer", "x/logs?wait="+c.wait+"&cursor="+s.page("x/logs").Cursor)
				time.Sleep(moment)
				c.happens(t, w)
				a := <-got
				s.want(a.ResponseRecorder, 200, c.want)
				if a.took < c.least || a.took > c.most {
					t.Errorf("answered after %s, want %s to %s", a.took, c.least, c.most)
				}
			})
		})
	}
}

func TestWait_OfATaskThatHasWrittenEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.write(t, "x", 1, 1, 1)
		s := serve(t, w)
		if a := <-s.later("viewer", "x/logs?wait=60s"); a.took > 0 {
			t.Errorf("answered after %s", a.took)
		}
		w.set(func() { w.ended = true })
		cursor := s.page("x/logs").Cursor
		if a := <-s.later("viewer", "x/logs?wait=60s&cursor="+cursor); a.took > 0 {
			t.Errorf("of one that has ended: answered after %s", a.took)
		}
	})
}

// A log may be long, and have few lines of the level that is waited for.
func TestWait_GoesOnWhereItsLastQuestionEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		quiet := tasklog.Batch{First: 1, Lines: []tasklog.Line{{At: begin, Text: "of level info"}}}
		if _, err := w.store.Append(t.Context(), attemptOf("x", 1), tasklog.End{}, quiet); err != nil {
			t.Fatal(err)
		}
		w.set(func() { w.attempts["x"] = 1 })
		s := serve(t, w)
		s.want((<-s.later("viewer", "x/logs?wait=2s&level=error")).ResponseRecorder, 200, `"lines":[]`)
		end := tasklog.Cursor{Place: tasklog.Place{Attempt: 1, Line: 2}}.Text("x", life)
		for i, at := range w.cursors[1:] {
			if at != end {
				t.Errorf("question %d begins at %q, want %q", i+2, at, end)
			}
		}
		if len(w.cursors) < 3 {
			t.Errorf("%d questions", len(w.cursors))
		}
	})
}

// Requests that wait do not keep the places of large answers.
func TestWait_OfManyHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.write(t, "x", 1, 1, 1)
		s := serve(t, w)
		waiting := "x/logs?wait=5s&cursor=" + s.page("x/logs").Cursor
		var all []<-chan late
		for range 100 {
			all = append(all, s.later("viewer", waiting))
		}
		synctest.Wait()
		if a := <-s.later("viewer", "x/logs"); a.Code != 200 || a.took > 0 {
			t.Errorf("answered with %d after %s", a.Code, a.took)
		}
		for _, one := range all {
			if a := <-one; a.Code != 200 || a.took != 5*time.Second {
				t.Errorf("one that waits: %d after %s: %s", a.Code, a.took, a.Body)
			}
		}
	})
}

// revocable is one token that may be taken away.
type revocable struct{ gone atomic.Bool }

func (r *revocable) Find(string) *token.Token {
	if r.gone.Load() {
		return nil
	}
	return everybody["viewer"]
}

func TestWait_EndsWithTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, tokens := newWorld(), &revocable{}
		w.write(t, "x", 1, 1, 1)
		a, err := api.New(api.Config{Client: operations.Direct{}, Tokens: tokens, Routes: logs.Routes(w)})
		if err != nil {
			t.Fatal(err)
		}
		s := &server{t: t, api: a}
		got := s.later("viewer", "x/logs?wait=60s&cursor="+s.page("x/logs").Cursor)
		synctest.Wait()
		tokens.gone.Store(true)
		if a := <-got; a.Code != 401 || a.took > 10*time.Second {
			t.Errorf("answered with %d after %s: %s", a.Code, a.took, a.Body)
		}
	})
}

func TestWait_IsAnsweredWhenTheServerDrains(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.write(t, "x", 1, 1, 1)
	s := serve(t, w)
	cursor := s.page("x/logs").Cursor
	w.asked = make(chan struct{}, 1000)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.api.Serve(ctx, l) }()
	got := make(chan string, 1)
	go func() {
		url := fmt.Sprintf("http://%s/v1/tasks/x/logs?wait=60s&cursor=%s", l.Addr(), cursor)
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
		if err != nil {
			got <- err.Error()
			return
		}
		r.Header.Set("Authorization", "Bearer viewer")
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		a, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			got <- err.Error()
			return
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		got <- fmt.Sprint(a.StatusCode, " ", string(text))
	}()
	<-w.asked
	stop()
	if text := <-got; !strings.HasPrefix(text, `200 {"lines":[],"cursor":"`) {
		t.Errorf("answered %s", text)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
