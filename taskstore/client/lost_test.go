package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/taskstore"
	"taskledger/taskstore/client"
)

// roundTripper sends requests as a function does.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// says answers each request the same.
func says(status int, body string, header ...string) *http.Client {
	return &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		h := http.Header{}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	})}
}

// The first answer to each change is lost after it was made, the second is a refusal for now: by its key it is made once.
func TestClient_ChangeWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	url, _ := serve(t, testcluster.New(t, testcluster.Options{Shards: 4}))
	under := sender(t)
	var mu sync.Mutex
	tries := map[string]int{}
	s := open(t, client.Config{URL: url, Store: "s", Token: "submitter", HTTP: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		key := r.Header.Get("Idempotency-Key")
		mu.Lock()
		tries[key]++
		try := tries[key]
		mu.Unlock()
		if key != "" && try == 2 {
			return says(503, `{"errors":["outcome unknown"]}`, "Retry-After", "1").Transport.RoundTrip(r)
		}
		resp, err := under.Transport.RoundTrip(r)
		if err == nil && key != "" && try == 1 {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return nil, errors.New("the answer is lost")
		}
		return resp, err
	})}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := s.Update(ctx, &taskstore.Update{Adds: []taskstore.Add{{Group: "g"}}}); err != nil {
				t.Errorf("update: %v", err)
			}
			if it, err := s.Claim(ctx, &taskstore.Claim{Group: "g", Duration: time.Hour}); err != nil || it == nil {
				t.Errorf("claim: %v, %v", it, err)
			}
		})
	}
	all.Wait()
	n := 0
	for it, err := range s.Group(ctx, taskstore.Page{Group: "g", Owned: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; it.Owner != s.Client() || it.ID <= 0 {
			t.Errorf("left %+v", it)
		}
	}
	for it, err := range s.Group(ctx, taskstore.Page{Group: "g"}) {
		t.Errorf("not claimed: %+v, %v", it, err)
	}
	if it, err := s.Task(ctx, 41); n != 20 || it != nil || err != nil {
		t.Errorf("%d items of 20; 20 adds and 20 claims make no id 41: %v, %v", n, it, err)
	}
	for key, n := range tries {
		if key != "" && n != 3 {
			t.Errorf("key %s was sent %d times, want 3", key, n)
		}
	}
}

func TestClient_RepeatsUntilItsContextEnds(t *testing.T) {
	var n atomic.Int64
	s := open(t, client.Config{URL: "http://nowhere", HTTP: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		n.Add(1)
		return nil, errors.New("refused")
	})}})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Update(ctx, &taskstore.Update{Depends: []int64{1}})
	if !errors.Is(err, taskstore.ErrUnknown) || n.Load() < 3 {
		t.Errorf("%v after %d tries", err, n.Load())
	}
	if _, err := s.Groups(ctx); !errors.Is(err, taskstore.ErrUnavailable) {
		t.Errorf("groups: %v", err)
	}
}

func TestClient_HasAtMost64KeyedCallsUnderWay(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	full, goOn := make(chan struct{}), make(chan struct{})
	s := open(t, client.Config{URL: "http://nowhere", HTTP: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		if now++; now > most {
			if most = now; most == 64 {
				close(full)
			}
		}
		mu.Unlock()
		<-goOn
		mu.Lock()
		now--
		mu.Unlock()
		return says(200, `{"tasks":[]}`).Transport.RoundTrip(r)
	})}})
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if _, err := s.Update(t.Context(), &taskstore.Update{Depends: []int64{1}}); err != nil {
				t.Errorf("update: %v", err)
			}
		})
	}
	<-full
	close(goOn)
	all.Wait()
	if most != 64 {
		t.Errorf("%d calls were under way", most)
	}
}

func TestClient_RefusalsComeBackAsErrorsByName(t *testing.T) {
	ask := func(status int, body string, header ...string) error {
		s := open(t, client.Config{URL: "http://nowhere", Store: "s", HTTP: says(status, body, header...)})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := s.Update(ctx, &taskstore.Update{Depends: []int64{1}})
		return err
	}
	if c, is := errors.AsType[*taskstore.ConflictError](ask(409, `{"errors":["depends: task 7: it is not there","adds: no room","strange"]}`)); !is ||
		fmt.Sprint(c.Problems) != "[depends: task 7: it is not there adds: no room : strange]" || c.Problems[0].ID != 7 {
		t.Errorf("409: %+v", c)
	}
	if e, is := errors.AsType[*taskstore.InvalidError](ask(400, `{"errors":["duration: -1: want more"]}`)); !is || e.Field != "duration" || e.Problem != "-1: want more" {
		t.Errorf("400: %+v", e)
	}
	if err := ask(422, `{"errors":["the key"]}`); !errors.Is(err, taskstore.ErrOtherRequest) {
		t.Errorf("422: %v", err)
	}
	if e, is := errors.AsType[*taskstore.OverloadError](ask(429, `{"errors":["slow down"]}`, "Retry-After", "7")); !is || e.RetryAfter != 7*time.Second {
		t.Errorf("429: %+v", e)
	}
	if err := ask(503, `no JSON`, "Retry-After", "1"); !errors.Is(err, taskstore.ErrUnknown) || !strings.Contains(err.Error(), "no JSON") {
		t.Errorf("503: %v", err)
	}
	if e, is := errors.AsType[*client.StatusError](ask(403, `{"errors":["not yours"]}`)); !is || e.Status != 403 || e.Texts[0] != "not yours" {
		t.Errorf("403: %+v", e)
	}
	for _, body := range []string{``, `{`, `[]`, `{"tasks":[null,null]}`, `{"tasks":[{"id":"x"}]}`, strings.Repeat(" ", 5<<20)} {
		if err := ask(200, body); err == nil {
			t.Errorf("answer %.20q is taken", body)
		}
	}
}

func TestClient_AnswersWithoutEndAreNotReadToTheEnd(t *testing.T) {
	for _, begin := range []string{`[{"id":1,"group":"`, `["`, `[`} {
		read := 0
		s := open(t, client.Config{URL: "http://nowhere", HTTP: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			endless := io.MultiReader(strings.NewReader(begin), readerFunc(func(p []byte) (int, error) {
				for i := range p {
					p[i] = ' '
				}
				read += len(p)
				return len(p), nil
			}))
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(endless)}, nil
		})}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := s.Tasks(ctx, 1)
		cancel()
		if err == nil || read > 100<<20 {
			t.Errorf("%s: %v after %d bytes", begin, err, read)
		}
	}
}

type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestClient_ReachesAStoreAtTheRootOfItsListener(t *testing.T) {
	url, root := serve(t, testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 4}))
	http := sender(t)
	made, err := open(t, client.Config{URL: root, Token: "submitter", HTTP: http}).Update(t.Context(), &taskstore.Update{Adds: []taskstore.Add{{Group: "g"}}})
	if err != nil {
		t.Fatal(err)
	}
	it, err := open(t, client.Config{URL: url + "/", Store: "one", Token: "viewer", HTTP: http}).Task(t.Context(), made[0].ID)
	if err != nil || it == nil || it.Group != "g" {
		t.Errorf("%+v, %v", it, err)
	}
}

func TestOpen_RefusesWhatIsNoAddress(t *testing.T) {
	for _, cfg := range []client.Config{{}, {URL: "nowhere"}, {URL: "ftp://x"}, {URL: "http://x?y"}, {URL: "http://x", Store: "a/b"}, {URL: "http://x", Client: -1}} {
		if _, err := client.Open(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
