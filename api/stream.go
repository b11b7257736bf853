package api

import (
	"context"
	"io"
	"net/http"
	"time"
)

// flushAfter bounds how long the written part of a stream waits for the next part.
const flushAfter = 100 * time.Millisecond

// stream is an answer that is written as it comes, as far as its reader keeps up. Its end must be called after the
// last write.
type stream struct {
	call    *Call
	flushed time.Time
}

// Stream begins an answer of a route of class Pages that does not fit one page. end sends what is left of it, and must
// be called after the last write. It counts among the streams of the caller until done.
func (c *Call) Stream() (w io.Writer, end func() error, done func(), err error) {
	left, p := c.shared.callers.streaming(c.by.Name, c.caller)
	if p != nil {
		return nil, nil, nil, p
	}
	w, end, ended := c.Relay()
	return w, end, func() { ended(); left() }, nil
}

// Relay is Stream for an answer that passes a stream of Client on, which counts among the streams of the caller.
func (c *Call) Relay() (w io.Writer, end func() error, done func()) {
	c.leave() // one page after the other is in memory from now on
	ctx, cancel := context.WithCancel(c.ctx)
	c.ctx = ctx
	ended := c.ending(cancel)
	s := &stream{call: c}
	return s, s.end, ended
}

// Write implements io.Writer.
func (s *stream) Write(data []byte) (int, error) {
	if now := time.Now(); now.Sub(s.flushed) > flushAfter {
		s.flushed = now
		if err := s.end(); err != nil {
			return 0, err
		}
	}
	return s.call.w.Write(data)
}

// end sends what is written. A stream without any write is an empty answer.
func (s *stream) end() error {
	c := s.call
	if !c.begun {
		c.w.Header().Set("Content-Type", c.route.Type)
		c.begin(http.StatusOK)
	}
	control := http.NewResponseController(c.w)
	within := writeWithin
	if c.route.Class == Pages {
		within = progressWithin
	}
	_ = control.SetWriteDeadline(time.Now().Add(within))
	if c.ends() { // checked now, as this deadline may just have taken the place of the last one
		_ = control.SetWriteDeadline(time.Now().Add(lastWriteWithin))
	}
	return control.Flush()
}
