// Package monitor serves what a node measures, and whether it is ready, over HTTP on a loopback address. Who asks is not known there, and
// nothing is encrypted: every user of the machine can read it, and nobody else.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/api/doors"
	"taskledger/cmd/node/internal/openfiles"
	"taskledger/meter"
	"taskledger/meter/prommeter"
)

const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = time.Minute
	maxHeaderBytes = 8 << 10
	// closeWithin is what requests under way get when the node ends.
	closeWithin = time.Second
)

// Monitor is what a node measures, and a listener at which that, health and readiness are served.
type Monitor struct {
	listener net.Listener // nil = none
	budget   *doors.Budget
	registry *prometheus.Registry
	meter    *prommeter.Meter
	log      *slog.Logger
}

// Check refuses an address that others than users of this machine could reach.
func Check(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%w: want an address and a port, such as 127.0.0.1:9464", err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("port %q: want 0 to 65535", port)
	}
	if !loopback(host) {
		return fmt.Errorf("%q is no loopback address: whoever reaches it would read everything, unasked and unencrypted; want one such as 127.0.0.1", host)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Open listens at an address that Check allows; port 0 is a free one. "" listens nowhere.
func Open(address string, log *slog.Logger) (m *Monitor, err error) {
	m = &Monitor{registry: prometheus.NewRegistry(), budget: doors.New(openfiles.Metrics), log: log}
	if m.meter, err = prommeter.New(m.registry); err != nil || address == "" {
		return m, err
	}
	if err := Check(address); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() { // a name that leads elsewhere
		return nil, errors.Join(fmt.Errorf("listen for metrics: %s leads to %s, which is no loopback address", address, l.Addr()), l.Close())
	}
	m.listener = m.budget.Listen(l)
	return m, nil
}

// Meter is what the node is to tell what it measures.
func (m *Monitor) Meter() meter.Meter { return m.meter }

// Figures serves what the node measures, to whoever asks it.
func (m *Monitor) Figures(vitals func() meter.Vitals) http.Handler {
	return prommeter.Handler(m.registry, m.meter, vitals)
}

// URL is where metrics are; "" = nowhere.
func (m *Monitor) URL() string {
	if m == nil || m.listener == nil {
		return ""
	}
	return "http://" + m.listener.Addr().String() + "/metrics"
}

// Close ends a Monitor that is not served; nil is none.
func (m *Monitor) Close() error {
	if m == nil || m.listener == nil {
		return nil
	}
	return m.listener.Close()
}

// Serve serves until ctx ends, with the Figures. A node goes on without, when it cannot; so it does where it listens nowhere.
func (m *Monitor) Serve(ctx context.Context, figures http.Handler, vitals func() meter.Vitals) {
	if m.listener == nil {
		return
	}
	s := &http.Server{Handler: handler(figures, vitals), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ConnContext: doors.Context, ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelDebug)}
	m.log.InfoContext(ctx, "metrics are served, for every user of this machine", "url", m.URL())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(m.listener) }()
	select {
	case err := <-ended:
		m.log.ErrorContext(ctx, "metrics are not served any more", "err", err)
		return
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	if err := s.Shutdown(closing); err != nil {
		_ = s.Close() // what has not ended by then is cut off
	}
	<-ended
}

func handler(figures http.Handler, vitals func() meter.Vitals) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", figures)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { tell(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		now := vitals()
		status, lines := http.StatusOK, []string{"ready"}
		if why := now.NotReady(); why != "" {
			status, lines = http.StatusServiceUnavailable, []string{"not ready: " + why}
		}
		for _, what := range now.Degraded() {
			lines = append(lines, "degraded: "+what)
		}
		tell(w, status, lines...)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer doors.Of(r).Serving()()
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if !loopback(host) { // a page in a browser here, under a name of its own that leads here
			tell(w, http.StatusForbidden, "ask for a loopback address")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func tell(w http.ResponseWriter, status int, lines ...string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.Join(lines, "\n")+"\n") // who has gone needs no answer
}
