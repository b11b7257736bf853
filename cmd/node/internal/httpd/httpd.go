// Package httpd gives a node the HTTP API: where it listens, by which certificate, and for whom.
package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/api"
	"taskledger/api/doors"
	"taskledger/api/figures"
	"taskledger/api/logs"
	"taskledger/api/operations"
	"taskledger/api/schedules"
	"taskledger/api/stores"
	syncapi "taskledger/api/sync"
	"taskledger/api/token"
	"taskledger/api/ui"
	"taskledger/api/ui/trend"
	"taskledger/api/works"
	"taskledger/cmd/node/internal/openfiles"
	"taskledger/engine"
	"taskledger/internal/advertised"
	"taskledger/internal/version"
)

// Place is the data directory of a node with servers inside, or with its store in files.
type Place interface {
	Dir() string
	// SocketPath returns where to make a socket that nobody but the user reaches.
	SocketPath(name string) string
	// Advertise tells other processes of the user where the node is, until Close.
	Advertise(api *advertised.API) error
	Close() error
}

// Server is the API of a node before it serves: its listeners, and who may ask.
type Server struct {
	options   Options
	listeners []net.Listener
	budget    *doors.Budget // of connections by TCP
	local     *doors.Budget // of those by the Unix socket
	url       string
	store     string // the URL of the task store with a listener of its own; "" = there is none
	sync      string // the URL of the listener of collections; "" = there is none
	socket    string
	secure    *tls.Config // nil = no certificate
	tokens    secrets
	ui        *ui.UI
	trend     *trend.Trend
	figures   *figures.Figures // nil = nobody measures
	log       *slog.Logger
}

// Open listens. A node that has neither servers inside nor its store in files has no Place. Without an API it returns
// nil. connections bounds the connections that all listeners by TCP take together at once.
func Open(o Options, at Place, connections int, log *slog.Logger) (s *Server, err error) {
	if !o.Has(at != nil) && (at == nil || !o.Local) {
		return nil, nil
	}
	dir, socket := "", ""
	if at != nil {
		dir, socket = at.Dir(), at.SocketPath("api")
	}
	s = &Server{options: o, budget: doors.New(connections), local: doors.New(openfiles.Socket), log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.tokens, err = readTokens(o.Tokens, dir, log); err != nil {
		return nil, err
	}
	s.trend = new(trend.Trend)
	s.ui, err = ui.New(ui.Config{
		Tokens:  s.tokens,
		Version: version.Version,
		Origins: o.Origins,
		Trend:   s.trend,
	})
	if err != nil {
		return nil, err
	}
	if o.Cert != "" {
		cert := &certificate{cert: o.Cert, key: o.Key, log: log}
		if _, err := cert.get(nil); err != nil {
			return nil, fmt.Errorf("certificate of the API: %w", err)
		}
		warnOfKey(o.Key, log)
		s.secure = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get, NextProtos: []string{"http/1.1"}}
	}
	if o.Address != off {
		if s.url, err = s.listen(o.Address, defaultAddress, ""); err != nil {
			return nil, fmt.Errorf("listen for the API: %w", err)
		}
	}
	if o.Store.Address != "" {
		if s.store, err = s.listen(o.Store.Address, "", stores.Root+o.Store.Name); err != nil {
			return nil, fmt.Errorf("listen for the task store: %w", err)
		}
	}
	if o.Sync != "" {
		if s.sync, err = s.listen(o.Sync, "", syncapi.Root); err != nil {
			return nil, fmt.Errorf("listen for collections: %w", err)
		}
	}
	if socket != "" {
		ul, err := net.Listen("unix", socket)
		if err != nil {
			return nil, fmt.Errorf("listen for the API: %w", err)
		}
		s.listeners, s.socket = append(s.listeners, s.local.Listen(ul)), socket
	}
	return s, nil
}

// Advertised returns the part of cluster.json about the API; a nil Server returns nil.
func (s *Server) Advertised() *advertised.API {
	if s == nil {
		return nil
	}
	at := &advertised.API{URL: s.url, Token: s.tokens.own}
	if s.socket != "" {
		at.Addresses = append(at.Addresses, "unix:"+s.socket)
	}
	if s.url != "" {
		at.Addresses = append(at.Addresses, s.url)
	}
	return at
}

// TLS has the certificate; nil = there is none, or no API.
func (s *Server) TLS() *tls.Config {
	if s == nil {
		return nil
	}
	return s.secure
}

// Views reports whether a request shows a token that may read what is of the whole cluster.
func (s *Server) Views(r *http.Request) bool {
	by := s.tokens.Find(api.Secret(r))
	return by != nil && by.Role.Allows(token.Viewer) && !by.Limited()
}

// Measure has the API measured from now on; of nil nothing is.
func (s *Server) Measure(reg prometheus.Registerer) (err error) {
	if s == nil {
		return nil
	}
	budgets := map[string]*doors.Budget{"tcp": s.budget}
	if s.socket != "" {
		budgets["unix"] = s.local
	}
	s.figures, err = figures.New(reg, budgets)
	return err
}

// URL returns the address of the API; "" = it has a socket alone.
func (s *Server) URL() string { return s.url }

// DashboardURL returns the address of the first page of the dashboard; "" = the API has a socket alone.
func (s *Server) DashboardURL() string {
	if s.url == "" {
		return ""
	}
	return s.url + ui.Root
}

// LoginLink returns the address of a page that logs the user of the machine in once, within ten minutes; "" = there is
// none, since the API has a socket alone, or the user no token.
func (s *Server) LoginLink() string {
	if s.url == "" || s.tokens.own == "" {
		return ""
	}
	return s.url + s.ui.LinkPath(s.tokens.own)
}

// StoreURL returns the address of the task store that has a listener of its own, "" for none.
func (s *Server) StoreURL() string { return s.store }

// SyncURL returns the address of the listener of collections, "" for none.
func (s *Server) SyncURL() string { return s.sync }

// lookAgain is the time between two looks whether the node is busy.
const lookAgain = 20 * time.Millisecond

// lingers bounds how long the listeners go on after the end has begun, while attempts run.
const lingers = 5 * time.Second

// Serve answers requests until ctx ends, and then for as long as busy says so, up to lingers: whoever probes the node
// learns meanwhile that it is not ready. page serves the metrics route. notReady returns why the node is not
// ready, "" if it is. An error is logged, and the node goes on without the API.
func (s *Server) Serve(ctx context.Context, client *engine.Client, notReady func() string, busy func() bool, page http.Handler) {
	all := operations.Direct{Client: client}
	cfg := api.Config{
		Client:  all,
		Tokens:  s.tokens,
		Hosts:   s.options.Hosts,
		Origins: s.options.Origins,
		Ready:   lately(notReady),
		Metrics: page,
		Version: version.Version,
		Routes: slices.Concat(
			stores.Routes(all.Stores()),
			schedules.Routes(all.Schedules(), all.Backfills()),
			logs.Routes(all),
			works.Routes(all.Works()),
			syncapi.Routes(all, all.Schedules()),
			s.ui.Routes(),
		),
		ErrorFormats: []api.ErrorFormat{stores.ErrorFormat(), syncapi.ErrorFormat(), s.ui.ErrorFormat()},
		Log:          s.log,
	}
	if s.figures != nil {
		cfg.Watch = s.figures
	}
	a, err := api.New(cfg)
	if err == nil && s.figures != nil {
		s.figures.Watch(a.State)
	}
	if err == nil {
		beside, end := context.WithCancel(ctx)
		var ended sync.WaitGroup
		ended.Go(func() { _ = s.ui.Run(beside) }) // it returns nil, as the one below does
		if client != nil {                        // without a cluster nobody can be asked
			sampler := trend.Sampler{Observer: all, Into: s.trend}
			ended.Go(func() { _ = sampler.Run(beside) })
		}
		defer ended.Wait()
		defer end()
		serving, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		defer context.AfterFunc(ctx, func() {
			a.Drain()
			for end := time.Now().Add(lingers); busy() && time.Now().Before(end); time.Sleep(lookAgain) {
			}
			stop()
		})()
		err = a.Serve(serving, s.listeners...)
	}
	if err != nil {
		s.log.ErrorContext(ctx, "the API is not served any more", "err", err)
	}
}

// Close ends a Server that is not served; nil is none.
func (s *Server) Close() (err error) {
	if s == nil {
		return nil
	}
	for _, l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}
