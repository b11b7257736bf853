package builtin

import (
	"context"
	"maps"
	"net/http"
	"time"
)

// Getter asks for files as behavior "http" does, at the addresses that its options allow. It may be used concurrently.
type Getter struct {
	requester *requester
	after     func(d time.Duration, f func()) (stop func() bool)
}

// NewGetter returns a Getter that reaches the addresses of the options.
func NewGetter(o HTTPOptions) *Getter {
	return &Getter{
		requester: newRequester(o),
		after:     func(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop },
	}
}

// Get makes a GET request, and returns the response once its headers are there, if its status is 200, or 304 where the
// header makes the request conditional. The caller closes its body, which has no bound; an error while it is read is
// the failure of "http", too. Any other error is a failure of "http". A server that brings no header for 30 s, its
// redirects included, or no byte of the body while it is read for 30 s, is a failure with the code "timeout", which
// the policy retries. The whole has no time-out but that of ctx.
func (g *Getter) Get(ctx context.Context, url string, header http.Header) (*http.Response, error) {
	if err := checkURL(url); err != nil {
		return nil, refuse(CodeInvalid, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, refuse(CodeInvalid, err)
	}
	maps.Copy(req.Header, header)
	req.Header.Set("User-Agent", userAgent)
	conditional := header.Get("If-None-Match") != "" || header.Get("If-Modified-Since") != ""
	l := g.listen(ctx, req.URL.Host)
	var res *http.Response
	err = l.during("header of an answer", func() (err error) {
		res, err = g.requester.client.Do(req.WithContext(l.ctx))
		return err
	})
	if err != nil {
		l.end(nil)
		return nil, err
	}
	res.Body = heard{res.Body, l}
	if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNotModified && conditional {
		return res, nil
	}
	excerpt, err := excerptOf(res)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	return nil, g.requester.unexpected(excerpt, res.Header)
}

// endedOr returns why ctx has ended, if it has, else the failure of a request.
func endedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return requestFailure(err)
}
