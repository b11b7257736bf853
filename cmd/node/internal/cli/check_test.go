package cli

import (
	"errors"
	"strings"
	"testing"
)

// A node that has no servers inside would leave the port out without a word.
func TestServe_RefusesPortsOfServersThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	for _, port := range []string{"--etcd-port", "--nats-port"} {
		for _, elsewhere := range [][]string{{"--join", "d"}, {"--etcd", "unix:d/socket/etcd"}} {
			a := &app{}
			flags := a.serve.flags()
			flags.AddFlagSet(a.access.flags())
			if err := flags.Parse(append([]string{port, "4222"}, elsewhere...)); err != nil {
				t.Fatal(err)
			}
			err := a.serve.check(a.access.addresses)
			_, usage := errors.AsType[*usageError](err)
			if !usage || !strings.Contains(err.Error(), port) || !strings.Contains(err.Error(), elsewhere[0]) {
				t.Errorf("%s %s: %v", port, elsewhere, err)
			}
		}
	}
}
