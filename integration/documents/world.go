package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// bulky tasks of 60 KiB fill the journals of two shards so far that they are archived and trimmed.
	bulky  = 700
	shards = "2"
	// timeout bounds everything that takes seconds on a quiet machine.
	timeout = 5 * time.Minute
)

// operatorTools are packages that tools/operator/go.mod pins, by the name of the program that is built.
var operatorTools = map[string]string{
	"etcd":        "go.etcd.io/etcd/server/v3",
	"etcdctl":     "go.etcd.io/etcd/etcdctl/v3",
	"etcdutl":     "go.etcd.io/etcd/etcdutl/v3",
	"nats-server": "github.com/nats-io/nats-server/v2",
	"nats":        "github.com/nats-io/natscli/nats",
}

// world is the servers, and what the scripts are given.
type world struct {
	dir        string
	scripts    map[string]string
	ran        []string          // scripts
	env        map[string]string // for the scripts
	etcd, nats []*server
	nodes      []*server
	peers      []string // URLs of the members of etcd
	isInside   bool     // commands ask the node with the servers inside
}

// server is a process that is started and stopped.
type server struct {
	name, data string
	args       func() []string
	process    *exec.Cmd
}

func (w *world) bin() string { return filepath.Join(w.dir, "bin") }

// prepare builds the programs, and makes certificates, keys and the settings of all servers.
func (w *world) prepare() error {
	for name, pkg := range operatorTools {
		if err := say("go", "build", "-C", "tools/operator", "-o", filepath.Join(w.bin(), name), pkg); err != nil {
			return err
		}
	}
	if err := buildIn(w.bin()); err != nil {
		return err
	}
	certs := filepath.Join(w.dir, "certs")
	if err := issue(certs, "server", "admin", "node"); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	free, err := freePorts(13)
	if err != nil {
		return err
	}
	w.servers(certs, free)
	public, err := exec.Command(programIn(w.bin()), "checkpoint", "new-key", w.env["CHECKPOINT_KEY"]).Output()
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	w.env["CHECKPOINT_PUBLIC"] = strings.TrimSpace(string(public))
	return nil
}

// servers fills in how all servers are started, and the variables by which the scripts find them.
func (w *world) servers(certs string, free []int) {
	pem := func(name string) string { return filepath.Join(certs, name) }
	url := func(scheme string, port int) string { return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port) }
	var endpoints, members, urls, routes []string
	for i := range 3 {
		endpoints, w.peers = append(endpoints, url("https", free[i])), append(w.peers, url("https", free[3+i]))
		members = append(members, fmt.Sprintf("etcd-%d=%s", i+1, w.peers[i]))
		urls, routes = append(urls, url("tls", free[6+i])), append(routes, url("tls", free[9+i]))
	}
	w.env = map[string]string{
		"ETCDCTL_ENDPOINTS":        strings.Join(endpoints, ","),
		"ETCDCTL_CACERT":           pem("ca.crt"),
		"ETCDCTL_CERT":             pem("admin.crt"),
		"ETCDCTL_KEY":              pem("admin.key"),
		"ETCDCTL_USER":             "root:secret-root",
		"NATS_URL":                 strings.Join(urls, ","),
		"NATS_CA":                  pem("ca.crt"),
		"NATS_CERT":                pem("admin.crt"),
		"NATS_KEY":                 pem("admin.key"),
		"NATS_USER":                "admin",
		"NATS_PASSWORD":            "secret-admin",
		"TASKLEDGER_ETCD":          strings.Join(endpoints, ","),
		"TASKLEDGER_ETCD_CA":       pem("ca.crt"),
		"TASKLEDGER_ETCD_CERT":     pem("node.crt"),
		"TASKLEDGER_ETCD_KEY":      pem("node.key"),
		"TASKLEDGER_ETCD_USER":     "taskledger",
		"TASKLEDGER_ETCD_PASSWORD": "secret-node",
		"TASKLEDGER_NATS":          strings.Join(urls, ","),
		"TASKLEDGER_NATS_CA":       pem("ca.crt"),
		"TASKLEDGER_NATS_CERT":     pem("node.crt"),
		"TASKLEDGER_NATS_KEY":      pem("node.key"),
		"TASKLEDGER_NATS_USER":     "taskledger",
		"TASKLEDGER_NATS_PASSWORD": "secret-node",
		"ARCHIVE":                  "jetstream",
		"CHECKPOINT_KEY":           pem("ledger.key"),
		"MEMBERS":                  strings.Join(members, ","),
		"TOKEN":                    "first",
		"NODE_DATA":                filepath.Join(w.dir, "taskledger-data"),
		"NODE_NATS_PORT":           fmt.Sprint(free[12]),
	}
	for i := range 3 {
		etcd := fmt.Sprint("etcd-", i+1)
		data := filepath.Join(w.dir, etcd)
		w.etcd = append(w.etcd, &server{name: etcd, data: data, args: func() []string {
			return []string{
				"etcd", "--name", etcd, "--data-dir", data,
				"--listen-client-urls", endpoints[i], "--advertise-client-urls", endpoints[i],
				"--listen-peer-urls", w.peers[i], "--initial-advertise-peer-urls", w.peers[i],
				"--initial-cluster", w.env["MEMBERS"], "--initial-cluster-token", w.env["TOKEN"],
				"--client-cert-auth", "--trusted-ca-file", pem("ca.crt"),
				"--cert-file", pem("server.crt"), "--key-file", pem("server.key"),
				"--peer-client-cert-auth", "--peer-trusted-ca-file", pem("ca.crt"),
				"--peer-cert-file", pem("server.crt"), "--peer-key-file", pem("server.key"),
				"--auto-compaction-mode", "periodic", "--auto-compaction-retention", "1m",
			}
		}})
		nats := fmt.Sprint("nats-", i+1)
		w.nats = append(w.nats, &server{name: nats, data: filepath.Join(w.dir, nats), args: func() []string {
			return []string{"nats-server", "--config", w.natsSettings(nats, pem, free[6+i], free[9+i], routes)}
		}})
		node := fmt.Sprint("node-", i+1)
		w.nodes = append(w.nodes, &server{name: node, data: filepath.Join(w.dir, node), args: func() []string {
			return []string{"taskledger", "serve", "--name", node, "--shards", shards, "--archive-replicas", "3",
				"--archive-settle", "25s"}
		}})
	}
}

// natsSettings writes the file that a server of NATS reads: users of one account, as docs/operating.md has them.
func (w *world) natsSettings(name string, pem func(string) string, port, route int, routes []string) string {
	tls := fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }",
		pem("server.crt"), pem("server.key"), pem("ca.crt"))
	text := fmt.Sprintf(`server_name: %s
listen: "127.0.0.1:%d"
%s
jetstream { store_dir: %q, sync_interval: "10s" }
authorization { users: [
  { user: admin, password: %q }
  { user: taskledger, password: %q, permissions: {
    publish: ["taskledger.>", "$JS.API.>"], subscribe: ["taskledger.>", "_INBOX.>"] } }
] }
cluster { name: own, listen: "127.0.0.1:%d", routes: [%s], %s }
`, name, port, tls, filepath.Join(w.dir, name), w.env["NATS_PASSWORD"], w.env["TASKLEDGER_NATS_PASSWORD"], route,
		strings.Join(routes, ", "), tls)
	file := filepath.Join(w.dir, name+".conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		panic(err) // of a directory that this program has just written to
	}
	return file
}

// alone is a node with the servers inside.
func (w *world) alone() *server {
	data := w.env["NODE_DATA"]
	return &server{name: "alone", data: data, args: func() []string {
		return []string{"taskledger", "serve", "--data", data, "--shards", shards, "--api", "off"}
	}}
}

// inside runs commands against the node with the servers inside.
func (w *world) inside(do func() error) error {
	w.isInside = true
	defer func() { w.isInside = false }()
	return do()
}

// environ is the environment of scripts and servers.
func (w *world) environ() []string {
	env := []string{"PATH=" + w.bin() + ":" + os.Getenv("PATH"), "HOME=" + w.dir}
	for name, value := range w.env {
		env = append(env, name+"="+value)
	}
	return env
}

// start starts servers, with their output in files.
func (w *world) start(all ...*server) error {
	for _, s := range all {
		log, err := os.OpenFile(filepath.Join(w.dir, s.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		args := s.args()
		c := exec.Command(filepath.Join(w.bin(), args[0]), args[1:]...)
		c.Dir, c.Stdout, c.Stderr, c.Env = w.dir, log, log, w.environ()
		if s.name == "alone" {
			c.Env = slices.DeleteFunc(c.Env, func(is string) bool { return strings.HasPrefix(is, "TASKLEDGER_") })
		}
		err = c.Start()
		if err = errors.Join(err, log.Close()); err != nil {
			return fmt.Errorf("start %s: %w", s.name, err)
		}
		s.process = c
	}
	return nil
}

// stop ends servers in order; those that do not run count as stopped.
func (w *world) stop(all ...*server) error {
	var errs []error
	for _, s := range all {
		if s.process == nil {
			continue
		}
		errs = append(errs, s.process.Process.Signal(syscall.SIGTERM))
	}
	for _, s := range all {
		if s.process == nil {
			continue
		}
		kill := time.AfterFunc(timeout, func() { s.process.Process.Kill() }) // Wait returns its error
		err := s.process.Wait()
		kill.Stop()
		s.process = nil
		// A server of etcd, and of NATS, ends by the signal or with another code than 0, and says so in its log.
		if _, ended := errors.AsType[*exec.ExitError](err); err != nil && (!ended || strings.HasPrefix(s.name, "node")) {
			errs = append(errs, fmt.Errorf("stop %s: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}

// stopAll ends the nodes, and then what they need.
func (w *world) stopAll() error {
	return errors.Join(w.stop(w.nodes...), w.stop(slices.Concat(w.etcd, w.nats)...))
}

// taskledger runs a command and returns what it prints.
func (w *world) taskledger(args ...string) (string, error) {
	c := exec.Command(programIn(w.bin()), args...)
	c.Dir, c.Env = w.dir, w.environ()
	if w.isInside {
		c.Env = slices.DeleteFunc(c.Env, func(is string) bool { return strings.HasPrefix(is, "TASKLEDGER_") })
	}
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("taskledger %.100s: %w: %s", strings.Join(args, " "), err, complaint.String())
	}
	return string(out), err
}

// await asks again and again until it is so.
func (w *world) await(what string, is func() (bool, error)) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(time.Second) {
		so, err := is()
		switch {
		case so && err == nil:
			return nil
		case time.Now().After(deadline):
			return errors.Join(fmt.Errorf("%s: not within %s", what, timeout), err)
		}
	}
}

// ready waits until every node is there and a task ends.
func (w *world) ready() error { return w.readyNodes(len(w.nodes)) }

func (w *world) ready1() error { return w.readyNodes(1) }

func (w *world) readyNodes(n int) error {
	err := w.await(fmt.Sprintf("%d nodes", n), func() (bool, error) {
		out, err := w.taskledger("nodes", "-o", "json")
		return strings.Count(out, "\n") == n, err
	})
	if err != nil {
		return err
	}
	return w.await("a task", func() (bool, error) {
		_, err := w.taskledger("submit", "noop", "--wait", "--timeout", "30s")
		return err == nil, err
	})
}

// submit submits bulky tasks whose ids begin alike, and waits until they have ended well.
func (w *world) submit(prefix string) error {
	var lines strings.Builder
	for i := range bulky {
		fmt.Fprintf(&lines, `{"behavior":"noop","id":"%s-%d","params":{"bulk":"%s"}}`+"\n",
			prefix, i, strings.Repeat("x", 60<<10))
	}
	file := filepath.Join(w.dir, prefix+".jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		return err
	}
	_, err := w.taskledger("submit", "--batch", file, "--key", prefix, "--wait", "--timeout", "5m")
	return err
}

// load submits tasks and waits until the journal of each shard begins later than before, with all that is in front of
// it in the archive, and no shard has a problem.
func (w *world) load(prefix string) error {
	before, err := w.journals()
	if err != nil {
		return err
	}
	if err := w.submit(prefix); err != nil {
		return err
	}
	return w.await("the archive takes what snapshots cover", func() (bool, error) {
		now, err := w.journals()
		all := len(now) > 0
		for i, s := range now {
			all = all && s.Archived >= s.First-1 && s.First > before[i].First
		}
		return all, err
	})
}

// journal holds one row in the output of the command shards.
type journal struct {
	First, Archived uint64
	Degraded        string
}

func (w *world) journals() (all []journal, err error) {
	out, err := w.taskledger("shards", "-o", "json")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		var j journal
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			return nil, err
		}
		if j.Degraded != "" {
			return nil, fmt.Errorf("shard %d: %s", len(all), j.Degraded)
		}
		all = append(all, j)
	}
	return all, nil
}

// wantLoads returns an error unless the tasks of these loads alone are known, and all have ended well.
func (w *world) wantLoads(prefixes ...string) error {
	counts, want := map[string]int{}, map[string]int{}
	for _, prefix := range prefixes {
		want[prefix] = bulky
	}
	out, err := w.taskledger("list", "--status", "SUCCESS", "--limit", "100000", "-o", "json")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		var t struct{ ID string }
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return err
		}
		if prefix, _, numbered := strings.Cut(t.ID, "-"); numbered {
			counts[prefix]++
		}
	}
	if !maps.Equal(counts, want) {
		return fmt.Errorf("tasks that have ended well: %v, want %v", counts, want)
	}
	return nil
}

// lowestPort and highestPort bound the ports that are chosen: the system gives none below 32768 to a connection that
// goes out, so a port stays free while the server that listens on it is started again.
const lowestPort, highestPort = 20_000, 32_767

// freePorts returns ports of loopback that nobody listens on now.
func freePorts(n int) (ports []int, err error) {
	for range 1_000 {
		if len(ports) == n {
			return ports, nil
		}
		port := lowestPort + rand.IntN(highestPort-lowestPort+1)
		l, failed := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if failed != nil {
			err = failed
			continue
		}
		defer l.Close() // together, so that none comes twice
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("find %d free ports: %w", n, err)
}
