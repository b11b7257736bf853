package builtin

import "net/netip"

// specialRanges are the blocks of the IANA special-purpose registries that no public server has, beyond those which
// netip.Addr knows itself, and what clouds answer from inside a machine alone. IPv6 outside 2000::/3 is not public at
// all.
var specialRanges = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT
	netip.MustParsePrefix("168.63.129.16/32"), // the host of a machine in Azure
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved, broadcast
	netip.MustParsePrefix("2001::/23"),        // protocol assignments, Teredo
	netip.MustParsePrefix("2001:db8::/32"),    // documentation
	netip.MustParsePrefix("2002::/16"),        // 6to4: holds any IPv4 address
	netip.MustParsePrefix("3fff::/20"),        // documentation
}

var (
	globalIPv6 = netip.MustParsePrefix("2000::/3")
	nat64      = netip.MustParsePrefix("64:ff9b::/96") // holds an IPv4 address in its last 32 bits
)

// public reports whether addr can be that of a server on the internet, rather than of the node, its network or its
// cloud.
func public(addr netip.Addr) bool {
	addr = addr.Unmap()
	switch {
	case nat64.Contains(addr):
		all := addr.As16()
		return public(netip.AddrFrom4([4]byte(all[12:])))
	case !addr.IsGlobalUnicast() || addr.IsPrivate():
		return false
	case addr.Is6() && !globalIPv6.Contains(addr): // an address with a zone is in no prefix
		return false
	}
	return !containedIn(specialRanges, addr)
}

func containedIn(ranges []netip.Prefix, addr netip.Addr) bool {
	for _, r := range ranges {
		if r.Contains(addr) {
			return true
		}
	}
	return false
}
