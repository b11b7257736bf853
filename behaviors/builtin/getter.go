package builtin

import (
	"context"
	"io"
	"maps"
	"net/http"
)

// Getter asks for files as behavior "http" does, at the addresses that its options allow. It may be used concurrently.
type Getter struct{ requester *requester }

// NewGetter returns a Getter that reaches the addresses of the options.
func NewGetter(o HTTPOptions) *Getter { return &Getter{newRequester(o)} }

// Get makes a GET request, and returns the response once its headers are there, if its status is 200, or 304 where the
// header makes the request conditional. The caller closes its body, which has no bound; an error while it is read is
// the failure of "http", too. Any other error is a failure of "http". There is no time-out but that of ctx.
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
	res, err := g.requester.client.Do(req)
	if err == nil {
		if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusNotModified && conditional {
			res.Body = body{ctx, res.Body}
			return res, nil
		}
		var excerpt HTTPResult
		if excerpt, err = excerptOf(res); err == nil {
			return nil, g.requester.unexpected(excerpt, res.Header)
		}
	}
	return nil, endedOr(ctx, err)
}

// endedOr returns why ctx has ended, if it has, else the failure of a request.
func endedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return requestFailure(err)
}

// body makes failures of its errors.
type body struct {
	ctx context.Context
	io.ReadCloser
}

// Read implements io.Reader.
func (b body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = endedOr(b.ctx, err)
	}
	return n, err
}
