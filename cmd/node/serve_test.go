package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestServe_WithoutACommandListensForThisUserAloneAndSaysWhere(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "") // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := serve(t, dir)
	at := addresses(n)
	if at["etcd"] != "unix:"+filepath.Join(dir, "taskledger-data", "socket", "etcd") {
		t.Errorf("etcd listens on %q", at["etcd"])
	}
	if u, err := url.Parse(at["nats"]); err != nil || u.Hostname() != "127.0.0.1" || u.Port() == "" || u.User != nil {
		t.Errorf("NATS listens on %q, %v", at["nats"], err)
	}
	// Under a service manager the working directory is that of the whole machine.
	if r := run(t, dir, "submit", "checksum", `{"path":"taskledger-data/nats-port"}`); r.code != 5 || !strings.Contains(r.err, "no node runs checksum") {
		t.Errorf("a file is read that nobody has named: %+v", r)
	}
}

// addresses returns the addresses at which a node says that its servers listen.
func addresses(n *node) map[string]string {
	at := map[string]string{}
	for _, line := range n.printed {
		if name, text, _ := strings.Cut(strings.TrimSpace(line), "  "); name == "etcd" || name == "nats" {
			at[name] = text
		}
	}
	return at
}

func TestServe_PortOfEtcdIsSaidToBeOpenAndNotTogetherWithExec(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	dir := t.TempDir()
	r := run(t, dir, "serve", "--etcd-port", port, "--exec-allow", "id")
	if r.code != 2 || !strings.Contains(r.err, "--etcd-port") || !strings.Contains(r.err, "--exec-allow") || strings.Count(r.err, "\n") != 1 {
		t.Errorf("with programs to run: %+v", r)
	}
	n := serve(t, dir, "--etcd-port", port)
	open := "http://127.0.0.1:" + port
	if got := addresses(n)["etcd"]; !strings.HasSuffix(got, " "+open) {
		t.Errorf("etcd listens on %q", got)
	}
	must(t, t.TempDir(), "submit", "noop", "--wait", "--etcd", open)
	r = run(t, dir, "serve", "--join", "taskledger-data", "--exec-allow", "id")
	if r.code != 2 || !strings.Contains(r.err, "--etcd-port") || !strings.Contains(r.err, "--exec-allow") {
		t.Errorf("joined with programs to run: %+v", r)
	}
	r = run(t, t.TempDir(), "serve", "--etcd", open, "--exec-allow", "id")
	if r.code != 2 || !strings.Contains(r.err, "--exec-allow") || !strings.Contains(r.err, "TLS") || strings.Count(r.err, "\n") != 1 {
		t.Errorf("by its address with programs to run: %+v", r)
	}
	n.stop(t)
	if log := n.stderr.String(); !strings.Contains(log, "every user of this machine") {
		t.Errorf("the log does not say that etcd is open: %s", log)
	}
}

// typed runs a printed line as a shell would, and returns the command.
func typed(ctx context.Context, dir, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+line)
	cmd.Dir = dir
	return cmd
}

func TestServe_PrintedCommandsWorkAsPrinted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--data", "my data", "--name", "a", "--ttl", "3s")
	if len(n.commands) != 3 {
		t.Fatalf("offers %q", n.commands)
	}
	submit := finish(t, typed(t.Context(), dir, n.commands[0]))
	id := strings.TrimSuffix(submit.out, "\n")
	if submit.code != 0 || id == "" {
		t.Errorf("%s: %+v", n.commands[0], submit)
	}
	if list := finish(t, typed(t.Context(), dir, n.commands[1])); list.code != 0 || !strings.Contains(list.out, id) {
		t.Errorf("%s: %+v", n.commands[1], list)
	}
	second := start(t, typed(context.Background(), dir, n.commands[2]))
	nodes := must(t, dir, "nodes", "--data", "my data", "-o", "json")
	if got := objects(t, nodes); len(got) != 2 || got[0]["node"] != "a" || got[1]["node"] != "b" {
		t.Errorf("nodes: %s", nodes)
	}
	if got := finish(t, typed(t.Context(), dir, second.commands[1])); got.code != 0 || !strings.Contains(got.out, id) {
		t.Errorf("%s: %+v", second.commands[1], got)
	}
}

func TestServe_ASecondProcessRunsWhatTheFirstOneDoesNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, "--slots", "0", "--ttl", "3s", "--name", "a")
	must(t, dir, "submit", "noop", "--id", "waits")
	if why := must(t, dir, "explain", "waits"); !strings.Contains(why, "no-node") {
		t.Errorf("explained: %s", why)
	}
	b := serve(t, dir, "--join", "taskledger-data", "--owner=false", "--ttl", "3s", "--name", "b")
	must(t, dir, "wait", "waits")
	b.stop(t)
	if !b.cmd.ProcessState.Success() {
		t.Errorf("ended with %s: %s", b.cmd.ProcessState, b.stderr.String())
	}
	if got := objects(t, must(t, dir, "nodes", "-o", "json")); len(got) != 1 {
		t.Errorf("%d nodes after one has drained", len(got))
	}
}

func TestServe_JoinsByAddresses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, "--name", "a", "--ttl", "3s")
	text, err := os.ReadFile(filepath.Join(dir, "taskledger-data", "cluster.json"))
	if err != nil {
		t.Fatal(err)
	}
	var at struct {
		Etcd []string
		NATS string
		NKey string
	}
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	b := serve(t, elsewhere, "--etcd", at.Etcd[0], "--nats", at.NATS, "--nats-nkey", at.NKey, "--name", "b", "--ttl", "3s")
	if got := must(t, elsewhere, "submit", "noop", "--wait", "--id", "x", "--etcd", at.Etcd[0], "--nats", at.NATS, "--nats-nkey", at.NKey); got != "x" {
		t.Errorf("printed %q", got)
	}
	if got := must(t, elsewhere, "submit", "noop", "--wait", "--id", "y", "--etcd", at.Etcd[0]); got != "y" {
		t.Errorf("without NATS printed %q", got)
	}
	if got := strings.Join(b.printed, "\n"); strings.Contains(got, "  data") {
		t.Errorf("names data that it does not keep: %s", got)
	}
}

func TestServe_StartedAgainOnItsDataKnowsItsTasks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const ttl = time.Minute
	first := serve(t, dir, "--ttl", ttl.String())
	must(t, dir, "submit", "noop", "--id", "kept", "--wait")
	held := time.Now() // the session's lease, for a ttl at least
	first.signal(syscall.SIGKILL)
	first.wait(t)
	serve(t, dir, "--ttl", ttl.String())
	if took := time.Since(held); took > ttl*3/4 {
		t.Errorf("it took %s: it waited for the end of its own session", took)
	}
	if got := field(t, dir, "kept", "status"); got != "SUCCESS" {
		t.Errorf("status %v", got)
	}
}

func TestServe_TermDrainsAndReleasesWhatRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--grace", "300ms")
	must(t, dir, "submit", "sleep", `{"duration":"1h"}`, "--id", "long")
	eventually(t, "it runs", func() bool { return field(t, dir, "long", "status") == "RUNNING" })
	n.stop(t)
	if !n.cmd.ProcessState.Success() {
		t.Errorf("ended with %s: %s", n.cmd.ProcessState, n.stderr.String())
	}
	serve(t, dir)
	history := must(t, dir, "history", "long")
	if !strings.Contains(history, "Released") || strings.Contains(history, "Lost") {
		t.Errorf("history: %s", history)
	}
	must(t, dir, "cancel", "long")
}

func TestServe_ASecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--grace", "1h")
	must(t, dir, "submit", "sleep", `{"duration":"1h"}`, "--id", "long")
	eventually(t, "it runs", func() bool { return field(t, dir, "long", "status") == "RUNNING" })
	n.signal(syscall.SIGTERM)
	eventually(t, "the node drains", func() bool {
		nodes := run(t, dir, "nodes", "-o", "json")
		return strings.Contains(nodes.out, `"draining":true`)
	})
	select {
	case <-n.ended:
		t.Error("it did not wait for what runs")
	default:
	}
	n.signal(syscall.SIGTERM)
	state := n.wait(t)
	if status, ok := state.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("ended with %s, want the signal", state)
	}
}

func TestClient_WithoutARunningNodeSaysInOneLineWhatToStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"list"}, " serve\n"},
		{[]string{"submit", "noop", "--data", "else where"}, " serve --data 'else where'\n"},
		{[]string{"serve", "--join", "nobody"}, " serve --data nobody\n"},
	} {
		r := run(t, dir, c.args...)
		if r.code != 4 || r.out != "" || strings.Count(r.err, "\n") != 1 || !strings.HasSuffix(r.err, binary+c.want) {
			t.Errorf("%q: code %d, printed %q, %q", c.args, r.code, r.out, r.err)
		}
	}
}

func TestClient_AfterACrashOfTheNodeSaysWhatToStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir)
	n.signal(syscall.SIGKILL)
	n.wait(t)
	r := run(t, dir, "list", "--await-node", "--timeout", "6s")
	if r.code != 4 || strings.Count(r.err, "\n") != 2 || !strings.HasSuffix(r.err, " serve\n") {
		t.Errorf("code %d: %q", r.code, r.err)
	}
	r = run(t, dir, "list", "--timeout", timeout.String())
	if r.code != 4 || strings.Count(r.err, "\n") != 1 || !strings.HasSuffix(r.err, "; --await-node waits for one; start one with: "+binary+" serve\n") {
		t.Errorf("code %d: %q", r.code, r.err)
	}
}

func TestClient_UnreachableEtcdIsUnavailable(t *testing.T) {
	t.Parallel()
	r := run(t, t.TempDir(), "list", "--etcd", "127.0.0.1:1", "--timeout", "500ms")
	if r.code != 4 || strings.Count(r.err, "\n") != 1 {
		t.Errorf("code %d: %q", r.code, r.err)
	}
}

// What an operator types in the moment when a node has died, with the time-outs and the --ttl that nobody has set.
func TestCommands_TellWhatTheyKnowWhileADeadNodesShardsAreTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, "--name", "a")
	must(t, dir, "submit", "noop", "--id", "here", "--wait")
	b := serve(t, dir, "--join", "taskledger-data", "--name", "b")
	eventually(t, "half of the shards have moved", func() bool {
		return strings.Count(must(t, dir, "shards", "-o", "json"), `"node":"b"`) == 8
	})
	b.signal(syscall.SIGKILL)
	b.wait(t)
	silent := 0
	for _, s := range objects(t, must(t, dir, "shards", "--timeout", "4s", "-o", "json")) {
		switch problem, _ := s["problem"].(string); {
		case s["node"] == "a" && problem == "":
		case s["node"] == nil && problem == "nobody answers":
			silent++
		default:
			t.Errorf("shard %v: %v", s["shard"], s)
		}
	}
	if silent != 8 {
		t.Errorf("%d shards have nobody who answers, want 8", silent)
	}
	if listed := objects(t, must(t, dir, "list", "-o", "json")); len(listed) != 1 || listed[0]["id"] != "here" {
		t.Errorf("listed %v", listed)
	}
}

// A machine that starts begins its nodes in any order: who joins waits for the servers, as every command does.
func TestServe_ThatJoinsWaitsForServersThatStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir).stop(t)
	joins := command(t.Context(), dir, "serve", "--join", "taskledger-data", "--name", "joins")
	told, err := joins.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := joins.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(told).ReadString('\n'); err != nil || !strings.Contains(line, "waiting for the node on") {
		t.Fatalf("%q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, told) }() // ends with the process
	serve(t, dir)
	eventually(t, "both are there", func() bool { return strings.Contains(must(t, dir, "nodes"), "joins") })
	if err := joins.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := joins.Wait(); err != nil {
		t.Error(err)
	}
}
