package connect

import (
	"context"
	"net"
	"strings"
)

// warnPlain logs the servers on other machines to which connections ask for no TLS.
func (a Addresses) warnPlain(ctx context.Context) {
	warn := func(server string, addresses []string, secure TLS) {
		for _, address := range addresses {
			if strings.HasPrefix(address, "unix:") {
				continue
			}
			scheme, host := split(address)
			if secure == (TLS{}) && plain(scheme) && !loopback(host) {
				a.Log.WarnContext(ctx, "connection to another machine without TLS", "server", server, "host", host)
			}
		}
	}
	warn("etcd", a.Etcd, a.EtcdTLS)
	warn("nats", a.NATS, a.NATSTLS)
}

// split leaves out what an address may hold of a user.
func split(address string) (scheme, host string) {
	scheme, host, found := strings.Cut(address, "://")
	if !found {
		scheme, host = "", address
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return scheme, host
}

func plain(scheme string) bool {
	return scheme == "" || scheme == "http" || scheme == "nats" || scheme == "ws"
}

func loopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }
