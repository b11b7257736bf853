package api

import (
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"taskledger/api/doors"
	"taskledger/api/measured"
	"taskledger/api/problem"
)

// ErrorFormat gives errors the form of a front, whatever refuses a request below its path, and names further places of
// the secrets of its callers.
type ErrorFormat struct {
	Path   string // begins the paths of the front, such as "/store/"
	Refuse func(w http.ResponseWriter, r *http.Request, p *problem.Problem)
	Type   string // of what it answers
	Out    any    // a value of its Go type
	// SecretHeader names a header for a secret that the header Authorization does not have; "" = none.
	SecretHeader string
	// SecretParam names a parameter that stands for SecretHeader, on listeners of Below alone; "" = none.
	SecretParam string
	// Session returns the secret that a request without another one has by a cookie, "" for none; nil = no cookie counts.
	Session func(r *http.Request) (secret string)
	// Pages says that the front is pages for a browser: a link of another site may open one.
	Pages bool
	// Page holds the headers of refusals for browsers; nil = the usual ones.
	Page *PagePolicy
}

// refusals answers requests with problems, each in the error format of its path.
type refusals struct {
	formats   []ErrorFormat
	lingering *semaphore.Weighted // requests that were refused, and still send
}

func newRefusals(formats []ErrorFormat) *refusals {
	return &refusals{formats: formats, lingering: semaphore.NewWeighted(lingerAtOnce)}
}

// formatOf returns the error format of a path; nil = RFC 9457.
func (f *refusals) formatOf(path string) *ErrorFormat {
	for i := range f.formats {
		if strings.HasPrefix(path, f.formats[i].Path) {
			return &f.formats[i]
		}
	}
	return nil
}

// refuse answers with a problem. A body that nobody has read to its end is dropped as far as that takes little, and
// the connection ends.
func (f *refusals) refuse(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	if r.ContentLength == 0 {
		f.write(w, r, p)
		return
	}
	w.Header().Set("Connection", "close")
	f.write(w, r, p)
	f.linger(w, r)
}

// write writes a problem in the error format of the path.
func (f *refusals) write(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	is := measured.Of(w)
	is.Refused = p.Type
	d := f.formatOf(r.URL.Path)
	if p.Type == problem.Unauthorized && (d == nil || !d.Pages) { // a browser would open a window of its own
		w.Header().Set("WWW-Authenticate", `Bearer realm="taskledger", Basic realm="taskledger"`)
	}
	if d != nil {
		d.Page.set(w.Header())
		d.Refuse(w, r, p)
		if is.Status == http.StatusSeeOther && f.inHeader(r) == "" { // who comes without a session has guessed nothing
			is.Refused = ""
		}
		return
	}
	p.Write(w) // net/http leaves the text out where HEAD asks
}

const (
	// So much of a body is read and dropped after its request was refused, for so long, of so many requests at once.
	lingerBytes  = 16 << 20
	lingerWithin = 2 * time.Second
	lingerAtOnce = 64
)

// linger reads what a client still sends after its request was refused: many read no answer before they have sent
// all, and lose it when the connection is reset meanwhile.
func (f *refusals) linger(w http.ResponseWriter, r *http.Request) {
	// A client that expects an answer before it sends gets one.
	if r.Header.Get("Expect") != "" || !f.lingering.TryAcquire(1) {
		return
	}
	defer f.lingering.Release(1)
	doors.Of(r).Answered()
	control := http.NewResponseController(w)
	if control.Flush() != nil || control.SetReadDeadline(time.Now().Add(lingerWithin)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes) // it ends with the body, mostly
}
