// Package api is the HTTP API: every route of a node in one table, from which requests are dispatched, allowed, bounded and documented.
//
// A route states the role it needs, the tasks it shows, the size of its body and its time limit. The package enforces these before it calls the
// handler. Other fronts register their routes in the same table, by Config.Routes.
package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"taskledger/api/measured"
	"taskledger/api/operations"
	"taskledger/api/token"
)

// Config is what an API needs.
type Config struct {
	Client operations.Client // required: of the node, or of its cluster
	// Tokens are those who may ask; required. Nobody else may, but for health and the version.
	Tokens Tokens
	// Hosts are the host names that requests may use, besides localhost and IP addresses. Others are refused: a page whose own name was
	// made to resolve to this server, by DNS rebinding, uses one of those.
	Hosts []string
	// Ready says why the node does not serve, "" = it does.
	Ready func() string
	// Metrics serves what the node measures, to viewers; nil = it measures nothing. It writes its answer at once.
	Metrics http.Handler
	// Watch receives a report of every request; nil receives none.
	Watch   measured.Watcher
	Version string
	// Routes are those of other fronts, and Dialects how these tell errors that are not of RFC 9457.
	Routes   []Route
	Dialects []Dialect
	Limits   Limits
	Log      *slog.Logger // default: slog.Default()
}

// Tokens know who has a secret; *token.File implements it.
type Tokens interface {
	Find(secret string) *token.Token // nil = nobody
}

// Limits are what one caller may ask for; the zero value of each selects its default.
type Limits struct {
	PerSecond float64 // requests of a principal, on average. Default 2,000
	Burst     int     // at once. Default 4,000
	InFlight  int     // requests of a principal under way, waiting ones among them. Default 2,000
}

func (l Limits) complete() (Limits, error) {
	if l.PerSecond < 0 || l.Burst < 0 || l.InFlight < 0 {
		return l, fmt.Errorf("limits: %+v: below 0", l)
	}
	if l.PerSecond == 0 {
		l.PerSecond = 2000
	}
	if l.Burst == 0 {
		l.Burst = 4000
	}
	if l.InFlight == 0 {
		l.InFlight = 2000
	}
	return l, nil
}

// API answers requests. It is an http.Handler.
type API struct {
	submitter operations.Submitter
	operator  operations.Operator
	reader    operations.Reader
	historian operations.Historian
	observer  operations.Observer

	tokens  Tokens
	vigil   *vigil
	hosts   []string
	ready   func() string
	metrics http.Handler
	watch   measured.Watcher // may be nil
	open    atomic.Int64     // requests under way
	version string
	log     *slog.Logger

	bodies    *semaphore.Weighted // bytes of request bodies in memory
	large     *semaphore.Weighted // answers of Large routes in the making
	answers   *semaphore.Weighted // bytes of large answers that are being written
	lingering *semaphore.Weighted // requests that were refused, and still send
	mux       *http.ServeMux
	table     []*Route
	dialect   []Dialect
	callers   *callers
	doc       []byte // the OpenAPI document
	drains    context.Context
	drain     context.CancelFunc
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
	a := &API{
		submitter: cfg.Client,
		operator:  cfg.Client,
		reader:    cfg.Client,
		historian: cfg.Client,
		observer:  cfg.Client,
		tokens:    cfg.Tokens,
		vigil:     &vigil{tokens: cfg.Tokens, calls: map[*Call]func(){}},
		hosts:     cfg.Hosts,
		ready:     cfg.Ready,
		metrics:   cfg.Metrics,
		watch:     cfg.Watch,
		version:   cfg.Version,
		log:       cfg.Log,
		bodies:    semaphore.NewWeighted(maxBodies),
		large:     semaphore.NewWeighted(largeAtOnce),
		answers:   semaphore.NewWeighted(maxAnswers),
		lingering: semaphore.NewWeighted(lingerAtOnce),
		mux:       http.NewServeMux(),
		dialect:   cfg.Dialects,
		callers:   newCallers(limits),
	}
	if err := a.register(append(a.routes(), cfg.Routes...)); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	a.drains, a.drain = context.WithCancel(context.Background())
	a.doc, err = a.document()
	if err != nil {
		return nil, fmt.Errorf("api: document the routes: %w", err)
	}
	return a, nil
}

// Class is how long a request may take.
type Class uint8

// The classes.
const (
	Short  Class = iota // the node answers within 10 s
	Poll                // it waits as long as the request asks for, 60 s at most, besides
	Stream              // it writes for as long as there is something; each write has 30 s
	Pages               // it asks for page after page, each within 10 s; beyond one it is a stream
)

const (
	answerWithin = 10 * time.Second
	writeWithin  = 30 * time.Second
	// lastWriteWithin is what who reads a stream gets for what is written already, once the server drains.
	lastWriteWithin = time.Second
	// MaxWait is the longest that a request may wait for an outcome.
	MaxWait = 60 * time.Second
)
