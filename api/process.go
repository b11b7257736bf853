package api

import (
	"maps"
	"net/http"

	"taskledger/api/problem"
	"taskledger/api/token"
)

// Health tells whether a node serves.
type Health struct {
	Status string `json:"status"` // ok, or why it is not
}

// Version names the version of a node.
type Version struct {
	Version string `json:"version"`
}

// process serves the routes of the process itself, whether or not it serves its cluster.
type process struct {
	release  string
	tokens   Tokens
	unready  func() string // returns why the node does not serve, "" = it does
	meter    http.Handler  // nil = the node measures nothing
	document []byte        // the OpenAPI document
}

// metrics shows the measurements of the node.
func (s *process) metrics(c *Call) error {
	if s.meter == nil {
		return problem.New(problem.NotFound, "the node measures nothing")
	}
	page := &page{call: c, header: http.Header{}, status: http.StatusOK}
	s.meter.ServeHTTP(page, c.r)
	if !c.begun && page.err == nil {
		_, page.err = page.Write(nil)
	}
	return page.err
}

// page is an answer that a handler writes at once. Its bytes count against the budget for large answers, and a reader
// that takes none of them is cut off.
type page struct {
	call   *Call
	header http.Header
	status int
	err    error
}

// Header implements http.ResponseWriter.
func (p *page) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *page) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *page) Write(data []byte) (int, error) {
	done, err := p.call.made(p.call.ctx, len(data))
	if err != nil {
		p.err = err
		return 0, err
	}
	defer done()
	if !p.call.begun {
		maps.Copy(p.call.w.Header(), p.header)
		p.call.begin(p.status)
	}
	p.call.send(data)
	return len(data), nil
}

func (s *process) health(c *Call) error { return c.JSON(http.StatusOK, Health{"ok"}) }

func (s *process) version(c *Call) error { return c.JSON(http.StatusOK, Version{s.release}) }

func (s *process) ready(c *Call) error {
	if why := s.unready(); why != "" {
		// The reason may hold addresses of the store, as errors of it do.
		if by := s.tokens.Find(Secret(c.r)); by == nil || by.Limited() || !by.Role.Allows(token.Viewer) {
			why = "not ready"
		}
		return c.JSON(http.StatusServiceUnavailable, Health{why})
	}
	return c.JSON(http.StatusOK, Health{"ok"})
}

func (s *process) openAPI(c *Call) error {
	c.w.Header().Set("Content-Type", c.route.Type)
	c.begin(http.StatusOK)
	_, _ = c.w.Write(s.document) // it fails when the client has gone
	return nil
}
