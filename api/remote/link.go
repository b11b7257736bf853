package remote

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"taskledger/store"
	"taskledger/task"
)

const (
	defaultWithin = 35 * time.Second
	dialWithin    = 10 * time.Second
	connections   = 64
	// smallBytes bounds the answers about one thing: of a task with its parameters and its result, escaped.
	smallBytes = 8 << 20
	// pageBytes bounds an answer with many things.
	pageBytes = 128 << 20
	// problemBytes bounds the answer to a request that is refused.
	problemBytes = 1 << 20
)

// link sends requests to one API.
type link struct {
	base   string        // without a slash at its end
	where  string        // the same for people
	renew  func() string // Options.Renew describes it
	within time.Duration
	http   *http.Client
	idle   *http.Transport

	mu    sync.Mutex
	token string
}

func newLink(o Options) (*link, error) {
	path, socket := strings.CutPrefix(o.URL, "unix:")
	path = strings.TrimPrefix(path, "//")
	at, err := url.Parse(o.URL)
	switch {
	case !inHeader(o.Token):
		return nil, &store.InvalidError{Field: "token", Problem: "want printable ASCII, without a space at its ends"}
	case socket && path != "":
	case socket,
		err != nil,
		at.Scheme != "http" && at.Scheme != "https",
		at.Host == "",
		at.RawQuery != "",
		at.Fragment != "":
		return nil, &store.InvalidError{Field: "url", Problem: "want http://HOST:PORT, https://HOST:PORT or unix:PATH"}
	case at.User != nil: // errors tell the URL
		return nil, &store.InvalidError{Field: "url", Problem: "it has a user: want the token apart from it"}
	}
	dial := net.Dialer{Timeout: dialWithin}
	l := &link{
		base:   strings.TrimRight(o.URL, "/"),
		where:  o.URL,
		token:  o.Token,
		renew:  o.Renew,
		within: cmp.Or(o.Within, defaultWithin),
		idle: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         dial.DialContext,
			MaxIdleConnsPerHost: connections,
			IdleConnTimeout:     time.Minute,
			TLSHandshakeTimeout: dialWithin,
		},
	}
	if socket {
		l.base, l.idle.Proxy = "http://localhost", nil
		l.idle.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dial.DialContext(ctx, "unix", path)
		}
	}
	l.http = &http.Client{
		Transport:     l.idle,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return l, nil
}

func (l *link) close() { l.idle.CloseIdleConnections() }

// inHeader reports whether a header may have the value.
func inHeader(value string) bool {
	visible := func(r rune) bool { return r < ' ' || r > '~' }
	return strings.TrimSpace(value) == value && !strings.ContainsFunc(value, visible)
}

// request is one that is sent once.
type request struct {
	does   string // names the operation in errors
	method string
	path   string
	query  url.Values
	header http.Header
	body   []byte // JSON; nil = none
	wait   time.Duration
	most   int64 // bytes of the answer; 0 = smallBytes
}

// lost returns the error of a request that was sent and not answered.
func (q *request) lost(err error) error {
	if q.method == http.MethodGet {
		return unavailable(err)
	}
	return fmt.Errorf("%w: %w", task.ErrUnknown, err)
}

func unavailable(err error) error {
	if errors.Is(err, store.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// answer is the head of an answer.
type answer struct {
	status int
	header http.Header
}

// ask sends a request, and decodes its answer, if there is one and into is not nil.
func (l *link) ask(ctx context.Context, q request, into any) (answer, error) {
	limit := l.within + q.wait
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	a, err := l.exchange(ctx, &q, into)
	if err != nil {
		return a, fmt.Errorf("%s: %w", q.does, err)
	}
	return a, nil
}

func (l *link) exchange(ctx context.Context, q *request, into any) (answer, error) {
	resp, err := l.send(ctx, q)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{resp.StatusCode, resp.Header}
	if into == nil || resp.StatusCode == http.StatusNoContent {
		drain(resp.Body)
		return a, nil
	}
	most := cmp.Or(q.most, smallBytes)
	data, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return a, q.lost(fmt.Errorf("read the answer: %w", orEnded(ctx, err)))
	case int64(len(data)) > most:
		return a, q.lost(fmt.Errorf("the answer has more than %d bytes", most))
	}
	if err := json.Unmarshal(data, into); err != nil {
		return a, q.lost(fmt.Errorf("the answer cannot be read: %w", err))
	}
	return a, nil
}

// send sends a request, and returns the answer unless that is a refusal. Where the API refuses the token, it sends the
// request once more with the token that holds now, if that is another one.
func (l *link) send(ctx context.Context, q *request) (*http.Response, error) {
	id := rand.Text()[:16] // stands in the events of the request, and in the log of the node
	token := l.secret()
	resp, err := l.sendAs(ctx, q, id, token)
	if err == nil && resp.StatusCode == http.StatusUnauthorized && l.renewed(token) {
		drain(resp.Body)
		resp.Body.Close()
		resp, err = l.sendAs(ctx, q, id, l.secret())
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, refused(q, resp, id)
	}
	return resp, nil
}

func (l *link) secret() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.token
}

// renewed reports whether there is another token than one that was refused.
func (l *link) renewed(refused string) bool {
	if l.renew == nil {
		return false
	}
	token := l.renew()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == refused && token != "" && inHeader(token) {
		l.token = token
	}
	return l.token != refused
}

// sendAs sends a request with an id and a token, and returns the answer, also a refusal.
func (l *link) sendAs(ctx context.Context, q *request, id, token string) (*http.Response, error) {
	at := l.base + q.path
	if len(q.query) > 0 {
		at += "?" + q.query.Encode()
	}
	var body io.Reader
	if q.body != nil {
		body = bytes.NewReader(q.body)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, at, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	for name, values := range q.header {
		r.Header[name] = values
	}
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("X-Request-Id", id)
	if ctx.Err() != nil {
		return nil, unavailable(context.Cause(ctx))
	}
	resp, err := l.http.Do(r)
	if err != nil {
		dial, is := errors.AsType[*net.OpError](err)
		if err = orEnded(ctx, err); is && dial.Op == "dial" { // it was not sent
			return nil, unavailable(err)
		}
		return nil, q.lost(err)
	}
	return resp, nil
}

// orEnded puts the cause of the end of ctx before an error that came of it.
func orEnded(ctx context.Context, err error) error {
	if ended := context.Cause(ctx); ended != nil {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

// drain reads a little that is left, so that the connection can be used again.
func drain(body io.Reader) { _, _ = io.CopyN(io.Discard, body, 4<<10) }
