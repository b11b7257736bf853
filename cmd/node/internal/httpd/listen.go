package httpd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"taskledger/api"
)

// listen adds a listener for what is below a path, all if that is "", and returns its URL.
func (s *Server) listen(address, usual, below string) (url string, err error) {
	l, err := listen(address, usual)
	if err != nil {
		return "", err
	}
	scheme, bounded := "http", s.budget.Listen(l)
	if s.secure != nil {
		scheme, bounded = "https", tls.NewListener(bounded, s.secure)
	}
	if below != "" {
		bounded = api.Below(bounded, below)
	}
	s.listeners = append(s.listeners, bounded)
	if at, ok := l.Addr().(*net.TCPAddr); s.secure == nil && !s.options.Insecure && (!ok || !at.IP.IsLoopback()) { // a name that leads elsewhere
		return "", fmt.Errorf("%s leads to %s, which is no loopback address", address, l.Addr())
	}
	return scheme + "://" + named(l.Addr().String(), s.options.Hosts), nil
}

// named is an address by which a client here reaches a listener, which may be one of all addresses.
func named(address string, hosts []string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return address
	}
	return net.JoinHostPort(append(hosts[:len(hosts):len(hosts)], "localhost")[0], port)
}

// listen takes the address that was asked for, or else the usual one or a free one.
func listen(address, usual string) (net.Listener, error) {
	if address != "" {
		return net.Listen("tcp", address)
	}
	l, err := net.Listen("tcp", usual)
	if errors.Is(err, syscall.EADDRINUSE) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	return l, err
}
