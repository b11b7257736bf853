package builtin_test

import (
	"net/netip"
	"strings"
	"testing"

	"taskledger/behaviors/builtin"
)

func TestPublic_OnlyAddressesOfTheInternet(t *testing.T) {
	public := `1.1.1.1 8.8.8.8 172.15.255.255 172.32.0.0 100.63.255.255 100.128.0.0 192.167.0.1 223.255.255.255
		2606:4700:4700::1111 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 168.63.129.15 168.63.129.17`
	private := `0.0.0.0 0.1.2.3 168.63.129.16 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.8.9.10 169.254.169.254
		172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7
		203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
		:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::127.0.0.1 64:ff9b::10.1.1.1
		64:ff9b:1::8.8.8.8 100::1 2001::1 2001:db8::1 2001:db8::1%eth0 2002:7f00:1::1 3fff::1 5f00::1 fc00::1
		fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 4000::1`
	for _, text := range strings.Fields(public) {
		if !builtin.Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is said not to be public", text)
		}
	}
	for _, text := range strings.Fields(private) {
		if builtin.Public(netip.MustParseAddr(text)) {
			t.Errorf("%s is said to be public", text)
		}
	}
	if builtin.Public(netip.Addr{}) {
		t.Error("no address is said to be public")
	}
}
