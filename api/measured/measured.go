// Package measured describes the requests that an API answers, and has the port through which the API reports them.
package measured

import (
	"net/http"
	"time"

	"taskledger/api/problem"
)

// Watcher receives each request once it is answered, from the goroutine that has answered it: it must return at once.
type Watcher interface {
	Answered(Request)
}

// Request is a request and its answer. Route, Status and Refused have few values each, whatever is asked for.
type Request struct {
	Route   string        // method and pattern of the route, as the table has them; "" = none was found
	Status  int           // of the answer; 0 = the connection was cut
	Refused problem.Type  // why the request was refused; "" = it was not
	Took    time.Duration // time until it was answered, with the time in which it waited or streamed
}

// State counts the requests, waits and streams that are open at one moment.
type State struct {
	Requests int // all of them
	Streams  int // those that stream
	Waits    int // those that wait for something to happen
}

// Writer notes how a request is answered.
type Writer struct {
	http.ResponseWriter
	Request Request
}

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(status int) {
	if w.Request.Status < http.StatusOK { // none, or one that another follows
		w.Request.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(data []byte) (int, error) {
	if w.Request.Status < http.StatusOK {
		w.Request.Status = http.StatusOK
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController find the connection.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Of returns the record of the request that w answers. Without a watcher the record is discarded.
func Of(w http.ResponseWriter) *Request {
	if watched, is := w.(*Writer); is {
		return &watched.Request
	}
	return new(Request)
}

// Plain returns the http.ResponseWriter that net/http made, without the Writer around it, since some functions of
// net/http require it.
func Plain(w http.ResponseWriter) http.ResponseWriter {
	if watched, is := w.(*Writer); is {
		return watched.ResponseWriter
	}
	return w
}
