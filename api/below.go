package api

import (
	"net"
	"net/http"
)

// belowKey is the context key of the path below which a listener serves.
type belowKey struct{}

type below struct {
	net.Listener
	path string
}

// Below returns a listener that serves what lies below a path alone. Requests to it leave the path out.
func Below(l net.Listener, path string) net.Listener { return below{l, path} }

// pathBelow returns the path below which the listener of a request serves; "" = it serves everything.
func pathBelow(r *http.Request) string {
	path, _ := r.Context().Value(belowKey{}).(string)
	return path
}
