package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"taskledger/api/problem"
	"taskledger/store"
	"taskledger/task"
)

const (
	// A body larger than smallBody takes memory from a budget of maxBodies bytes; one caller may take half of it. The request takes more as
	// bytes arrive, and is refused if it has waited for roomWithin.
	smallBody  = 64 << 10
	maxBodies  = 2 * maxBatch
	roomWithin = 2 * time.Second
	// inJSON is the media type of what is JSON.
	inJSON = "application/json"
)

// Read decodes the body: one JSON value of the route's type, without fields that it has not, and each once.
func (c *Call) Read(into any) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	return c.Decode(body, into)
}

// Decode decodes what Body has read, as Read does.
func (c *Call) Decode(body []byte, into any) error { return decode(body, into, c.route.shape) }

// Body reads the body for a route that looks at it before it is decoded.
func (c *Call) Body() ([]byte, error) {
	if !c.saysJSON() {
		return nil, problem.New(problem.MediaType, "want the header Content-Type: application/json")
	}
	if c.r.ContentLength > c.route.MaxBody {
		return nil, tooLarge(c.route.MaxBody)
	}
	return c.readBody()
}

// saysJSON reports whether the body is said to be JSON, or may be JSON that nobody says anything of.
func (c *Call) saysJSON() bool {
	switch typed := c.r.Header.Get("Content-Type"); typed {
	case inJSON:
		return true
	case "":
		return c.route.Untyped
	default:
		is, _, err := mime.ParseMediaType(typed)
		return err == nil && is == inJSON
	}
}

// readBody reads the body, and holds a part of the budgets for it.
func (c *Call) readBody() ([]byte, error) {
	src := http.MaxBytesReader(c.w, c.r.Body, c.route.MaxBody)
	var body bytes.Buffer
	body.Grow(int(min(max(c.r.ContentLength, 0), smallBody)) + bytes.MinRead)
	for room := int64(smallBody); ; room *= 2 {
		_, err := io.CopyN(&body, src, room-int64(body.Len()))
		switch _, large := errors.AsType[*http.MaxBytesError](err); {
		case errors.Is(err, io.EOF):
			return body.Bytes(), nil
		case large:
			return nil, tooLarge(c.route.MaxBody)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, problem.New(problem.Slow, "the body has not come within %s", answerWithin)
		case err != nil:
			return nil, problem.New(problem.Malformed, "the body cannot be read: %s", err)
		}
		if err := c.holdBody(min(2*room, c.route.MaxBody)); err != nil {
			return nil, err
		}
	}
}

// holdBody waits until the budgets have so many bytes for the body.
func (c *Call) holdBody(size int64) error {
	ctx, cancel := context.WithTimeout(c.ctx, roomWithin)
	defer cancel()
	more := size - c.held
	if more <= 0 {
		return nil
	}
	err := c.caller.bodies.Acquire(ctx, more)
	if err == nil {
		if err = c.api.bodies.Acquire(ctx, more); err != nil {
			c.caller.bodies.Release(more)
		}
	}
	if err != nil {
		return &task.OverloadError{Cause: "too many large bodies at once", RetryAfter: time.Second}
	}
	c.held = size
	return nil
}

// dropBody gives back what holdBody took, once nothing needs the body any more.
func (c *Call) dropBody() {
	if c.held > 0 {
		c.caller.bodies.Release(c.held)
		c.api.bodies.Release(c.held)
		c.held = 0
	}
}

func tooLarge(limit int64) error {
	p := problem.New(problem.TooLarge, "body: more than the limit of %d bytes", limit)
	p.Field, p.Limit = "body", &limit
	return p
}

func decode(data []byte, into any, is *shape) error {
	if err := check(data, is); err != nil {
		return err
	}
	if !utf8.Valid(data) {
		return problem.New(problem.Malformed, "the body is no UTF-8")
	}
	if err := json.Unmarshal(data, into); err != nil {
		if invalid, ok := errors.AsType[*store.InvalidError](err); ok {
			return invalid
		}
		p := problem.New(problem.Malformed, "body: %s", strings.TrimPrefix(err.Error(), "json: "))
		if len(bytes.TrimSpace(data)) == 0 {
			p.Detail = "body: it is empty"
		}
		if is, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			p.Field = cmp.Or(is.Field, "body")
			p.Detail = fmt.Sprintf("%s: want %s, got the JSON type %s", p.Field, jsonOf(is.Type), is.Value)
		}
		return p
	}
	return nil
}

// jsonOf names what a Go type is in JSON.
func jsonOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "an array"
	default:
		return "an object"
	}
}
