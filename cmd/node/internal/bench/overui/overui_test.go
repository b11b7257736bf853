package overui_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"taskledger/cmd/node/internal/bench/overui"
)

func TestResult_WithinTellsTheBoundThatIsBroken(t *testing.T) {
	r := overui.Result{
		LoadRatio: 0.7,
		IdlePages: 10,
		IdleP99Ms: 20,
		Pages:     10,
		P99Ms:     240,
		PageRatio: 12,
	}
	for says, b := range map[string]overui.Bounds{
		"":         {Load: 0.7, Page: 12},
		"0.80":     {Load: 0.8},
		"240.0 ms": {Page: 10},
	} {
		if err := r.Within(b); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", b, err, says)
		}
	}
	cut := r
	cut.Cut = 3
	if err := cut.Within(overui.Bounds{Page: 12}); err == nil || !strings.Contains(err.Error(), "3 of 20 pages lacked a part") {
		t.Errorf("%+v: %v", cut, err)
	}
	for _, none := range []func(*overui.Result){
		func(r *overui.Result) { r.Pages = 0 },
		func(r *overui.Result) { r.IdlePages = 0 },
	} {
		wrong := r
		none(&wrong)
		if err := wrong.Within(overui.Bounds{}); err == nil || !strings.Contains(err.Error(), "too few") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// order returns an order for a process of viewers.
func order(t *testing.T, address string) string {
	t.Helper()
	line, err := json.Marshal(map[string]any{
		"Network": "tcp",
		"Address": address,
		"Paths":   []string{"/a", "/b"},
		"Viewers": 4,
		"Micros":  300_000,
		"Every":   1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(line) + "\n"
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
	var out bytes.Buffer
	if err := overui.Look(t.Context(), strings.NewReader(order(t, s.Listener.Addr().String())), &out); err != nil {
		t.Fatal(err)
	}
	var told struct {
		Micros map[string][]int64
		Err    string
	}
	if err := json.Unmarshal(out.Bytes(), &told); err != nil || told.Err != "" {
		t.Fatal(err, told.Err)
	}
	for _, path := range []string{"/a", "/b"} {
		if n := len(told.Micros[path]); n == 0 || n != whole[path]+same[path] || whole[path] == 0 {
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
	var out bytes.Buffer
	if err := overui.Look(t.Context(), strings.NewReader(order(t, s.Listener.Addr().String())), &out); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(`"Cut":%d,"Err":""`, asked.Load()); !strings.Contains(out.String(), want) {
		t.Errorf("%s, want %s", out.String(), want)
	}
}

func TestLook_TellsAPageThatDoesNotCome(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	var out bytes.Buffer
	if err := overui.Look(t.Context(), strings.NewReader(order(t, s.Listener.Addr().String())), &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "404") {
		t.Error(out.String())
	}
}
