package api

import "net/http"

// PagePolicy holds the headers by which a browser learns what a page may load, what it tells other sites, and how long
// an answer may be kept. A program ignores them.
type PagePolicy struct {
	Content  string // Content-Security-Policy
	Referrer string // Referrer-Policy
	Cache    string // Cache-Control
}

// set sets the headers of the policy; nil leaves those of every answer.
func (p *PagePolicy) set(h http.Header) {
	if p == nil {
		return
	}
	h.Set("Content-Security-Policy", p.Content)
	h.Set("Referrer-Policy", p.Referrer)
	h.Set("Cache-Control", p.Cache)
}
