package main_test

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"taskledger/internal/testcluster"
)

// A command that is typed while the node is down ends at once and says so, or, where it is to wait, ends well once the
// node is back, and has said for what it waited.
func TestClient_WaitsForANodeThatComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--name", "a", "--ttl", "3s")
	must(t, dir, "submit", "noop", "--id", "before", "--wait")
	for round, end := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		n.signal(end)
		n.wait(t)
		if r := run(t, dir, "get", "before"); r.code != 4 || strings.Count(r.err, "\n") != 1 ||
			!strings.Contains(r.err, "no node runs on ./taskledger-data") || !strings.Contains(r.err, "; --await-node waits for one; ") {
			t.Errorf("round %d: without --await-node: %+v", round, r)
		}
		waiting := command(context.Background(), dir, "get", "before", "--await-node", "--timeout", timeout.String())
		var out, said bytes.Buffer
		errs, err := waiting.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		waiting.Stdout = &out
		if err := waiting.Start(); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 200)
		read, _ := errs.Read(line) // until it has said that it waits, or has ended
		said.Write(line[:read])
		n = serve(t, dir, "--name", "a", "--ttl", "3s")
		_, _ = said.ReadFrom(errs)
		if err := waiting.Wait(); err != nil || !strings.Contains(out.String(), "SUCCESS") {
			t.Errorf("round %d: ended with %v: %s%s", round, err, out.String(), said.String())
		}
		if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "waiting for the node on ./taskledger-data") {
			t.Errorf("round %d: said %q", round, text)
		}
	}
}

// What can never be answered is not waited for.
func TestClient_WaitsForNoNodeWhereNoneEverWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a-file"), "")
	for _, where := range []string{"nowhere", ".", "a-file"} {
		began := time.Now()
		r := run(t, dir, "list", "--data", where, "--timeout", timeout.String())
		if r.code == 0 || strings.Count(r.err, "\n") != 1 || time.Since(began) > timeout/2 {
			t.Errorf("%s: code %d after %s: %q", where, r.code, time.Since(began), r.err)
		}
	}
}

// silent listens and answers nothing, as a stopped server does.
func silent(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// The limit is the one of the command, not the one of a request to etcd.
func TestClient_WaitsForASilentEtcdAsLongAsItsTimeout(t *testing.T) {
	t.Parallel()
	began := time.Now()
	r := run(t, t.TempDir(), "list", "--etcd", silent(t), "--timeout", "5s")
	if took := time.Since(began); r.code != 4 || took < 5*time.Second || strings.Count(r.err, "waiting for etcd at 127.0.0.1:") != 1 {
		t.Errorf("code %d after %s: %q", r.code, took, r.err)
	}
}

func TestClient_LogsOfABusThatIsAwayWhatTheLevelAsksFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	endpoint, _ := testcluster.StartEtcd(t)
	serve(t, dir, "--etcd", endpoint, "--ttl", "3s")
	for _, c := range []struct {
		args []string
		logs bool
	}{{nil, false}, {[]string{"--log-level", "error"}, false}, {[]string{"--log-level", "warn"}, true}} {
		r := run(t, dir, append([]string{"submit", "sleep", `{"duration":"1s"}`, "--wait", "--etcd", endpoint, "--nats", "nats://127.0.0.1:1"}, c.args...)...)
		if r.code != 0 || strings.Contains(r.err, "bus cannot connect") != c.logs {
			t.Errorf("%q: code %d, %q", c.args, r.code, r.err)
		}
	}
}

// Whoever asks a cluster without nodes is told once, soon, and how to go on; a node without slots is enough to take
// tasks.
func TestClient_IsToldThatNoNodeIsAliveUnlessItAwaitsOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	endpoint, _ := testcluster.StartEtcd(t)
	access := []string{"--etcd", endpoint}
	n := serve(t, dir, append([]string{"--ttl", "3s", "--slots", "0"}, access...)...)
	must(t, dir, append([]string{"submit", "noop", "--id", "before"}, access...)...)
	n.stop(t)
	for _, asked := range [][]string{{"submit", "noop"}, {"list"}, {"counts"}, {"get", "before"}, {"cancel", "before"}, {"settings"}, {"shards"}, {"stats"}} {
		r := run(t, dir, append(asked, access...)...)
		says := strings.Count(r.err, "no node is alive") == 1 && strings.Count(r.err, "\n") == 1
		if r.code != 4 || r.out != "" && asked[0] != "cancel" || !says || !strings.Contains(r.err, "serve --etcd "+endpoint) {
			t.Errorf("%q: %+v", asked, r)
		}
	}
	r := run(t, dir, append([]string{"wait", "before", "--timeout", "8s"}, access...)...)
	if r.code != 4 || strings.Count(r.err, "waiting for a node: no node is alive") != 1 || !strings.Contains(r.err, "serve --etcd "+endpoint) {
		t.Errorf("wait: %+v", r)
	}
	waiting := command(context.Background(), dir, append([]string{"submit", "noop", "--id", "after", "--await-node", "--timeout", timeout.String()}, access...)...)
	var out, said bytes.Buffer
	waiting.Stdout, waiting.Stderr = &out, &said
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, append([]string{"--ttl", "3s", "--slots", "0"}, access...)...)
	if err := waiting.Wait(); err != nil || out.String() != "after\n" {
		t.Errorf("who awaits a node ended with %v: %s%s", err, out.String(), said.String())
	}
	if got := must(t, dir, append([]string{"list"}, access...)...); strings.Count(got, " CREATED  ready ") != 2 {
		t.Errorf("the tasks that a node without slots has taken:\n%s", got)
	}
}
