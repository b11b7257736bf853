package connect

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzSplit takes any address apart: what it may hold of a user and a password is left out of what is logged.
func FuzzSplit(f *testing.F) {
	f.Add("nats://user:secret@10.0.0.1:4222")
	f.Add("https://[::1]:2379")
	f.Add("host")
	f.Add("://@:")
	f.Fuzz(func(t *testing.T, address string) {
		if _, host := split(address); strings.Contains(host, "@") {
			t.Errorf("%q: host %q", address, host)
		}
		for _, bare := range Bare([]string{address}) {
			if u, err := url.Parse(bare); err != nil || u.User != nil {
				t.Errorf("%q is shown as %q", address, bare)
			}
		}
	})
}
