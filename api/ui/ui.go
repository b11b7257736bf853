package ui

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"taskledger/api"
	"taskledger/api/ui/jobs"
	"taskledger/api/ui/sessions"
	"taskledger/api/ui/trend"
)

// Root begins the paths of the dashboard.
const Root = "/ui/"

// pageWithin is the default of Config.Within: a page is to be there within five seconds, whoever does not answer.
const pageWithin = 4 * time.Second

// placeWithin bounds how long a large page waits for its place and its bytes beyond Config.Within.
const placeWithin = 500 * time.Millisecond

// Config holds the parts of a dashboard.
type Config struct {
	Tokens  api.Tokens // required: the same as those of the API
	Version string
	// Origins repeats those of api.Config: a browser that asks by one of them has a connection with TLS.
	Origins []string
	Trend   *trend.Trend     // samples of what the cluster has done lately; nil = pages show none
	Now     func() time.Time // default: time.Now
	// Within bounds how long a page waits for all that it asks for: what has not come by then is named as missing.
	// Default: 4 s.
	Within time.Duration
}

// UI is the dashboard of one node.
type UI struct {
	cfg      Config
	sessions *sessions.Sessions
	jobs     *jobs.Jobs
	orders   atomic.Pointer[string] // the text in forms of runs, until one has made runs
}

// New returns a dashboard, or an error that names what is wrong with the configuration. It starts nothing.
func New(cfg Config) (*UI, error) {
	if cfg.Tokens == nil {
		return nil, fmt.Errorf("ui: want tokens")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Within = cmp.Or(cfg.Within, pageWithin)
	u := &UI{cfg: cfg, sessions: sessions.New(cfg.Tokens, cfg.Now), jobs: jobs.New(cfg.Now)}
	u.ordered()
	return u, nil
}

// ordered has further forms order further runs.
func (u *UI) ordered() {
	text := rand.Text()
	u.orders.Store(&text)
}

// within returns an address if it is one of the dashboard, or else the first page: a form is no way to lead elsewhere.
func within(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, Root) || strings.Contains(address, `\`) {
		return Root
	}
	return address
}
