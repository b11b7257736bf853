package main_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taskledger/internal/testcluster"
)

func TestCheck_NamesWhatWorksAndWhatDoesNot(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	other := testcluster.NewAuthority(t)
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	wrong := func(variable string) []string {
		return append(slices.Clone(passwordVariables), variable+"=wrong")
	}
	for name, c := range map[string]struct {
		env, args []string
		code      int
		says      []string // in the lines, or on standard error
	}{
		"all": {passwordVariables, s.flags("archive", "keep"), 0,
			[]string{"etcd-cert", "days left", "no such cluster yet; may read, write and have leases", "may publish and subscribe"}},
		"JetStream, which NATS has not": {passwordVariables, s.flags(), 1, []string{"does not work: archive by nats"}},
		"a wrong password of etcd":      {wrong("TASKLEDGER_ETCD_PASSWORD"), s.flags("archive", "keep"), 1, []string{"does not work: etcd"}},
		"a wrong password of NATS":      {wrong("TASKLEDGER_NATS_PASSWORD"), s.flags("archive", "keep"), 1, []string{"does not work: nats"}},
		"another authority of NATS":     {passwordVariables, s.flags("archive", "keep", "nats-ca", other.File), 1, []string{"does not work: nats"}},
		"another cluster":               {passwordVariables, s.flags("archive", "keep", "cluster", "red"), 1, []string{"does not work: etcd", "denie"}},
		"a file that is not there": {passwordVariables, s.flags("archive", "keep", "api", "127.0.0.1:0", "api-tokens", tokens), 1,
			[]string{"does not work: api-tokens"}},
		"wrong usage": {passwordVariables, s.flags("archive", "somewhere"), 2, []string{"--archive somewhere"}},
	} {
		r := runWith(t, c.env, append([]string{"check"}, c.args...)...)
		if r.code != c.code {
			t.Errorf("%s: %+v, want code %d", name, r, c.code)
		}
		for _, part := range c.says {
			if !strings.Contains(r.out+r.err, part) {
				t.Errorf("%s: no %q in %+v", name, part, r)
			}
		}
	}
}
