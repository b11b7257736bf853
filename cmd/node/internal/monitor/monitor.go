// Package monitor serves what a node measures, and whether it is ready, over HTTP. On a loopback address nothing is
// encrypted and nobody is asked who he is: every user of the machine can read it. Beyond, figures are for tokens, by
// TLS, unless it is told otherwise.
package monitor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/api/doors"
	"taskledger/cmd/node/internal/certificates"
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
	// closeWithin is the time that requests under way get when the node ends.
	closeWithin = time.Second
)

// Monitor collects the measurements of a node, and serves these, health and readiness at a listener.
type Monitor struct {
	listener net.Listener // nil = none
	url      string
	trusted  func(*http.Request) bool // who may read figures; nil = everybody
	names    []string
	budget   *doors.Budget
	registry *prometheus.Registry
	meter    *prommeter.Meter
	log      *slog.Logger
}

// Config says where a Monitor listens, and for whom.
type Config struct {
	Address string // port 0 is a free one; "" = nowhere
	// Insecure lets it listen beyond loopback to everybody, unencrypted.
	Insecure bool
	// Names lists the host names that requests may use, beside localhost and addresses.
	Names []string
	// TLS and Trusted are for listening beyond loopback: the certificate, and who may read figures and reasons.
	// Whether the node is ready is told to everybody. nil = there is no certificate.
	TLS     *tls.Config
	Trusted func(*http.Request) bool
	// Cluster is the id of the cluster. Certificates lists the files whose ends the metrics report.
	Cluster      string
	Certificates []certificates.File
}

// Check says what is wrong with an address; secure says that there is a certificate for it.
func Check(address string, insecure, secure bool) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%w: want an address and a port, such as 127.0.0.1:9464", err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("port %q: want 0 to 65535", port)
	}
	if !loopback(host) && !insecure && !secure {
		return fmt.Errorf("%q is no loopback address: want --api with --api-cert and --api-key, or --metrics-insecure where everybody who reaches it may read it, "+
			"unasked and unencrypted", host)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Open listens at an address that Check allows.
func Open(cfg Config, log *slog.Logger) (m *Monitor, err error) {
	m = &Monitor{names: cfg.Names, registry: prometheus.NewRegistry(), budget: doors.New(openfiles.Metrics), log: log}
	if m.meter, err = prommeter.New(m.registry); err != nil {
		return nil, err
	}
	for _, c := range []prometheus.Collector{ofCluster(cfg.Cluster), expiry(cfg.Certificates)} {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	if cfg.Address == "" {
		return m, nil
	}
	if err := Check(cfg.Address, cfg.Insecure, cfg.TLS != nil); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	at, ok := l.Addr().(*net.TCPAddr)
	m.listener, m.url = m.budget.Listen(l), "http://"+l.Addr().String()+"/metrics"
	switch {
	case ok && at.IP.IsLoopback() || cfg.Insecure:
	case cfg.TLS != nil:
		m.listener, m.url, m.trusted = tls.NewListener(m.listener, cfg.TLS), "https://"+l.Addr().String()+"/metrics", cfg.Trusted
	default: // a name that leads elsewhere
		return nil, errors.Join(fmt.Errorf("listen for metrics: %s leads to %s, which is no loopback address", cfg.Address, l.Addr()), l.Close())
	}
	return m, nil
}

// Meter returns the meter that takes the measurements of the node.
func (m *Monitor) Meter() meter.Meter { return m.meter }

// Figures serves what the node measures, to whoever asks it.
func (m *Monitor) Figures(vitals func() meter.Vitals) http.Handler {
	return prommeter.Figures(m.registry, m.meter, vitals)
}

// Registry returns the registry for further measurements of the node.
func (m *Monitor) Registry() *prometheus.Registry { return m.registry }

// URL returns the address of the metrics; "" = nowhere.
func (m *Monitor) URL() string {
	if m == nil || m.listener == nil {
		return ""
	}
	return m.url
}

// Close ends a Monitor that is not served; nil is none.
func (m *Monitor) Close() error {
	if m == nil || m.listener == nil {
		return nil
	}
	return m.listener.Close()
}

// Serve serves until ctx ends, with the Figures. A node goes on without, when it cannot; so it does where it listens
// nowhere.
func (m *Monitor) Serve(ctx context.Context, figures http.Handler, vitals func() meter.Vitals) {
	if m.listener == nil {
		return
	}
	s := &http.Server{Handler: m.handler(figures, vitals), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ConnContext: doors.Context, ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelDebug)}
	m.log.InfoContext(ctx, "metrics are served", "url", m.URL())
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

func (m *Monitor) handler(figures http.Handler, vitals func() meter.Vitals) http.Handler {
	pages := prommeter.Pages(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.trusted != nil && !m.trusted(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="taskledger", Basic realm="taskledger"`)
			http.Error(w, "want a token of a viewer", http.StatusUnauthorized)
			return
		}
		figures.ServeHTTP(w, r)
	}), vitals, m.trusted)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := doors.Of(r)
		defer conn.Serving()()
		if !doors.HostAllowed(r.Host, m.names) { // a page in a browser, under a name of its own that leads here
			http.Error(w, "ask for an address, or a name of --api-host", http.StatusForbidden)
			return
		}
		if m.trusted != nil && m.trusted(r) {
			conn.ShowsToken()
		}
		pages.ServeHTTP(w, r)
	})
}
