package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"taskledger/task"
)

const (
	// An answer larger than smallAnswer takes its bytes from a budget of maxAnswers while its reader reads.
	smallAnswer = 64 << 10
	// littleLimit is the largest limit of a list whose answer is never large.
	littleLimit = 4
	// pieceBytes divides a large answer: its reader must take each piece within progressWithin.
	pieceBytes = 32 << 10
)

// asksForLittle reports whether a request of a Large route asks for so few things that its answer is small.
func (c *Call) asksForLittle() bool {
	n, err := strconv.Atoi(c.Param("limit"))
	return err == nil && n >= 1 && n <= littleLimit && c.Param("states") == ""
}

// enter waits for a place among the large answers that are made at once, until the context ends. It is given back once
// the answer is made.
func (c *Call) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if take(ctx, 1, c.caller.budgets.large, c.shared.budgets.large) != nil {
		return &task.OverloadError{Cause: "too many large answers at once", RetryAfter: time.Second}
	}
	c.placed = true
	return nil
}

// Making waits for a place among the large answers that are made at once, until the context ends, if the route is Large
// and for browsers. A page calls it after it has asked other routes, which need places of their own, and before it is
// made. A form that may have changed something is answered without a place.
func (c *Call) Making(ctx context.Context) error {
	if !c.route.Large || c.route.Page == nil || c.placed {
		return nil
	}
	if err := c.enter(ctx); err != nil && c.r.Method == http.MethodGet {
		return err
	}
	return nil
}

// leave gives the place back, if the request has one.
func (c *Call) leave() {
	if c.placed {
		c.placed = false
		giveBack(1, c.caller.budgets.large, c.shared.budgets.large)
	}
}

var typeJSON = []string{mediaJSON} // shared by all answers, and never changed

// JSON answers with a value.
func (c *Call) JSON(status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	data = append(data, '\n')
	done, err := c.made(c.ctx, len(data))
	if err != nil {
		return err
	}
	defer done()
	h := c.w.Header()
	h["Content-Type"] = typeJSON
	h.Set("Content-Length", strconv.Itoa(len(data)))
	c.begin(status)
	c.send(data)
	return nil
}

// Done answers with 204 and no body.
func (c *Call) Done() error {
	c.begin(http.StatusNoContent)
	return nil
}

func (c *Call) begin(status int) {
	c.begun = true
	c.w.WriteHeader(status)
}

// made takes the bytes of an answer from the budgets until done, and gives back the place of the request. It waits for
// them until the context ends. A request keeps its place meanwhile, so that no more answers are made than may be
// written.
func (c *Call) made(ctx context.Context, size int) (done func(), err error) {
	if size <= smallAnswer || c.caller == nil {
		c.leave()
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	n := min(int64(size), maxAnswers/parts)
	if take(ctx, n, c.caller.budgets.answers, c.shared.budgets.answers) != nil {
		if c.r.Method != http.MethodGet { // it has changed something: to refuse it now would say that it has not
			c.leave()
			return func() {}, nil
		}
		return nil, &task.OverloadError{Cause: "too many large answers are not read yet", RetryAfter: time.Second}
	}
	c.leave()
	return func() { giveBack(n, c.caller.budgets.answers, c.shared.budgets.answers) }, nil
}

// send writes an answer. It cuts off a reader that takes nothing of a large one for progressWithin, or that has not
// taken all of it within writeWithin.
func (c *Call) send(data []byte) {
	if len(data) <= smallAnswer {
		_, _ = c.w.Write(data) // it fails when the client has gone
		return
	}
	control := http.NewResponseController(c.w)
	last := time.Now().Add(writeWithin)
	for len(data) > 0 {
		by := time.Now().Add(progressWithin)
		if by.After(last) {
			by = last
		}
		_ = control.SetWriteDeadline(by) // a connection without deadlines is one of a test
		n := min(len(data), pieceBytes)
		if _, err := c.w.Write(data[:n]); err != nil {
			return
		}
		data = data[n:]
	}
}
