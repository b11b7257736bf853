// Package figures reports to Prometheus the answers of an API, and its open requests. All its names begin with
// taskledger_api_.
package figures

import (
	"cmp"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/api/doors"
	"taskledger/api/measured"
)

const (
	namespace = "taskledger"
	subsystem = "api"

	// noRoute stands for requests of no route, and cut for those whose connection was cut.
	noRoute = "(none)"
	cut     = "cut"
)

// took are the upper ends of the buckets of times, in seconds.
var took = []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300}

// Figures implements measured.Watcher.
type Figures struct {
	requests, refused *prometheus.CounterVec
	seconds           *prometheus.HistogramVec
	state             atomic.Pointer[func() measured.State]
}

// New returns figures that are registered. It takes the budget of each listener by the listener's name.
func New(reg prometheus.Registerer, budgets map[string]*doors.Budget) (*Figures, error) {
	f := &Figures{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts(named("requests_total",
			"Requests answered, by route and status.")), []string{"route", "status"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts(named("refused_total",
			"Requests refused, by the type of the problem that was the answer.")), []string{"cause"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace,
			Subsystem: subsystem,
			Name:      "request_seconds",
			Help:      "Time until requests were answered, what they have waited and streamed among it.",
			Buckets:   took,
		}, []string{"route"}),
	}
	requests := func(s measured.State) int { return s.Requests }
	streams := func(s measured.State) int { return s.Streams }
	waits := func(s measured.State) int { return s.Waits }
	all := []prometheus.Collector{
		f.requests,
		f.refused,
		f.seconds,
		f.gauge("requests_open", "Requests under way.", requests),
		f.gauge("streams_open", "Requests that stream.", streams),
		f.gauge("waits_open", "Requests that wait for something to happen.", waits),
	}
	for listener, budget := range budgets {
		all = append(all, ofBudget(listener, budget)...)
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register figures of the API: %w", err)
		}
	}
	return f, nil
}

func named(name, help string) prometheus.Opts {
	return prometheus.Opts{
		Namespace: namespace,
		Subsystem: subsystem,
		Name:      name,
		Help:      help,
	}
}

// gauge reports one field of the API's state, and 0 until there is an API.
func (f *Figures) gauge(name, help string, part func(measured.State) int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts(named(name, help)), func() float64 {
		if state := f.state.Load(); state != nil {
			return float64(part((*state)()))
		}
		return 0
	})
}

// ofBudget reports the connections that share a budget.
func ofBudget(listener string, b *doors.Budget) []prometheus.Collector {
	opts := func(name, help string) prometheus.Opts {
		o := named(name, help)
		o.ConstLabels = prometheus.Labels{"listener": listener}
		return o
	}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts("connections_open", "Connections that are open.")),
			func() float64 { return float64(b.State().Open) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts("connections_limit", "Connections that may be open.")),
			func() float64 { return float64(b.State().Most) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts(opts("connections_displaced_total",
			"Connections closed to make room for new ones.")), func() float64 { return float64(b.State().Displaced) }),
	}
}

// Answered implements measured.Watcher.
func (f *Figures) Answered(r measured.Request) {
	route, status := cmp.Or(r.Route, noRoute), cut
	if r.Status > 0 {
		status = strconv.Itoa(r.Status)
	}
	f.requests.WithLabelValues(route, status).Inc()
	f.seconds.WithLabelValues(route).Observe(r.Took.Seconds())
	if r.Refused != "" {
		f.refused.WithLabelValues(string(r.Refused)).Inc()
	}
}

// Watch asks an API what is under way, from now on.
func (f *Figures) Watch(state func() measured.State) { f.state.Store(&state) }
