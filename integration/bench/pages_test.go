package bench_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/api/ui"
)

// notLookedAt lists the pages at which viewers of the benchmark do not look, and why.
var notLookedAt = map[string]string{
	"/ui/static/{hash}/{file}":  "a browser keeps it",
	"/ui/login":                 "it does not refresh itself",
	"/ui/matching":              "it does not refresh itself",
	"/ui/submit":                "it does not refresh itself",
	"/ui/stores":                "it does not refresh itself",
	"/ui/tasks/{id}/state":      "it does not refresh itself",
	"/ui/jobs/{job}":            "it refreshes itself while the change runs alone",
	"/ui/tasks.jsonl":           "a download",
	"/ui/tasks/{id}/export":     "a download",
	"/ui/checkpoint.txt":        "a download",
	"/ui/checkpoint":            "it does not refresh itself",
	"/ui/shards/{shard}/export": "a download",
}

func TestPages_AreAllThatRefreshThemselves(t *testing.T) {
	t.Parallel()
	u, err := ui.New(ui.Config{Tokens: tokens(viewerToken)})
	if err != nil {
		t.Fatal(err)
	}
	mux, left := http.NewServeMux(), map[string]bool{}
	for _, r := range u.Routes() {
		if r.Method == http.MethodGet {
			mux.HandleFunc("GET "+r.Pattern, func(http.ResponseWriter, *http.Request) {})
			left[r.Pattern] = true
		}
	}
	f, s := newFill(), newSights()
	for _, path := range slices.Concat(f.pages(), s.pages(), s.once()) {
		_, pattern := mux.Handler(httptest.NewRequest(http.MethodGet, path, nil))
		pattern = strings.TrimPrefix(pattern, "GET ")
		if pattern == "" || notLookedAt[pattern] != "" {
			t.Errorf("viewers look at %s, of the route %q", path, pattern)
		}
		delete(left, pattern)
	}
	for pattern := range left {
		if notLookedAt[pattern] == "" {
			t.Errorf("no viewer looks at %s", pattern)
		}
	}
	for pattern := range notLookedAt {
		if !left[pattern] {
			t.Errorf("there is no page %s that viewers leave out", pattern)
		}
	}
}

// A page that does not refresh itself is asked for once, and the next order goes on behind it.
func TestLook_AsksOnceForWhatDoesNotRefreshItself(t *testing.T) {
	t.Parallel()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if want := "Bearer " + secretOf(0); r.Header.Get("Authorization") != want {
			t.Errorf("asked with %q", r.Header.Get("Authorization"))
		}
		asked = append(asked, r.URL.Path)
	}))
	defer s.Close()
	o := looking{
		Network: "tcp",
		Address: s.Listener.Addr().String(),
		Paths:   []string{"/once", "/a"},
		Once:    []string{"/once"},
		Viewers: 1,
		Lasts:   50 * time.Millisecond,
	}
	at := map[int]int{}
	if _, err := o.look(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	for turn := range slices.Chunk(asked, 1+refreshes) {
		if whole := []string{"/once", "/a", "/a", "/a", "/a", "/a"}; !slices.Equal(turn, whole[:len(turn)]) {
			t.Errorf("asked %q", turn)
		}
	}
	next := []string{"/once", "/a"}[at[0]%2]
	asked = nil
	if _, err := o.look(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if len(asked) == 0 || asked[0] != next {
		t.Errorf("asked %q after the first order, want %s first", asked, next)
	}
}

// viewed returns what a process of viewers tells of one order.
func viewed(t *testing.T, s *httptest.Server) (told seen) {
	t.Helper()
	var in, out bytes.Buffer
	check(t, json.NewEncoder(&in).Encode(looking{
		Network: "tcp",
		Address: s.Listener.Addr().String(),
		Paths:   []string{"/a", "/b"},
		Viewers: 4,
		Lasts:   300 * time.Millisecond,
		Every:   time.Millisecond,
	}))
	if err := lookAtPages(t.Context(), json.NewDecoder(&in), json.NewEncoder(&out)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	check(t, json.NewDecoder(&out).Decode(&told))
	return told
}

func TestLook_AsksForPagesAgainByTheirTags(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	whole, same := map[string]int{}, map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		tag := `"` + r.URL.Path + `"`
		w.Header().Set("ETag", tag)
		switch has := r.Header.Get("If-None-Match"); has {
		case tag:
			same[r.URL.Path]++
			w.WriteHeader(http.StatusNotModified)
		case "":
			whole[r.URL.Path]++
		default:
			t.Errorf("%s is asked for with %s", r.URL.Path, has)
		}
	}))
	defer s.Close()
	told := viewed(t, s)
	if told.Err != "" {
		t.Fatal(told.Err)
	}
	for _, path := range []string{"/a", "/b"} {
		if n := len(told.Took[path]); n == 0 || n != whole[path]+same[path] || whole[path] == 0 {
			t.Errorf("%s: %d times, of %d and %d questions", path, n, whole[path], same[path])
		}
	}
}

func TestLook_CountsPagesThatLackAPart(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"a"`)
		if r.Header.Get("If-None-Match") != "" {
			t.Error("a page that lacked a part was kept")
		}
		asked.Add(1)
		fmt.Fprint(w, "<p>This page is not whole:</p>")
	}))
	defer s.Close()
	if told := viewed(t, s); told.Cut != int(asked.Load()) || told.Err != "" {
		t.Errorf("%+v, want %d pages that lacked a part", told, asked.Load())
	}
}

func TestLook_TellsAPageThatDoesNotCome(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if told := viewed(t, s); !strings.Contains(told.Err, "404") {
		t.Errorf("%+v", told)
	}
}
