package remote

import (
	"errors"
	"time"
)

// ErrNoRoute is wrapped by the errors of what the HTTP API cannot do.
var ErrNoRoute = errors.New("the HTTP API has no route for this")

// Options of Open.
type Options struct {
	// URL is the address of the HTTP API: http://HOST:PORT, https://HOST:PORT, each with a path before that of the API
	// if there is one, or unix:PATH, the socket of a node on this machine.
	URL string
	// Token authenticates the requests. No error and no log has it.
	Token string
	// Renew returns the token that holds now, of a node that draws another one when it starts. It is called where the API
	// has refused the last one, and the request is sent again with another one. It may be called concurrently. nil = the
	// token stays.
	Renew func() string
	// Within bounds the wait for one answer, beside the time for which the request itself waits, and the silence of an
	// answer that comes in lines. Default 35 s: the API answers within 30 s.
	Within time.Duration
}
