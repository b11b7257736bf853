// Package api is the HTTP API: every route of a node in one table, from which requests are dispatched, allowed, bounded
// and documented.
//
// A route states the role it needs, the tasks it shows, the size of its body and its time limit. The package enforces
// these before it calls the handler. Other fronts register their routes in the same table, by Config.Routes.
//
// A Call is the request and the answer of a route, and names no route. Handlers stand above it: each group of routes is
// a small struct with the part of the client that it uses. The table names the handlers, and API serves the table.
package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"

	"taskledger/api/measured"
	"taskledger/api/operations"
)

// Config holds the parts of an API.
type Config struct {
	Client operations.Client // required: of the node, or of its cluster
	// Tokens finds the callers by their secrets; required. A request without a token gets health and the version
	// alone.
	Tokens Tokens
	// Hosts lists the host names that requests may use, besides localhost and IP addresses. Others are refused: a page
	// whose own name was made to resolve to this server, by DNS rebinding, uses one of those.
	Hosts []string
	// Origins lists the origins under which a proxy that ends TLS shows this server, each as https://NAME or
	// https://NAME:PORT. Their names are Hosts, too.
	Origins []string
	// Ready says why the node does not serve, "" = it does.
	Ready func() string
	// Metrics serves what the node measures, to viewers; nil = it measures nothing. It writes its answer at once.
	Metrics http.Handler
	// Watch receives a report of every request; nil = nobody does.
	Watch   measured.Watcher
	Version string
	// Routes lists the routes of other fronts, and ErrorFormats the forms of their errors where these are not of RFC
	// 9457.
	Routes       []Route
	ErrorFormats []ErrorFormat
	Limits       Limits
	Log          *slog.Logger // default: slog.Default()
}

// API answers requests. It is an http.Handler.
type API struct {
	shared  *shared
	hosts   []string
	origins []string
	watch   measured.Watcher // may be nil
	open    atomic.Int64     // requests under way
	mux     *http.ServeMux
	table   []*Route
	drains  context.Context
	drain   context.CancelFunc
}

// New returns an API, or an error that names what is wrong with the configuration. It starts nothing.
func New(cfg Config) (*API, error) {
	if cfg.Client == nil || cfg.Tokens == nil {
		return nil, fmt.Errorf("api: want a client and tokens")
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Ready == nil {
		cfg.Ready = func() string { return "" }
	}
	limits, err := cfg.Limits.complete()
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	for _, origin := range cfg.Origins {
		name, err := NameOfOrigin(origin)
		if err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
		cfg.Hosts = append(cfg.Hosts[:len(cfg.Hosts):len(cfg.Hosts)], name)
	}
	common := &shared{
		budgets:  newBudgets(1),
		callers:  newCallers(limits),
		refusals: newRefusals(cfg.ErrorFormats),
		tokens:   cfg.Tokens,
		watcher:  newTokenWatcher(cfg.Tokens),
		log:      cfg.Log,
	}
	node := &process{
		release: cfg.Version,
		tokens:  cfg.Tokens,
		unready: cfg.Ready,
		meter:   cfg.Metrics,
	}
	var table []*Route
	for _, r := range slices.Concat(routes(cfg.Client, node), cfg.Routes) {
		table = append(table, &r)
	}
	mux, err := newMux(table, common)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	common.table = mux
	if node.document, err = document(table, cfg.Version, common.refusals); err != nil {
		return nil, fmt.Errorf("api: document the routes: %w", err)
	}
	a := &API{
		shared:  common,
		hosts:   cfg.Hosts,
		origins: cfg.Origins,
		watch:   cfg.Watch,
		mux:     mux,
		table:   table,
	}
	a.drains, a.drain = context.WithCancel(context.Background())
	return a, nil
}

// Routes returns the routes of the table.
func (a *API) Routes() []*Route { return a.table }
