package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"taskledger/api/problem"
	"taskledger/api/stores/form"
	"taskledger/events"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// request is one that is sent once.
type request struct {
	name, path string // of the store, and below it
	query      url.Values
	key        string
	age        time.Duration // since it was sent first
	counted    int           // Within of an update
	body       any           // nil: a read
	most       int64         // bytes of the answer
	within     time.Duration // for how long the answer is waited for
}

// change asks for a change. What was sent and not answered is task.ErrUnknown.
func (c *Client) change(ctx context.Context, q *request, into any) error {
	return c.ask(ctx, q, unknown, whole(into))
}

// read asks a question. What was not answered is store.ErrUnavailable.
func (c *Client) read(ctx context.Context, q *request, read func(*json.Decoder) error) error {
	return c.ask(ctx, q, unavailable, read)
}

// ask asks once. lost names what was sent and not answered.
func (c *Client) ask(ctx context.Context, q *request, lost func(error) error, read func(*json.Decoder) error) error {
	of, cancel := context.WithTimeoutCause(ctx, q.within, fmt.Errorf("no answer within %s", q.within))
	defer cancel()
	r, err := c.request(of, q)
	if err != nil {
		return err
	}
	if of.Err() != nil {
		return unavailable(context.Cause(of))
	}
	resp, err := c.http.Do(r)
	if err != nil {
		if ended := context.Cause(of); ended != nil {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		if dial, is := errors.AsType[*net.OpError](err); is && dial.Op == "dial" {
			return unavailable(err) // it was not sent
		}
		return lost(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refused(q.name, resp, lost)
	}
	if err := read(json.NewDecoder(io.LimitReader(resp.Body, q.most))); err != nil {
		if ended := context.Cause(of); ended != nil {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		return lost(fmt.Errorf("the answer cannot be read: %w", orUnexpectedEnd(err)))
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // what is read whole leaves its connection to the next
	return nil
}

// segment is the name of a store as a part of a path: "." and ".." would mean others.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return name // it has nothing that is to be escaped
}

func (c *Client) request(ctx context.Context, q *request) (*http.Request, error) {
	at := c.base
	if !c.root {
		if err := item.ValidateStore(q.name); err != nil {
			return nil, err
		}
		at += "/store/" + segment(q.name)
	}
	at += q.path
	if len(q.query) > 0 {
		at += "?" + q.query.Encode()
	}
	method, body := http.MethodGet, io.Reader(nil)
	if q.body != nil {
		data, err := encode(q.body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		method, body = http.MethodPost, data
	}
	r, err := http.NewRequestWithContext(ctx, method, at, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
		if !inHeader(q.key) {
			return nil, &store.InvalidError{
				Field:   "key",
				Problem: fmt.Sprintf("%.64q: want printable ASCII, without a space at its ends", q.key),
			}
		}
		if q.key != "" {
			r.Header.Set("Idempotency-Key", q.key)
			if q.age > 0 { // rounded up: an age of 0 is none
				r.Header.Set("Idempotency-Age", strconv.FormatInt(int64((q.age+time.Millisecond-1)/time.Millisecond), 10))
			}
			if q.counted > 0 {
				r.Header.Set("Idempotency-Within", strconv.Itoa(q.counted))
			}
		}
	}
	return r, nil
}

// inHeader says that a header may have the value: what cannot be sent is not to be taken for what was lost.
func inHeader(value string) bool {
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return false
		}
	}
	return strings.TrimSpace(value) == value
}

// refused makes an error of an answer that is none.
func refused(name string, resp *http.Response, lost func(error) error) error {
	told := errorsOf(resp)
	text := resp.Status
	if len(told.Errors) > 0 {
		text = strings.Join(told.Errors, "; ")
	}
	switch resp.StatusCode {
	case http.StatusConflict:
		return told.Conflict(name)
	case http.StatusBadRequest:
		field, why, some := strings.Cut(text, ": ")
		if !some {
			field, why = "request", text
		}
		return &store.InvalidError{Field: field, Problem: why}
	case http.StatusGone:
		return unknown(fmt.Errorf("%w: %s", item.ErrForgotten, text))
	case http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %s", task.ErrOtherRequest, text)
	case http.StatusTooManyRequests:
		return &task.OverloadError{Cause: text, RetryAfter: retryAfter(resp)}
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return lost(&task.OverloadError{Cause: text, RetryAfter: retryAfter(resp)})
	}
	is := map[int]problem.Type{http.StatusUnauthorized: problem.Unauthorized, http.StatusForbidden: problem.Forbidden, http.StatusNotFound: problem.NotFound,
		http.StatusMethodNotAllowed: problem.Method, http.StatusRequestEntityTooLarge: problem.TooLarge, http.StatusUnsupportedMediaType: problem.MediaType}[resp.StatusCode]
	if is == "" {
		is = problem.Internal
	}
	return problem.New(is, "%s", text)
}

// errorsOf reads the errors from the answer; it returns none if they cannot be read.
func errorsOf(resp *http.Response) *form.Errors {
	data, err := io.ReadAll(io.LimitReader(resp.Body, errorBytes))
	var is form.Errors
	if err == nil && json.Unmarshal(data, &is) == nil {
		return &is
	}
	return &form.Errors{}
}

// retryAfter returns the wait that the answer asks for, at most a minute.
func retryAfter(resp *http.Response) time.Duration {
	n, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, 60)) * time.Second
}

func unknown(err error) error     { return fmt.Errorf("%w: %w", task.ErrUnknown, err) }
func unavailable(err error) error { return fmt.Errorf("%w: %w", store.ErrUnavailable, err) }

func millis(n int64) events.Millis { return events.Millis(n) }

// dataOf returns data as text if it is valid UTF-8, else as bytes for base64; both nil for no data.
func dataOf(data []byte) (*form.Text, *form.Bytes) {
	switch {
	case len(data) == 0:
		return nil, nil
	case utf8.Valid(data):
		text := form.Text(data)
		return &text, nil
	}
	other := form.Bytes(data)
	return nil, &other
}
