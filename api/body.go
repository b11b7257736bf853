package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"taskledger/api/measured"
	"taskledger/api/problem"
	"taskledger/api/shape"
	"taskledger/task"
)

const (
	// A body larger than smallBody takes memory from a budget of maxBodies bytes; one caller may take a part of it.
	// The request takes more as bytes arrive, and is refused if it has waited for roomWithin.
	smallBody  = 64 << 10
	roomWithin = 2 * time.Second
	// mediaJSON is the media type of JSON.
	mediaJSON = "application/json"
)

// Read decodes the body: one JSON value of the route's type, without fields that it has not, and each once.
func (c *Call) Read(into any) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	return c.Decode(body, into)
}

// ReadOptional decodes a body that may be left out.
func (c *Call) ReadOptional(into any) error {
	if c.route.MaxBody == 0 || c.r.ContentLength == 0 {
		return nil
	}
	return c.Read(into)
}

// Decode decodes what Body has read, as Read does.
func (c *Call) Decode(body []byte, into any) error { return shape.Decode(body, into) }

// Body reads the body for a route that looks at it before it is decoded.
func (c *Call) Body() ([]byte, error) {
	if !c.saysJSON() {
		return nil, problem.New(problem.MediaType, "want the header Content-Type: application/json, in UTF-8")
	}
	return c.plainBody()
}

// plainBody reads a body of any media type that is not encoded, and within the limit of the route.
func (c *Call) plainBody() ([]byte, error) {
	if coding := c.r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, problem.New(problem.MediaType, "Content-Encoding: %.32q: want a body that is not encoded", coding)
	}
	if c.r.ContentLength > c.route.MaxBody {
		return nil, tooLarge(c.route.MaxBody)
	}
	return c.readBody()
}

// saysJSON reports whether the header Content-Type lets the body be read as JSON.
func (c *Call) saysJSON() bool {
	switch typed := c.r.Header.Get("Content-Type"); typed {
	case mediaJSON:
		return true
	case "":
		return c.route.Untyped
	default:
		is, of, err := mime.ParseMediaType(typed)
		charset := cmp.Or(of["charset"], "utf-8")
		return err == nil && is == mediaJSON && strings.EqualFold(charset, "utf-8")
	}
}

// readBody reads the body, and holds a part of the budgets for it.
func (c *Call) readBody() ([]byte, error) {
	src := http.MaxBytesReader(measured.Plain(c.w), c.r.Body, c.route.MaxBody)
	var body bytes.Buffer
	body.Grow(int(min(max(c.r.ContentLength, 0), smallBody)) + bytes.MinRead)
	for room := int64(smallBody); ; room *= 2 {
		_, err := io.CopyN(&body, src, room-int64(body.Len()))
		switch _, large := errors.AsType[*http.MaxBytesError](err); {
		case errors.Is(err, io.EOF):
			c.whole = true
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
	if take(ctx, more, c.caller.budgets.bodies, c.shared.budgets.bodies) != nil {
		return &task.OverloadError{Cause: "too many large bodies at once", RetryAfter: time.Second}
	}
	c.held = size
	return nil
}

// dropBody gives back what holdBody took, once nothing needs the body any more.
func (c *Call) dropBody() {
	if c.held > 0 {
		giveBack(c.held, c.caller.budgets.bodies, c.shared.budgets.bodies)
		c.held = 0
	}
}

func tooLarge(limit int64) error {
	p := problem.New(problem.TooLarge, "body: more than the limit of %d bytes", limit)
	p.Field, p.Limit = "body", &limit
	return p
}
