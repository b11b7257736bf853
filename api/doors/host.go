package doors

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// HostAllowed reports whether the host that a request names is localhost, an address, or one of the names. After DNS
// rebinding a web page asks under a name of its own.
func HostAllowed(host string, names []string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Zone() == "" || strings.EqualFold(name, "localhost") ||
		slices.ContainsFunc(names, func(ours string) bool { return strings.EqualFold(ours, name) })
}
