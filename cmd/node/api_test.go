package main_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taskledger/internal/testcluster"
)

// door holds the part of cluster.json about the API.
type door struct {
	API        []string
	URL, Token string
}

func advertised(t *testing.T, dir string) (d door) {
	t.Helper()
	path := filepath.Join(dir, "taskledger-data", "cluster.json")
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v, %v", err, statErr, info)
	}
	return d
}

// call asks the API, and returns the status and the answer.
func call(t *testing.T, client *http.Client, method, url, token, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestAPI_IsServedToTheUserAndToWhoHasAToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--api", "127.0.0.1:0", "--log-level", "debug")
	at := advertised(t, dir)
	if len(at.API) != 2 || !strings.HasPrefix(at.API[0], "unix:") || at.API[1] != at.URL || !strings.Contains(strings.Join(n.printed, "\n"), at.URL) {
		t.Fatalf("%+v; printed %q", at, n.printed)
	}
	client := &http.Client{}
	defer client.CloseIdleConnections()
	if status, text := call(t, client, "POST", at.URL+"/v1/tasks?wait=30s", at.Token, `{"behavior":"noop","id":"mine"}`); status != 200 || !strings.Contains(text, "SUCCESS") {
		t.Errorf("%d %s", status, text)
	}
	socket := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(at.API[0], "unix:"))
	}}}
	defer socket.CloseIdleConnections()
	if status, text := call(t, socket, "GET", "http://localhost/v1/tasks/mine", at.Token, ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}

	secret := must(t, dir, "token", "new", "ci", "--role", "submitter", "--affinity-prefix", "ci.")
	id := strings.Fields(strings.Split(must(t, dir, "token", "list"), "\n")[1])[0]
	status, text := 0, ""
	testcluster.Await(t, "the token is known", func() bool {
		status, text = call(t, client, "POST", at.URL+"/v1/tasks?wait=30s", secret, `{"behavior":"noop"}`)
		return status != http.StatusUnauthorized
	})
	if status != 200 || !strings.Contains(text, `"id":"ci.`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := call(t, client, "GET", at.URL+"/v1/tasks/mine", secret, ""); status != 404 {
		t.Errorf("another's task: %d %s", status, text)
	}
	if got := must(t, dir, "history", "mine"); !strings.Contains(got, "local") {
		t.Errorf("nobody has asked: %s", got)
	}
	must(t, dir, "token", "revoke", id)
	testcluster.Await(t, "the token is revoked", func() bool {
		status, _ := call(t, client, "GET", at.URL+"/openapi.json", secret, "")
		return status == http.StatusUnauthorized
	})
	begun := time.Now()
	n.stop(t)
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("drained after %s", took)
	}
	for what, log := range map[string]string{"log": n.stderr.String(), "output": strings.Join(n.printed, "\n")} {
		if strings.Contains(log, secret) || strings.Contains(log, at.Token) {
			t.Errorf("the %s holds a token", what)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "taskledger-data", "cluster.json")); err == nil {
		t.Error("cluster.json outlives the node")
	}
}

func TestAPI_WithACertificateIsAskedByTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := testcluster.NewAuthority(t)
	cert := ca.Issue("server")
	serve(t, dir, "--api", "127.0.0.1:0", "--api-cert", cert.CertFile, "--api-key", cert.KeyFile)
	at := advertised(t, dir)
	if !strings.HasPrefix(at.URL, "https://") {
		t.Fatalf("%+v", at)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: ca.Client()}}
	defer client.CloseIdleConnections()
	if status, text := call(t, client, "GET", at.URL+"/v1/nodes", at.Token, ""); status != 200 {
		t.Errorf("%d %s", status, text)
	}
}

// A node presents a certificate that was replaced while it runs to new connections. While the new one cannot be read,
// it presents the old one.
func TestAPI_AChangedCertificateIsTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, after := testcluster.NewAuthority(t), testcluster.NewAuthority(t)
	cert := before.Issue("server")
	n := serve(t, dir, "--api", "127.0.0.1:0", "--api-cert", cert.CertFile, "--api-key", cert.KeyFile)
	at := advertised(t, dir)
	knows := func(a *testcluster.Authority) bool {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: a.Client()}}
		defer client.CloseIdleConnections()
		resp, err := client.Get(at.URL + "/v1/health")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}
	replace := func(path, by string) {
		t.Helper()
		text, err := os.ReadFile(by)
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !knows(before) || knows(after) {
		t.Fatal("not the certificate that was given")
	}
	renewed := after.Issue("server")
	replace(cert.CertFile, renewed.CertFile) // its key is not there yet
	eventually(t, "the node says that it cannot read the certificate", func() bool {
		if !knows(before) {
			t.Fatal("the old certificate is not presented while the new one has no key")
		}
		return strings.Contains(n.stderr.String(), "the one of before holds")
	})
	replace(cert.KeyFile, renewed.KeyFile)
	testcluster.Await(t, "the certificate is replaced", func() bool { return knows(after) })
	if knows(before) {
		t.Error("both hold")
	}
}

func TestAPI_FlagsThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := filepath.Join(dir, "open.json")
	if err := os.WriteFile(open, []byte(`{"tokens":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"no loopback address", 2, []string{"serve", "--api", "0.0.0.0:0"}},
		{"no loopback address", 2, []string{"serve", "--api", ":0"}},
		{"want an address and a port", 2, []string{"serve", "--api", "7400"}},
		{"port of 0 to 65535", 2, []string{"serve", "--api", "127.0.0.1:http"}},
		{"want both or neither", 2, []string{"serve", "--api", "127.0.0.1:0", "--api-cert", "x"}},
		{"which this node has not", 2, []string{"serve", "--api", "off", "--api-tokens", "x"}},
		{"which this node has not", 2, []string{"serve", "--api", "off", "--store-listen", "127.0.0.1:0"}},
		{"--store-listen 0.0.0.0:0 is no loopback address", 2, []string{"serve", "--api", "127.0.0.1:0", "--store-listen", "0.0.0.0:0"}},
		{"--store-listen x: want an address and a port", 2, []string{"serve", "--api", "127.0.0.1:0", "--store-listen", "x"}},
		{"which this node has not", 2, []string{"serve", "--api", "off", "--sync-listen", "127.0.0.1:0"}},
		{"such as 127.0.0.1:7400, or off\n", 2, []string{"serve", "--api", "on"}},
		{"such as 127.0.0.1:7400\n", 2, []string{"serve", "--api", "127.0.0.1:0", "--sync-listen", "off"}},
		{"--sync-listen 0.0.0.0:0 is no loopback address", 2, []string{"serve", "--api", "127.0.0.1:0", "--sync-listen", "0.0.0.0:0"}},
		{"--store-name is of --store-listen", 2, []string{"serve", "--api", "127.0.0.1:0", "--store-name", "crawl"}},
		{"--store-name: ", 2, []string{"serve", "--api", "127.0.0.1:0", "--store-listen", "127.0.0.1:0", "--store-name", "a/b"}},
		{"needs --api-tokens", 2, []string{"serve", "--etcd", "127.0.0.1:1", "--api", "127.0.0.1:0"}},
		{"no such file", 4, []string{"serve", "--api", "127.0.0.1:0", "--api-tokens", filepath.Join(dir, "none.json")}},
		{"others may write", 4, []string{"serve", "--api", "127.0.0.1:0", "--api-tokens", open}},
		{"no such file", 4, []string{"serve", "--api", "127.0.0.1:0", "--api-cert", "none.pem", "--api-key", "none.pem"}},
		{"role", 2, []string{"token", "new", "x", "--role", "king"}},
		{`--role "": want viewer`, 2, []string{"token", "new", "x"}},
		{"name", 2, []string{"token", "new", "a b", "--role", "viewer", "--api-tokens", filepath.Join(dir, "t.json")}},
		{"affinity-prefix", 2, []string{"token", "new", "x", "--role", "viewer", "--affinity-prefix", "a/b", "--api-tokens", filepath.Join(dir, "t.json")}},
		{"no such file", 2, []string{"token", "list", "--api-tokens", filepath.Join(dir, "none.json")}},
	} {
		in := t.TempDir()
		if r := run(t, in, c.args...); r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("%q: code %d, want %d and %q: %s", c.args, r.code, c.code, c.want, r.err)
		}
		if made, err := os.ReadDir(in); err != nil || len(made) > 0 {
			t.Errorf("%q: a cluster was begun, or %v: %v", c.args, err, made)
		}
	}
	file := filepath.Join(dir, "t.json")
	must(t, dir, "token", "new", "x", "--role", "viewer", "--api-tokens", file)
	if r := run(t, dir, "token", "revoke", "abc", "--api-tokens", file); r.code != 2 || !strings.Contains(r.err, "holds no token with the ID abc") {
		t.Errorf("%+v", r)
	}
}
