package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/internal/testcluster"
)

// Every password of these tests begins alike, so that a test sees whether any of them was printed.
const (
	passwords    = "hunter2"
	etcdPassword = passwords + "-etcd"
	natsPassword = passwords + "-nats"
)

// secure is an etcd and a NATS that ask for TLS, a client certificate and a password.
type secure struct {
	ca   *testcluster.Authority
	cert testcluster.Certificate
	etcd *testcluster.SecureEtcd
	nats *testcluster.NATS
}

func startSecure(t *testing.T) *secure {
	t.Helper()
	s := &secure{ca: testcluster.NewAuthority(t), nats: testcluster.StartNATS(t)}
	s.cert = s.ca.Issue("client")
	s.nats.Secure(s.ca.Server(true), "worker", natsPassword)
	s.etcd = testcluster.StartSecureEtcd(t, testcluster.Security{Authority: s.ca, ClientCerts: true, RootPassword: passwords + "-root"})
	s.etcd.AddUser("member", etcdPassword)
	s.etcd.Permit("member", "blue")
	return s
}

// settings are all that is needed to get in but the passwords, by the names of the flags.
func (s *secure) settings() map[string]string {
	return map[string]string{
		"cluster": "blue",
		"etcd":    s.etcd.Endpoint, "etcd-ca": s.ca.File, "etcd-cert": s.cert.CertFile, "etcd-key": s.cert.KeyFile, "etcd-user": "member",
		"nats": s.nats.URL, "nats-ca": s.ca.File, "nats-cert": s.cert.CertFile, "nats-key": s.cert.KeyFile, "nats-user": "worker",
	}
}

// flags returns the settings as flags, with changes; one changed to "" is left out.
func (s *secure) flags(changes ...string) (args []string) {
	all := s.settings()
	for i := 0; i < len(changes); i += 2 {
		all[changes[i]] = changes[i+1]
	}
	for name, value := range all {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	return args
}

// variables returns the settings as variables, and the passwords.
func (s *secure) variables() (env []string) {
	for name, value := range s.settings() {
		env = append(env, "TASKLEDGER_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+value)
	}
	return append(env, passwordVariables...)
}

var passwordVariables = []string{"TASKLEDGER_ETCD_PASSWORD=" + etcdPassword, "TASKLEDGER_NATS_PASSWORD=" + natsPassword}

// file returns a settings file, which names files that hold the passwords.
func (s *secure) file(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for name, value := range s.settings() {
		fmt.Fprintf(&text, "%s: %q\n", name, value)
	}
	for name, password := range map[string]string{"etcd-password-file": etcdPassword, "nats-password-file": natsPassword} {
		path := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s: %q\n", name, path)
	}
	return settingsFile(t, text.String())
}

// runWith runs the program with variables.
func runWith(t *testing.T, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cmd := command(ctx, t.TempDir(), args...)
	cmd.Env = append(cmd.Env, env...)
	r := finish(t, cmd)
	wantNoPassword(t, strings.Join(args, " "), r.out+r.err)
	return r
}

func wantNoPassword(t *testing.T, what, printed string) {
	t.Helper()
	if strings.Contains(printed, passwords) {
		t.Errorf("%s: printed a password: %s", what, printed)
	}
}

func TestSecure_NodeAndClientsGetInByFlagsVariablesAndFile(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	n := serve(t, t.TempDir(), "--config", s.file(t), "--name", "a", "--ttl", "3s", "--log-level", "debug")
	for name, c := range map[string]struct{ env, args []string }{
		"flags":     {passwordVariables, s.flags()},
		"variables": {s.variables(), nil},
		"file":      {nil, []string{"--config", s.file(t)}},
	} {
		r := runWith(t, c.env, append([]string{"submit", "noop", "--id", name, "--wait"}, c.args...)...)
		if r.code != 0 || r.out != name+"\n" || r.err != "" { // it would tell of a NATS that refuses it
			t.Errorf("%s: %+v", name, r)
		}
		r = runWith(t, c.env, append([]string{"nodes", "-o", "json"}, c.args...)...)
		if nodes := objects(t, r.out); r.code != 0 || len(nodes) != 1 || nodes[0]["node"] != "a" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := runWith(t, passwordVariables, append([]string{"verify"}, s.flags()...)...); r.code != 0 {
		t.Errorf("verify: %+v", r)
	}
	n.stop(t)
	log := n.stderr.String()
	if !strings.Contains(log, "bus connected") {
		t.Errorf("the node has not reached NATS: %s", log)
	}
	wantNoPassword(t, "serve", log+strings.Join(n.printed, "\n")+strings.Join(n.commands, "\n"))
}

func TestSecure_WrongOnesAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	serve(t, t.TempDir(), "--config", s.file(t), "--ttl", "3s")
	other := testcluster.NewAuthority(t)
	wrong := []string{"TASKLEDGER_ETCD_PASSWORD=" + passwords + "-x", "TASKLEDGER_NATS_PASSWORD=" + passwords + "-y"}
	for name, c := range map[string]struct {
		env, args []string
		code      int
		want      string
	}{
		"etcd password":           {wrong, s.flags(), 5, `etcd denies access to user "member"`},
		"no etcd password":        {passwordVariables[1:], s.flags(), 2, "want user and password, or neither"},
		"no NATS password":        {passwordVariables[:1], s.flags(), 2, "nats-user"},
		"another cluster":         {passwordVariables, s.flags("cluster", "red"), 5, "permission denied"},
		"authority of etcd":       {passwordVariables, s.flags("etcd-ca", other.File), 4, "certificate signed by unknown authority"},
		"no client certificate":   {passwordVariables, s.flags("etcd-cert", "", "etcd-key", ""), 4, "certificate required"},
		"certificate without key": {passwordVariables, s.flags("etcd-key", ""), 2, "a certificate needs its key"},
		"no TLS":                  {passwordVariables, s.flags("etcd", strings.Replace(s.etcd.Endpoint, "https", "http", 1)), 2, "want https:// with TLS"},
		"password in an endpoint": {passwordVariables, s.flags("etcd", strings.Replace(s.etcd.Endpoint, "//", "//u:"+passwords+"@", 1)), 2, "endpoint holds a user"},
		"password file":           {nil, s.flags("etcd-password-file", "no-such-file"), 2, "read password"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, of := range [][]string{{"nodes", "--timeout", "1h"}, {"serve"}} {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				cmd := command(ctx, t.TempDir(), append(of, c.args...)...)
				cmd.Env = append(cmd.Env, c.env...)
				r := finish(t, cmd)
				if r.code != c.code || !strings.Contains(r.err, c.want) || strings.Count(r.err, "\n") != 1 {
					t.Errorf("%s: code %d, want %d and %q: %s", of, r.code, c.code, c.want, r.err)
				}
				wantNoPassword(t, of[0], r.out+r.err)
			}
		})
	}
	t.Run("NATS password", func(t *testing.T) {
		t.Parallel()
		r := runWith(t, []string{passwordVariables[0], wrong[1]}, append([]string{"submit", "sleep", `{"duration":"500ms"}`, "--wait", "--id", "x"}, s.flags()...)...)
		if r.code != 0 || !strings.Contains(r.err, "Authorization Violation") {
			t.Errorf("want a warning, and success by way of etcd: %+v", r)
		}
	})
}

func TestSecure_PasswordsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"list", "--help"}, {"no-such-command"}, {"serve", "--no-such-flag"}} {
		runWith(t, s.variables(), args...)
	}
	withPassword := strings.Replace(s.nats.URL, "//", "//worker:"+natsPassword+"@", 1)
	flags := s.flags("nats", withPassword, "nats-user", "")
	if r := runWith(t, passwordVariables, append([]string{"list"}, flags...)...); r.code != 4 || !strings.Contains(r.err, "start one with") {
		t.Errorf("without a cluster: %+v", r)
	}
	cmd := command(context.Background(), t.TempDir(), append([]string{"serve", "--ttl", "3s", "--log-level", "debug"}, flags...)...)
	cmd.Env = append(cmd.Env, passwordVariables...)
	n := start(t, cmd)
	n.stop(t)
	log := n.stderr.String()
	if !strings.Contains(log, "bus connected") {
		t.Errorf("the node has not reached NATS: %s", log)
	}
	wantNoPassword(t, "serve", log+strings.Join(n.printed, "\n")+strings.Join(n.commands, "\n"))
}

func TestCluster_NameCountsOnServersInsideAndWithJoin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--cluster", "blue", "--name", "a", "--ttl", "3s")
	list := finish(t, typed(t.Context(), dir, n.commands[1]))
	if list.code != 0 || !strings.Contains(n.commands[1], "--cluster blue") {
		t.Errorf("%s: %+v", n.commands[1], list)
	}
	start(t, typed(context.Background(), dir, n.commands[2]))
	if got := objects(t, must(t, dir, "nodes", "--cluster", "blue", "-o", "json")); len(got) != 2 {
		t.Errorf("%d nodes in blue, want 2", len(got))
	}
	r := run(t, dir, "list")
	offer := " serve --join ./taskledger-data\n"
	if r.code != 4 || !strings.Contains(r.err, `"taskledger": no such cluster`) || !strings.HasSuffix(r.err, binary+offer) {
		t.Errorf("another cluster: %+v", r)
	}
	start(t, typed(context.Background(), dir, strings.TrimSpace(r.err[strings.LastIndex(r.err, binary):])+" --ttl 3s"))
	if got := objects(t, must(t, dir, "nodes", "-o", "json")); len(got) != 1 {
		t.Errorf("%d nodes in the other cluster, want 1", len(got))
	}
	must(t, dir, "submit", "noop", "--cluster", "blue", "--id", "x", "--wait")
	if r := run(t, dir, "get", "x"); r.code != 3 {
		t.Errorf("a task of blue in the other cluster: %+v", r)
	}
	if r := run(t, dir, "list", "--cluster", "Blue"); r.code == 0 || !strings.Contains(r.err, `--cluster "Blue"`) {
		t.Errorf("a bad name: %+v", r)
	}
}
