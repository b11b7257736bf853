// Package prommeter is a meter on the Prometheus client library. All its names begin with taskledger_.
package prommeter

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"taskledger/meter"
)

const (
	namespace = "taskledger"
	label     = "behavior"

	// maxScrapes bounds the scrapes made at once; one more is turned away.
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Meter implements meter.Meter.
type Meter struct {
	counters   [len(meter.Counters)]*prometheus.CounterVec
	histograms [len(meter.Histograms)]*prometheus.HistogramVec
	gauges     [len(meter.Gauges)]*prometheus.GaugeVec

	rows atomic.Pointer[map[string]*row] // by behavior; "" stands for no behavior
	mu   sync.Mutex                      // of whoever adds a row, or sets a gauge of meter.Other

	others [len(meter.Gauges)]map[string]float64 // what meter.Other sums up; 0 is left out
}

var _ meter.Meter = (*Meter)(nil)

// row holds the series of a behavior.
type row struct {
	label      string // "" of no behavior
	counters   [len(meter.Counters)]prometheus.Counter
	histograms [len(meter.Histograms)]prometheus.Observer
	gauges     [len(meter.Gauges)]prometheus.Gauge
}

// New returns a meter that it has registered with reg, or the error of that.
func New(reg prometheus.Registerer) (*Meter, error) {
	m := new(Meter)
	var all []prometheus.Collector
	for i, d := range meter.Counters {
		m.counters[i] = prometheus.NewCounterVec(
			prometheus.CounterOpts{Namespace: namespace, Name: d.Name, Help: d.Help},
			labels(d),
		)
		all = append(all, m.counters[i])
	}
	for i, d := range meter.Histograms {
		m.histograms[i] = prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Namespace: namespace, Name: d.Name, Help: d.Help, Buckets: d.Bounds},
			labels(d),
		)
		all = append(all, m.histograms[i])
	}
	for i, d := range meter.Gauges {
		m.gauges[i] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: d.Name, Help: d.Help},
			labels(d))
		all = append(all, m.gauges[i])
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	m.rows.Store(&map[string]*row{"": m.newRow(""), meter.Other: m.newRow(meter.Other)})
	return m, nil
}

func labels(d meter.Description) []string {
	if d.ByBehavior {
		return []string{label}
	}
	return nil
}

// newRow makes the metrics of a behavior, or with "" those of none.
func (m *Meter) newRow(behavior string) *row {
	r := &row{label: behavior}
	byBehavior := behavior != ""
	values := []string{behavior}
	if !byBehavior {
		values = nil
	}
	for i, d := range meter.Counters {
		if d.ByBehavior == byBehavior {
			r.counters[i] = m.counters[i].WithLabelValues(values...)
		}
	}
	for i, d := range meter.Histograms {
		if d.ByBehavior == byBehavior {
			r.histograms[i] = m.histograms[i].WithLabelValues(values...)
		}
	}
	for i, d := range meter.Gauges {
		if d.ByBehavior == byBehavior {
			r.gauges[i] = m.gauges[i].WithLabelValues(values...)
		}
	}
	return r
}

// maxRows counts a row for each behavior, one for no behavior, and one for the others.
const maxRows = meter.MaxBehaviors + 2

// row returns that of a behavior, meter.Other when there are too many. It locks for a behavior that is new.
func (m *Meter) row(behavior string) *row {
	rows := *m.rows.Load()
	if r := rows[behavior]; r != nil {
		return r
	}
	if len(rows) >= maxRows {
		return rows[meter.Other]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	rows = *m.rows.Load()
	if r := rows[behavior]; r != nil {
		return r
	}
	if len(rows) >= maxRows {
		return rows[meter.Other]
	}
	r := m.newRow(behavior)
	grown := maps.Clone(rows)
	grown[behavior] = r
	m.rows.Store(&grown)
	return r
}

// Count implements meter.Meter.
func (m *Meter) Count(c meter.Counter, behavior string, n int64) {
	m.row(behavior).counters[c].Add(float64(n))
}

// Observe implements meter.Meter.
func (m *Meter) Observe(h meter.Histogram, behavior string, values []float64) {
	to := m.row(behavior).histograms[h]
	for _, v := range values {
		to.Observe(v)
	}
}

// Set implements meter.Meter. The gauge of meter.Other is the sum of those that it stands for.
func (m *Meter) Set(g meter.Gauge, behavior string, value float64) {
	r := m.row(behavior)
	if r.label != meter.Other {
		r.gauges[g].Set(value)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.others[g] == nil {
		m.others[g] = map[string]float64{}
	}
	m.others[g][behavior] = value
	if value == 0 {
		delete(m.others[g], behavior)
	}
	sum := 0.0
	for _, v := range m.others[g] {
		sum += v
	}
	r.gauges[g].Set(sum)
}

// Handler serves three pages, and at other paths 404: /metrics, as Figures does; /healthz, which is 200 as long as
// the process serves; and /readyz, which is 200 where the node is ready, and else 503, as Pages has it.
func Handler(registered prometheus.Gatherer, m *Meter, vitals func() meter.Vitals) http.Handler {
	return Pages(Figures(registered, m, vitals), vitals, nil)
}

// Pages is Handler with a handler for /metrics. At /readyz, callers that trusted accepts read why the node is not
// ready, and what is degraded; others read yes or no. nil trusts everybody.
func Pages(figures http.Handler, vitals func() meter.Vitals, trusted func(*http.Request) bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", figures)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { tell(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		now := vitals()
		status, lines, why := http.StatusOK, []string{"ready"}, now.NotReady()
		if why != "" {
			status, lines = http.StatusServiceUnavailable, []string{"not ready"}
		}
		if trusted == nil || trusted(r) {
			if why != "" {
				lines[0] += ": " + why
			}
			for _, what := range now.Degraded() {
				lines = append(lines, "degraded: "+what)
			}
		}
		tell(w, status, lines...)
	})
	return mux
}

func tell(w http.ResponseWriter, status int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.Join(lines, "\n")+"\n") // who has gone needs no answer
}

// Figures serves what is registered, at any path, with the gauges of m as vitals tell them at that time. It writes its
// answer at once.
func Figures(registered prometheus.Gatherer, m *Meter, vitals func() meter.Vitals) http.Handler {
	inner := promhttp.HandlerFor(registered, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout})
	var one sync.Mutex
	var before meter.Vitals
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		now := vitals()
		now.Tell(m, &before)
		before = now
		one.Unlock()
		page := page{header: http.Header{}, status: http.StatusOK}
		inner.ServeHTTP(&page, r)
		maps.Copy(w.Header(), page.header)
		w.WriteHeader(page.status)
		_, _ = w.Write(page.body.Bytes()) // who has gone needs no answer
	})
}

// page holds an answer until it is made, so that a slow reader keeps nobody from making another.
type page struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (p *page) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *page) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *page) Write(data []byte) (int, error) { return p.body.Write(data) }
