package prommeter_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/meter"
	"taskledger/meter/prommeter"
)

// scraped are the lines of a scrape that are values, by name with labels.
func scraped(t *testing.T, reg *prometheus.Registry, m *prommeter.Meter, v meter.Vitals) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	prommeter.Handler(reg, m, func() meter.Vitals { return v }).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	lines := map[string]string{}
	for s := bufio.NewScanner(w.Body); s.Scan(); {
		if line := s.Text(); !strings.HasPrefix(line, "#") {
			at := strings.LastIndex(line, " ")
			lines[line[:at]] = line[at+1:]
			if !strings.HasPrefix(line, "taskledger_") {
				t.Errorf("name of another: %s", line)
			}
		}
	}
	return lines
}

func newMeter(t *testing.T) (*prometheus.Registry, *prommeter.Meter) {
	t.Helper()
	reg := prometheus.NewRegistry()
	m, err := prommeter.New(reg)
	if err != nil {
		t.Fatal(err)
	}
	return reg, m
}

func TestMeter_ShowsWhatItIsTold(t *testing.T) {
	reg, m := newMeter(t)
	m.Count(meter.AttemptsStarted, "work", 3)
	m.Count(meter.AttemptsStarted, "work", 4)
	m.Count(meter.OutcomesStale, "", 1)
	m.Observe(meter.Lateness, "work", []float64{0.002, 0.5})
	m.Observe(meter.CommitLatency, "", []float64{0.004})
	got := scraped(t, reg, m, meter.Vitals{
		Slots:      5,
		TasksReady: map[string]int{"work": 9},
		Fronts: map[meter.Gauge]int64{
			meter.ItemsAvailable: 6,
			meter.ItemsWaiting:   7,
			meter.ItemsClaimed:   8,
		},
	})
	for name, want := range map[string]string{
		`taskledger_attempts_started_total{behavior="work"}`:            "7",
		`taskledger_outcomes_stale_total`:                               "1",
		`taskledger_lateness_seconds_bucket{behavior="work",le="0.03"}`: "1",
		`taskledger_lateness_seconds_count{behavior="work"}`:            "2",
		`taskledger_commit_latency_seconds_count`:                       "1",
		`taskledger_slots`:                        "5",
		`taskledger_items_available`:              "6",
		`taskledger_items_waiting`:                "7",
		`taskledger_items_claimed`:                "8",
		`taskledger_tasks_ready{behavior="work"}`: "9",
		`taskledger_ready`:                        "0",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if got = scraped(t, reg, m, meter.Vitals{}); got[`taskledger_slots`] != "0" {
		t.Errorf("slots are %s", got[`taskledger_slots`])
	}
}

// Behaviors are named by users: however many there are, and however many goroutines tell of them, nothing is lost and
// few are told apart.
func TestMeter_BoundsTheBehaviorsThatItTellsApart(t *testing.T) {
	reg, m := newMeter(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 3 * meter.MaxBehaviors {
				m.Count(meter.TasksCreated, fmt.Sprint("b-", i), 1)
			}
		})
	}
	all.Wait()
	for i := range 3 * meter.MaxBehaviors {
		m.Set(meter.TasksReady, fmt.Sprint("b-", i), 2)
	}
	m.Set(meter.TasksReady, fmt.Sprint("b-", 3*meter.MaxBehaviors-1), 0)
	rows, sum, ready := 0, 0, 0
	for name, value := range scraped(t, reg, m, meter.Vitals{}) {
		var n int
		fmt.Sscan(value, &n)
		switch {
		case strings.HasPrefix(name, "taskledger_tasks_created_total"):
			rows++
			sum += n
		case strings.HasPrefix(name, "taskledger_tasks_ready"):
			ready += n
		}
	}
	if rows != meter.MaxBehaviors+1 || sum != 4*3*meter.MaxBehaviors {
		t.Errorf("%d rows with %d tasks", rows, sum)
	}
	if want := 2*3*meter.MaxBehaviors - 2; ready != want {
		t.Errorf("%d ready, want %d", ready, want)
	}
}

func TestNew_TwiceOnOneRegistryIsAnError(t *testing.T) {
	reg, _ := newMeter(t)
	if _, err := prommeter.New(reg); err == nil {
		t.Error("registered twice")
	}
}

// Gathered once more by others, what is counted is the same.
func TestMeter_NeverLosesWhatIsToldWhileItIsRead(t *testing.T) {
	reg, m := newMeter(t)
	var telling sync.WaitGroup
	telling.Go(func() {
		for range 1000 {
			m.Count(meter.TasksCreated, "work", 1)
		}
	})
	for range 5 {
		scraped(t, reg, m, meter.Vitals{})
	}
	telling.Wait()
	if got := scraped(t, reg, m, meter.Vitals{})[`taskledger_tasks_created_total{behavior="work"}`]; got != "1000" {
		t.Errorf("counted %s", got)
	}
}

// stalled is the answer to somebody who reads nothing.
type stalled struct {
	*httptest.ResponseRecorder
	written chan struct{} // hears that something is written
	until   chan struct{}
}

// Write implements http.ResponseWriter.
func (s stalled) Write([]byte) (int, error) {
	s.written <- struct{}{}
	<-s.until
	return 0, http.ErrAbortHandler
}

// However many readers take nothing of what they have asked for, an operator's scrape is answered.
func TestFigures_AreMadeForOneWhileOthersDoNotRead(t *testing.T) {
	reg, m := newMeter(t)
	h := prommeter.Figures(reg, m, func() meter.Vitals { return meter.Vitals{Slots: 5} })
	written, until := make(chan struct{}), make(chan struct{})
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			h.ServeHTTP(stalled{httptest.NewRecorder(), written, until}, httptest.NewRequest("GET", "/metrics", nil))
		})
		<-written
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), "taskledger_slots 5") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	close(until)
	readers.Wait()
}

// A probe of a page that is none must not be green for ever.
func TestHandler_ServesThreePagesAndNothingElse(t *testing.T) {
	reg, m := newMeter(t)
	h := prommeter.Handler(reg, m, func() meter.Vitals { return meter.Vitals{Slots: 5} })
	for _, c := range []struct {
		method, path string
		status       int
		text         string
	}{
		{"GET", "/metrics", 200, "taskledger_slots 5"},
		{"GET", "/healthz", 200, "ok\n"},
		{"GET", "/readyz", 503, "not ready: the node has no session"},
		{"GET", "/ready", 404, ""},
		{"GET", "/", 404, ""},
		{"GET", "/metrics/x", 404, ""},
		{"POST", "/metrics", 405, ""},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s %s: status %d: %s", c.method, c.path, w.Code, w.Body)
		}
	}
}

func TestPages_TellWhyToWhoIsTrustedAlone(t *testing.T) {
	trusted := func(r *http.Request) bool { return r.Header.Get("X") == "1" }
	h := prommeter.Pages(http.NotFoundHandler(), func() meter.Vitals { return meter.Vitals{ShardsQuarantined: 1} }, trusted)
	for header, want := range map[string]bool{"1": true, "": false} {
		r := httptest.NewRequest("GET", "/readyz", nil)
		r.Header.Set("X", header)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Body.String(); w.Code != 503 || (got == "not ready\n") == want || strings.Contains(got, "quarantined") != want {
			t.Errorf("%q: status %d: %s", header, w.Code, got)
		}
	}
}
