package main_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
)

func TestCheck_NamesWhatWorksAndWhatDoesNot(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	open, _ := testcluster.StartEtcd(t)
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
		"JetStream, which NATS has not": {passwordVariables, s.flags("archive", "jetstream"), 1, []string{"does not work: archive by nats"}},
		"NATS without JetStream, and no word of an archive": {passwordVariables, s.flags(), 0,
			[]string{"none, so the journal is kept in etcd, and grows: ", "NATS has no JetStream"}},
		"programs, and etcd that nobody else can write": {passwordVariables, s.flags("archive", "keep", "exec-allow", "/bin/true"), 0,
			[]string{"exec-allow", "nobody else can write etcd"}},
		"programs, and etcd that everybody can write": {nil, []string{"--etcd", open, "--exec-allow", "/bin/true"}, 1,
			[]string{"does not work: exec-allow", "it would let others run programs: others can write etcd: want TLS"}},
		"programs, and etcd that takes any user": {[]string{"TASKLEDGER_ETCD_PASSWORD=any"},
			[]string{"--etcd", open, "--etcd-user", "anybody", "--exec-allow", "/bin/true"}, 1,
			[]string{"does not work: exec-allow", "authentication of etcd is off"}},
		"a wrong password of etcd":  {wrong("TASKLEDGER_ETCD_PASSWORD"), s.flags("archive", "keep"), 1, []string{"does not work: etcd"}},
		"a wrong password of NATS":  {wrong("TASKLEDGER_NATS_PASSWORD"), s.flags("archive", "keep"), 1, []string{"does not work: nats"}},
		"another authority of NATS": {passwordVariables, s.flags("archive", "keep", "nats-ca", other.File), 1, []string{"does not work: nats"}},
		"another cluster":           {passwordVariables, s.flags("archive", "keep", "cluster", "red"), 1, []string{"does not work: etcd", "denie"}},
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

// What serve would refuse check names, also where there is no cluster, which no node would create then.
func TestCheck_NamesAnotherClusterThanExpected(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	dir, data := t.TempDir(), t.TempDir()
	check := func(code int, says string, args ...string) {
		t.Helper()
		r := run(t, dir, append([]string{"check", "--etcd", endpoint, "--archive", "keep"}, args...)...)
		if r.code != code || !strings.Contains(r.out+r.err, says) {
			t.Errorf("check %v: %+v, want code %d and %q", args, r, code, says)
		}
	}
	check(0, "there is no such cluster yet")
	check(1, "that of id other was expected", "--expect-cluster", "other")
	s, err := etcdstore.Open(t.Context(), etcdstore.Config{Endpoints: []string{endpoint}, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	id := s.Cluster().ID
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check(0, "cluster "+id, "--expect-cluster", id)
	check(0, "cluster "+id, "--shards", "1")
	check(1, "2 shards asked for, but the cluster was created with 1", "--shards", "2")
	check(2, "--ttl: 1s", "--ttl", "1s")
	check(2, "--concurrency: foo=3", "--concurrency", "foo=3")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	check(1, "does not work: metrics", "--metrics", taken.Addr().String())
	check(0, "may listen at", "--metrics", "127.0.0.1:0")
	check(1, "its id is "+id+", that of cluster other was expected", "--expect-cluster", "other")
	if err := os.WriteFile(filepath.Join(data, "cluster-taskledger.id"), []byte("other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check(1, "that of cluster other was expected", "--data", data)
	check(2, "says that this node is of cluster other", "--data", data, "--expect-cluster", id)
	check(0, "cluster "+id, "--data", data, "--new-cluster")
}

// A check fails where no node serves on the directory that --join names, and where nothing is named.
func TestCheck_AsksTheNodeToJoinAndWantsSomethingToAsk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--join", "taskledger-data"}, 0, "a node serves there; cluster "},
		{[]string{"--join", "taskledger-data", "--cluster", "red"}, 0, "there is no such cluster yet"},
		{[]string{"--join", "taskledger-data", "--expect-cluster", "other"}, 1, "does not work: join taskledger-data"},
		{[]string{"--join", "nowhere"}, 1, "does not work: join nowhere"},
		{nil, 2, "nothing is named that can be checked"},
	} {
		r := run(t, dir, append([]string{"check"}, c.args...)...)
		if r.code != c.code || !strings.Contains(r.out+r.err, c.says) {
			t.Errorf("check %q: %+v, want code %d and %q", c.args, r, c.code, c.says)
		}
	}
	n.stop(t)
	if r := run(t, dir, "check", "--join", "taskledger-data"); r.code != 1 {
		t.Errorf("a node that has stopped: %+v", r)
	}
}
