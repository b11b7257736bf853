package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"taskledger/api/problem"
)

// Client asks routes of the table inside the process, for a front that shows what others answer. It has the rights of
// the caller of one Call, and is bounded as requests of that caller are, also after the Call has ended. It may be used
// concurrently.
type Client struct {
	table  http.Handler
	secret string
}

// Client returns a client with the rights of the caller. Without a caller each of its requests is refused.
func (c *Call) Client() *Client {
	return &Client{c.shared.table, c.shared.refusals.secret(c.r)}
}

// Question is a request to a route. Its path is escaped as in a URL.
type Question struct {
	Method string // default GET
	Path   string
	Query  url.Values
	Body   any         // it is sent as JSON; nil = none
	Header http.Header // nil = none
}

// maxAnswer bounds the bytes of an answer that Ask takes: larger ones are for Lines and Elements.
const maxAnswer = 64 << 20

// Ask decodes the answer to a question; into nil drops it. A refusal is a *problem.Problem. It returns the headers of
// the answer.
func (c *Client) Ask(ctx context.Context, q Question, into any) (http.Header, error) {
	var body bytes.Buffer
	header, err := c.ask(ctx, q, func(data []byte) error {
		if body.Len()+len(data) > maxAnswer {
			return fmt.Errorf("an answer of more than %d bytes", maxAnswer)
		}
		body.Write(data)
		return nil
	})
	if err != nil || into == nil || body.Len() == 0 {
		return header, err
	}
	if err := json.Unmarshal(body.Bytes(), into); err != nil {
		return header, fmt.Errorf("ask %s: %w", q.Path, err)
	}
	return header, nil
}

// Lines gives each line of an answer to take as it comes, without its end, until take returns an error, which it
// returns. A line must not be kept.
func (c *Client) Lines(ctx context.Context, q Question, take func(line []byte) error) error {
	var rest []byte
	_, err := c.ask(ctx, q, func(data []byte) error {
		for {
			line, after, whole := bytes.Cut(data, []byte{'\n'})
			if !whole {
				rest = append(rest, line...)
				return nil
			}
			if err := take(append(rest, line...)); err != nil {
				return err
			}
			rest, data = rest[:0], after
		}
	})
	if err == nil && len(rest) > 0 {
		err = take(rest)
	}
	return err
}

// Elements gives each element of an answer that is an array to take as it comes, until take returns an error, which it
// returns. The answer may be of any size.
func Elements[T any](ctx context.Context, c *Client, q Question, take func(element T) error) error {
	r, w := io.Pipe()
	asked := make(chan error, 1)
	go func() {
		_, err := c.ask(ctx, q, func(data []byte) error {
			_, err := w.Write(data)
			return err
		})
		_ = w.CloseWithError(err) // it never fails
		asked <- err
	}()
	err := eachElement(r, take)
	_ = r.CloseWithError(err) // ends the request if it goes on
	return cmp.Or(<-asked, err)
}

// eachElement reads an array to its end, and what follows.
func eachElement[T any](from io.Reader, take func(T) error) error {
	array := json.NewDecoder(from)
	if _, err := array.Token(); err != nil {
		return fmt.Errorf("read an array: %w", err)
	}
	for array.More() {
		var element T
		if err := array.Decode(&element); err != nil {
			return fmt.Errorf("read an array: %w", err)
		}
		if err := take(element); err != nil {
			return err
		}
	}
	if _, err := array.Token(); err != nil {
		return fmt.Errorf("read an array: %w", err)
	}
	_, err := io.Copy(io.Discard, from)
	return err
}

// ask sends a question and gives the parts of an answer that is no refusal to take.
func (c *Client) ask(ctx context.Context, q Question, take func([]byte) error) (header http.Header, err error) {
	var body io.Reader
	if q.Body != nil {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false) // parameters keep the size that they have
		if err := enc.Encode(q.Body); err != nil {
			return nil, fmt.Errorf("ask %s: %w", q.Path, err)
		}
		body = &text
	}
	method, target := q.Method, q.Path
	if method == "" {
		method = http.MethodGet
	}
	if len(q.Query) > 0 {
		target += "?" + q.Query.Encode()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", q.Path, err)
	}
	for name, values := range q.Header {
		r.Header[name] = values
	}
	if body != nil {
		r.Header.Set("Content-Type", mediaJSON)
	}
	r.Header.Set("Authorization", "Bearer "+c.secret)
	a := &received{header: http.Header{}, take: take, stop: stop}
	return a.header, a.of(c.table, r)
}

// received takes the answer to a question. It implements http.ResponseWriter.
type received struct {
	header  http.Header
	status  int
	refusal bytes.Buffer
	take    func([]byte) error
	failed  error  // take has returned it; nil = it has not failed
	stop    func() // ends the request once take has failed
}

// Header implements http.ResponseWriter.
func (a *received) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *received) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *received) Write(data []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	switch {
	case a.failed != nil:
		return 0, a.failed
	case a.refused():
		return a.refusal.Write(data)
	}
	if a.failed = a.take(data); a.failed != nil {
		a.stop()
		return 0, a.failed
	}
	return len(data), nil
}

// refused reports whether the answer is a refusal, or leads elsewhere, as that of a path that is not clean does.
func (a *received) refused() bool {
	return a.status >= http.StatusMultipleChoices && a.status != http.StatusNotModified
}

// Flush implements http.Flusher: what is written has arrived.
func (a *received) Flush() {}

// of lets a handler answer the request. It returns the refusal, or the reason why the answer is not whole.
func (a *received) of(h http.Handler, r *http.Request) (err error) {
	defer func() {
		switch v := recover(); {
		case v == nil:
		case v == http.ErrAbortHandler: //nolint:errorlint // it is this value itself
			err = cut(r.Context(), a.failed)
		default:
			panic(v)
		}
	}()
	h.ServeHTTP(a, r)
	switch {
	case a.failed != nil:
		return a.failed
	case !a.refused():
		return nil
	}
	p := &problem.Problem{}
	if json.Unmarshal(a.refusal.Bytes(), p) != nil || p.Type == "" { // the front has an error format of its own
		p = problem.New(typeOf(a.status), "%.500s", bytes.TrimSpace(a.refusal.Bytes()))
	}
	return p
}

// cut returns why an answer has ended in the middle.
func cut(ctx context.Context, failed error) error {
	if failed == nil {
		failed = ctx.Err()
	}
	if failed == nil {
		failed = errors.New("the answer is not whole: the log of the node says why")
	}
	return failed
}

// typeOf returns the type of the problem that a front without types tells by a status.
func typeOf(status int) problem.Type {
	for _, is := range []problem.Type{
		problem.Invalid, problem.Unauthorized, problem.Forbidden, problem.NotFound, problem.Method, problem.State,
		problem.TooLarge, problem.TooMany, problem.Unavailable,
	} {
		if problem.New(is, "").Status == status {
			return is
		}
	}
	if status < http.StatusBadRequest {
		return problem.NotFound
	}
	return problem.Internal
}
