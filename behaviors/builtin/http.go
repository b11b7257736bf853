package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
)

const (
	httpTimeout   = 30 * time.Second // of the whole request, when the parameters give none
	httpRedirects = 10
	userAgent     = "taskledger"
	// httpBodyJSON and httpHeaderJSON bound body and headers in a result, which stays within events.MaxPayloadBytes.
	httpBodyJSON   = 150 << 10
	httpHeaderJSON = 64 << 10
	// httpErrorBytes bounds the body in the properties of a failure, which is stored with every attempt.
	httpErrorBytes = 4 << 10
	// maxRetryAfter bounds what a server can postpone the next attempt by.
	maxRetryAfter = 24 * time.Hour
)

// HTTPOptions say which addresses a node may reach; by default only those on the public internet, since parameters
// come from whoever may submit, and the node is inside a network.
type HTTPOptions struct {
	Allow        []netip.Prefix // addresses that may be reached although they are not public
	AllowPrivate bool           // every address may be reached
}

// HTTPParams are the parameters of "http".
type HTTPParams struct {
	Method       string            `json:"method,omitempty"` // default GET
	URL          string            `json:"url"`              // http or https
	Headers      map[string]string `json:"headers,omitempty"`
	Body         string            `json:"body,omitempty"`
	ExpectStatus []int             `json:"expect_status,omitempty"` // default 200 to 299
	Timeout      Duration          `json:"timeout,omitempty"`       // of the whole request; default 30s
}

// Validate refuses parameters that make no HTTP request, and headers that belong to the connection.
func (p HTTPParams) Validate() error {
	if err := checkURL(p.URL); err != nil {
		return err
	}
	if p.Method != "" && !isToken(p.Method) || p.Method == http.MethodConnect {
		return fmt.Errorf("method %q cannot be used", p.Method)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		if err := checkHeader(name, p.Headers[name]); err != nil {
			return err
		}
	}
	for _, status := range p.ExpectStatus {
		if status < 200 || status > 599 {
			return fmt.Errorf("expect_status %d, want 200 to 599", status)
		}
	}
	return checkTimeout(p.Timeout)
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("url: %w", errors.Unwrap(err)) // without the text, which may hold a password
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("url: scheme %q, want http or https", u.Scheme)
	case u.Hostname() == "":
		return errors.New("url: no host")
	}
	return nil
}

func checkHeader(name, value string) error {
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Content-Length", "Connection", "Transfer-Encoding",
		"Trailer", "Te", "Upgrade", "Keep-Alive", "Proxy-Connection":
		return fmt.Errorf("header %s cannot be given", name)
	}
	if !isToken(name) {
		return fmt.Errorf("header %q is no name of a header", name)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == '\x7f' }) {
		return fmt.Errorf("header %s: control character in value", name)
	}
	return nil
}

// isToken reports whether s is a token as RFC 9110 defines it.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= '\x7f' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

func (p HTTPParams) expects(status int) bool {
	if len(p.ExpectStatus) == 0 {
		return status >= 200 && status <= 299
	}
	return slices.Contains(p.ExpectStatus, status)
}

// HTTPResult is the result of "http".
type HTTPResult struct {
	Status           int                 `json:"status"`
	Headers          map[string][]string `json:"headers,omitempty"`           // in order of names, up to 64 KiB
	HeadersTruncated bool                `json:"headers_truncated,omitempty"` // some headers are missing
	Body             string              `json:"body,omitempty"`              // first 64 KiB; less if not plain text
	BodyTruncated    bool                `json:"body_truncated,omitempty"`
}

// HTTP returns the behavior "http", which makes one request and follows up to 10 redirects. Headers are not sent on
// to another origin, and a redirect that would send a body there is refused. Addresses that are not public are
// refused unless they are allowed; what counts is the address that is dialled, whatever name resolved to it, also
// after a redirect.
//
// An unexpected status is a failure with the code "status" and the properties status and body. The policy retries
// 408, 425, 429 and 5xx, and for 429 and 503 not before the time in Retry-After; any other status is final. If the
// server cannot be reached, the failure has the code "network", and the policy retries it. A request may thus arrive
// more than once. No proxy is used.
func HTTP(o HTTPOptions) *behaviors.Bound[HTTPParams, HTTPResult] {
	return bind("http", newRequester(o).run)
}

func newRequester(o HTTPOptions) *requester {
	dialer := &net.Dialer{Timeout: httpTimeout, ControlContext: o.control}
	return &requester{now: time.Now, client: &http.Client{
		CheckRedirect: checkRedirect,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			DisableKeepAlives:      true, // every request is checked as it is dialled, and nothing is left behind
			TLSHandshakeTimeout:    httpTimeout,
			MaxResponseHeaderBytes: 256 << 10,
		},
	}}
}

// errRefused is wrapped when the operator's rules forbid a request.
var errRefused = errors.New("refused")

// control is called with the address that a connection is about to be made to.
func (o HTTPOptions) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	if o.AllowPrivate {
		return nil
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %s: %w", address, errRefused)
	}
	if addr := to.Addr().Unmap().WithZone(""); !public(addr) && !containedIn(o.Allow, addr) {
		const say = "address %s is not public, and the node allows no other (serve --http-allow-private): %w"
		return fmt.Errorf(say, addr, errRefused)
	}
	return nil
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > httpRedirects {
		return fmt.Errorf("more than %d redirects: %w", httpRedirects, errRefused)
	}
	if err := checkURL(req.URL.String()); err != nil {
		return fmt.Errorf("redirect: %w: %w", err, errRefused)
	}
	first := via[0].URL
	for _, r := range append(via[1:len(via):len(via)], req) {
		if r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
			// Any header, and the body, may be a secret meant for the first origin.
			clear(req.Header)
			if req.Body != nil && req.Body != http.NoBody {
				return fmt.Errorf("redirect of the body to another origin, %s://%s: %w",
					req.URL.Scheme, req.URL.Host, errRefused)
			}
		}
	}
	return nil
}

type requester struct {
	client *http.Client
	now    func() time.Time
}

var errHTTPTimeout = errors.New("request exceeded its time-out")

func (r *requester) run(parent context.Context, p HTTPParams) (HTTPResult, error) {
	ctx, stop := context.WithTimeoutCause(parent, cmp.Or(time.Duration(p.Timeout), httpTimeout), errHTTPTimeout)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, cmp.Or(p.Method, http.MethodGet), p.URL, strings.NewReader(p.Body))
	if err != nil {
		return HTTPResult{}, refuse(CodeInvalid, err)
	}
	req.Header.Set("User-Agent", userAgent)
	for name, value := range p.Headers {
		req.Header.Set(name, value)
	}
	result, header, err := r.do(req)
	switch {
	case err != nil && parent.Err() != nil:
		return HTTPResult{}, context.Cause(parent)
	case err != nil && context.Cause(ctx) == errHTTPTimeout:
		return HTTPResult{}, behaviors.Code(events.CodeTimeout, fmt.Errorf("%w: %w", errHTTPTimeout, err), nil)
	case err != nil:
		return HTTPResult{}, requestFailure(err)
	case p.expects(result.Status):
		return result, nil
	}
	return HTTPResult{}, r.unexpected(result, header)
}

func (r *requester) do(req *http.Request) (HTTPResult, http.Header, error) {
	res, err := r.client.Do(req)
	if err != nil {
		return HTTPResult{}, nil, err
	}
	result, err := excerptOf(res)
	return result, res.Header, err
}

// excerptOf reads and closes a response.
func excerptOf(res *http.Response) (HTTPResult, error) {
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, excerptBytes+1))
	if err != nil {
		return HTTPResult{}, fmt.Errorf("read response: %w", err)
	}
	kept := firstJSON(body[:min(len(body), excerptBytes)], httpBodyJSON)
	result := HTTPResult{Status: res.StatusCode, Body: string(kept), BodyTruncated: len(kept) < len(body)}
	result.Headers, result.HeadersTruncated = boundHeaders(res.Header)
	return result, nil
}

// requestFailure returns the failure of a request without a response.
func requestFailure(err error) error {
	if errors.Is(err, errRefused) {
		return refuse(CodeRefused, err)
	}
	return behaviors.Code(CodeNetwork, err, nil)
}

// boundHeaders keeps the headers whose JSON text is within httpHeaderJSON.
func boundHeaders(h http.Header) (kept map[string][]string, truncated bool) {
	kept = make(map[string][]string)
	left := httpHeaderJSON
	for _, name := range slices.Sorted(maps.Keys(h)) {
		size := 6 * len(name)
		for _, value := range h[name] {
			size += 6*len(value) + len(`"",`)
		}
		if size > left {
			truncated = true
			continue
		}
		left -= size
		kept[name] = h[name]
	}
	return kept, truncated
}

// unexpected is the failure of a response with another status than expected.
func (r *requester) unexpected(result HTTPResult, header http.Header) error {
	status := result.Status
	err := behaviors.Code(CodeStatus, fmt.Errorf("status %d %s", status, http.StatusText(status)), map[string]string{
		"status": strconv.Itoa(status),
		"body":   strings.ToValidUTF8(string(firstJSON([]byte(result.Body), httpErrorBytes)), "\uFFFD"),
	})
	switch {
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		if wait, ok := retryAfter(header.Get("Retry-After"), r.now()); ok {
			return behaviors.RetryAfter(wait, err)
		}
		return err
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status >= 500:
		return err
	}
	return behaviors.Cancel(err)
}

// retryAfter reads the header Retry-After: seconds or a date. The wait is 0 to maxRetryAfter.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), maxRetryAfter), true
}
