package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"

	"taskledger/api/measured"
	"taskledger/api/problem"
)

// HTML answers with a page. A browser that has the same page already is told so, without it. A large page waits for the
// bytes that it may take until the context ends.
func (c *Call) HTML(ctx context.Context, status int, page []byte) error {
	return c.text(ctx, status, "text/html; charset=utf-8", page)
}

// Asset answers with a file that pages load.
func (c *Call) Asset(media string, data []byte) error {
	return c.text(c.ctx, http.StatusOK, media, data)
}

// text answers with a text that a browser may keep. Its ETag is made of the text.
func (c *Call) text(ctx context.Context, status int, media string, text []byte) error {
	h := c.w.Header()
	h.Set("Content-Type", media)
	if status == http.StatusOK && c.r.Method != http.MethodPost {
		sum := sha256.Sum256(text)
		tag := `"` + hex.EncodeToString(sum[:16]) + `"`
		h.Set("ETag", tag)
		if isAmong(c.r.Header.Values("If-None-Match"), tag) {
			c.begin(http.StatusNotModified)
			return nil
		}
	}
	done, err := c.made(ctx, len(text))
	if err != nil {
		return err
	}
	defer done()
	h.Set("Content-Length", strconv.Itoa(len(text)))
	c.begin(status)
	c.send(text)
	return nil
}

// RefuseHTML answers with a page that says why a form was refused, which counts as a refusal of that type.
func (c *Call) RefuseHTML(is problem.Type, page []byte) error {
	measured.Of(c.w).Refused = is
	return c.HTML(c.ctx, problem.New(is, "").Status, page)
}

// Redirect has a browser that sent a form ask for another page.
func (c *Call) Redirect(to string) error {
	c.w.Header().Set("Location", to)
	c.begin(http.StatusSeeOther)
	return nil
}

// Request returns the request. Its body is read by Read, Body and Form alone.
func (c *Call) Request() *http.Request { return c.r }
