package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	connect "taskledger/cluster"
	"taskledger/engine"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/internal/advertised"
)

const (
	// foundWithin is within what whoever has joined works again once the servers are back elsewhere: 5 s, and what processes get on top
	// that share two processors, one of which asks.
	foundWithin = 15 * time.Second
	// servesWithin bounds how long nodes with servers inside take to begin.
	servesWithin = time.Minute
)

// servedFrom is the directory with the data of the servers, below that of their household: too long for the path of a socket, so that
// etcd's is where temporary files are.
var servedFrom = "data" + strings.Repeat("-and-more", 12)

// household is a cluster beside the one of the run: a node with servers inside, in a directory, and what others do who know it by
// that directory alone. That node owns no shards and runs nothing: whatever works shows the node that has joined.
type household struct {
	program, dir string
	temporary    string // directory for temporary files of the servers
	running      []*exec.Cmd
}

// begin starts a command that goes on; its log is in the directory.
func (h *household) begin(name string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(h.dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd := exec.Command(h.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = h.dir, log, log, append(os.Environ(), "TMPDIR="+h.temporary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h.running = append(h.running, cmd)
	return cmd, nil
}

// servers starts the node with the servers inside, with no temporary files from before.
func (h *household) servers() (*exec.Cmd, error) {
	err := os.RemoveAll(h.temporary)
	if err == nil {
		h.temporary, err = os.MkdirTemp("", "household-")
	}
	if err != nil {
		return nil, err
	}
	return h.begin("servers", "serve", "--data", servedFrom, "--name", "servers", "--slots", "0", "--owner=false", "--api", "off", "--ttl", cluster.TTL.String())
}

// told returns what a command prints, within a time.
func (h *household) told(ctx context.Context, within time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.program, append(args, "--data", servedFrom, "-o", "json", "--timeout", within.String())...)
	cmd.Dir = h.dir
	out, err := cmd.Output()
	return string(out), err
}

// end ends whatever runs, and removes what is not below the directory of the run.
func (h *household) end() {
	for _, cmd := range h.running {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	_ = os.RemoveAll(h.temporary)
}

// where returns where the servers listen, as the directory tells.
func (h *household) where() (nats, etcd string, err error) {
	at, err := advertised.Read(filepath.Join(h.dir, servedFrom))
	if err != nil {
		return "", "", err
	}
	u, err := url.Parse(at.NATS)
	if err != nil {
		return "", "", err
	}
	return u.Host, strings.Join(at.Etcd, " "), nil
}

// overNATS asks for what the shards hold, by way of NATS alone: all are owned by the node that has joined.
func (h *household) overNATS(ctx context.Context, within time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	at, err := connect.Open(ctx, connect.Config{Dir: filepath.Join(h.dir, servedFrom), Existing: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	client, err := engine.NewClient(engine.ClientConfig{Bus: at.Bus, Shards: at.Store.Cluster().Shards})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- client.Run(running) }()
	all, err := client.Operations().Shards(ctx)
	stop()
	if err = errors.Join(err, <-ran); err != nil {
		return err
	}
	if silent := slices.IndexFunc(all, func(s engine.ShardInfo) bool { return s.Problem != "" }); silent >= 0 {
		return fmt.Errorf("shard %d: %s", silent, all[silent].Problem)
	}
	return nil
}

// moveServers ends a node with servers inside as a crash does, and starts it again where somebody else has the port of its NATS, and
// what was in the directory for temporary files is gone, so that etcd has another socket, too: who has joined it, and who waits for an
// outcome, must find where the servers are now.
func moveServers(ctx context.Context, r *cluster.Cluster, d disturbance) (target, proof string, err error) {
	target = "servers inside a node"
	h := &household{program: r.Settings.Program, dir: filepath.Join(r.Dir, fmt.Sprint("household-", d.round))}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return target, "", err
	}
	defer h.end()
	first, waiting, err := h.settle(ctx)
	if err != nil {
		return target, "", err
	}
	wasNATS, wasEtcd, err := h.where()
	if err != nil {
		return target, "", err
	}
	d.begins()
	_ = first.Process.Kill()
	_ = first.Wait() // it was killed
	taken, err := net.Listen("tcp", wasNATS)
	if err != nil {
		return target, "", err
	}
	defer taken.Close()
	if _, err = h.servers(); err != nil {
		return target, "", err
	}
	nats, etcd := wasNATS, wasEtcd
	if _, ok := until(ctx, servesWithin, func(context.Context) bool {
		nats, etcd, err = h.where()
		return err == nil && nats != wasNATS && etcd != wasEtcd
	}); !ok {
		return target, "", errors.Join(err, ctx.Err())
	}
	took := h.found(ctx, r)
	if err := waiting.Wait(); err != nil {
		r.Broken(check.Ended, "who waited for an outcome when the servers went elsewhere is told: %v; its log ends with %q", err, cluster.LastLine(filepath.Join(h.dir, "waiting.log")))
	}
	return target, fmt.Sprintf("NATS was at %s and is at %s, etcd was at %s and is at %s; the node that has joined works again after %s, and who waited was told",
		wasNATS, nats, wasEtcd, etcd, round(took)), nil
}

// found checks that the node that has joined finds both servers, and returns how long that took.
func (h *household) found(ctx context.Context, r *cluster.Cluster) time.Duration {
	began := time.Now()
	if _, err := h.told(ctx, foundWithin, "submit", "noop", "--wait"); err != nil && ctx.Err() == nil {
		r.Broken(check.Ended, "the node that has joined does nothing %s after the servers are elsewhere: %v", time.Since(began), err)
	}
	if err := h.overNATS(ctx, foundWithin-time.Since(began)); err != nil && ctx.Err() == nil {
		r.Broken(check.Ended, "the node that has joined is not to be reached over NATS %s after the servers are elsewhere: %v", time.Since(began), err)
	}
	return time.Since(began)
}

// settle starts the servers, a node that joins them, and somebody who waits for what that runs.
func (h *household) settle(ctx context.Context) (first, waiting *exec.Cmd, err error) {
	if first, err = h.servers(); err != nil {
		return nil, nil, err
	}
	said := ""
	works := func(ctx context.Context) bool {
		said, err = h.told(ctx, cluster.CommandWithin, "submit", "noop", "--wait")
		return err == nil
	}
	if _, ok := until(ctx, servesWithin, func(context.Context) bool { _, _, err = h.where(); return err == nil }); !ok {
		return nil, nil, fmt.Errorf("the servers do not begin: %w", err)
	}
	if _, err = h.begin("joined", "serve", "--join", servedFrom, "--name", "joined", "--ttl", cluster.TTL.String()); err != nil {
		return nil, nil, err
	}
	if _, ok := until(ctx, servesWithin, works); !ok {
		return nil, nil, fmt.Errorf("the node that joins runs nothing: %w: %s", err, said)
	}
	if err := h.overNATS(ctx, servesWithin); err != nil { // or it would prove nothing later
		return nil, nil, fmt.Errorf("the node that joins is not to be reached over NATS: %w", err)
	}
	if waiting, err = h.begin("waiting", "submit", "sleep", `{"duration":"5s"}`, "--id", "held", "--wait", "--data", servedFrom, "--timeout", "1m"); err != nil {
		return nil, nil, err
	}
	runs := func(ctx context.Context) bool {
		said, err = h.told(ctx, cluster.CommandWithin, "get", "held")
		return err == nil && strings.Contains(said, `"RUNNING"`)
	}
	if _, ok := until(ctx, servesWithin, runs); !ok {
		return nil, nil, fmt.Errorf("what is waited for does not run: %w: %s", err, said)
	}
	return first, waiting, nil
}
