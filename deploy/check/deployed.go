package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// programs is the folder in which a process looks for a program that its command names without one.
const programs = "/usr/local/bin"

// world holds what all processes share: programs, certificates, tokens and addresses.
type world struct {
	dir       string // everything lies below it
	bin       string // the programs
	deploy    string // a copy of the files, beside which certificates and tokens lie
	token     string // it may submit
	image     *image
	addresses *addresses
}

// deployed starts what the files describe, and uses it. Programs have been built below dir.
func deployed(ctx context.Context, dir string) (err error) {
	w, err := prepare(ctx, dir)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	servers, nodes, err := w.composed(ctx)
	if err != nil {
		return fmt.Errorf("compose.yaml: %w", err)
	}
	defer func() { err = errors.Join(err, endAll(servers)) }()
	if err := startAll(ctx, servers); err != nil {
		return fmt.Errorf("compose.yaml: %w", err)
	}
	if err := w.roll(ctx, nodes); err != nil {
		return fmt.Errorf("compose.yaml: %w", err)
	}
	if err := w.manifested(ctx); err != nil {
		return fmt.Errorf("taskledger.yaml: %w", err)
	}
	if err := w.unit(ctx, servers); err != nil {
		return fmt.Errorf("taskledger.service: %w", err)
	}
	return nil
}

// build builds the programs of all processes below dir.
func build(ctx context.Context, dir string) error {
	project := filepath.Join(deploy, "..")
	for name, from := range map[string][2]string{ // a module, and a package of it
		"taskledger":  {project, "./cmd/node"},
		"etcd":        {filepath.Join(project, "tools", "operator"), "go.etcd.io/etcd/server/v3"},
		"etcdctl":     {filepath.Join(project, "tools", "operator"), "go.etcd.io/etcd/etcdctl/v3"},
		"nats-server": {filepath.Join(project, "tools", "operator"), "github.com/nats-io/nats-server/v2"},
	} {
		program := filepath.Join(dir, "bin", name)
		c := exec.CommandContext(ctx, "go", "build", "-C", from[0], "-trimpath", "-ldflags=-s -w", "-o", program, from[1])
		c.Env = append(os.Environ(), "CGO_ENABLED=0") // nothing else lies below the root of a process
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// prepare makes certificates and tokens as the compose file and the manifests want them.
func prepare(ctx context.Context, dir string) (*world, error) {
	w := &world{
		dir:       dir,
		bin:       filepath.Join(dir, "bin"),
		deploy:    filepath.Join(dir, "deploy"),
		addresses: &addresses{of: map[string]string{}},
	}
	var err error
	if w.image, err = readImage(); err != nil {
		return nil, err
	}
	for _, name := range []string{"compose", "certs.sh"} {
		if err := copyTree(filepath.Join(deploy, name), filepath.Join(w.deploy, name), nil); err != nil {
			return nil, err
		}
	}
	if err := beforeCompose(ctx, filepath.Join(w.deploy, "compose", "compose.yaml"), w.bin); err != nil {
		return nil, err
	}
	if err := w.makeToken(ctx); err != nil {
		return nil, err
	}
	return w, w.makeSecrets(ctx)
}

// hostOfService is the DNS name of the Service in the manifests.
const hostOfService = "taskledger.taskledger.svc"

// secretFile is an option of kubectl by which a Secret has a file.
var secretFile = regexp.MustCompile(`--from-file=([a-z.]+)=(\S+)`)

// makeSecrets makes the folders whose files are those of the Secrets, as the head of the manifests makes them.
func (w *world) makeSecrets(ctx context.Context) error {
	place := filepath.Join(w.deploy, "compose")
	if err := tool(ctx, filepath.Join(w.deploy, "certs.sh"), filepath.Join(place, "certs"), hostOfService); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(deploy, "kubernetes", "taskledger.yaml"))
	if err != nil {
		return err
	}
	head, _, _ := strings.Cut(string(text), "apiVersion:")
	if !strings.Contains(head, "certs.sh certs "+hostOfService+"\n") {
		return fmt.Errorf("the head of the manifests makes no certificate of %s", hostOfService)
	}
	made := 0
	for _, command := range strings.Split(head, "create secret generic ")[1:] {
		name := strings.Fields(command)[0]
		for _, file := range secretFile.FindAllStringSubmatch(command, -1) {
			to := filepath.Join(w.dir, "secrets", name, file[1])
			if err := copyTree(filepath.Join(place, file[2]), to, nil); err != nil {
				return err
			}
			made++
		}
	}
	if made != 6 {
		return fmt.Errorf("the head of the manifests puts %d files into secrets, want 6", made)
	}
	return nil
}

// roll stops and starts the nodes of the compose file one after the other, under a load.
func (w *world) roll(ctx context.Context, nodes []*process) (err error) {
	for _, n := range nodes {
		n.env = append(n.env, "TASKLEDGER_HTTP_ALLOW_PRIVATE=true") // the load counts its effects at loopback
	}
	defer func() { err = errors.Join(err, endAll(nodes)) }()
	if err := startAll(ctx, nodes); err != nil {
		return err
	}
	if err := w.scrape(ctx, nodes); err != nil {
		return fmt.Errorf("scrape as prometheus.yaml says: %w", err)
	}
	var doors []*door
	for _, n := range nodes {
		d, err := w.door(n, n.name, "7400")
		if err != nil {
			return err
		}
		defer d.close()
		doors = append(doors, d)
	}
	load, err := newLoad(doors)
	if err != nil {
		return err
	}
	defer load.close()
	end := load.begin(ctx)
	rolled := w.restartEach(ctx, nodes)
	end()
	if err := errors.Join(rolled, load.judge(ctx)); err != nil {
		return err
	}
	fmt.Printf("processes: compose.yaml: 3 etcd, 3 NATS and 3 nodes, as ready as their checks want them\n")
	fmt.Printf("processes: each of %d tasks ran once, while one node after the other was stopped and started\n", len(load.taken))
	return nil
}

// restartEach stops and starts one node after the other, amid its attempts, each when the one before is ready again.
func (w *world) restartEach(ctx context.Context, nodes []*process) error {
	for _, p := range nodes {
		if err := w.awaitAttempts(ctx, p); err != nil {
			return err
		}
		if err := p.end(); err != nil {
			return err
		}
		if err := startAll(ctx, []*process{p}); err != nil {
			return err
		}
	}
	return nil
}

// manifested runs the pods of the manifests, and a task that each of them takes.
func (w *world) manifested(ctx context.Context) (err error) {
	pods, err := w.pods()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endAll(pods)) }()
	for _, p := range pods { // OrderedReady
		if err := startAll(ctx, []*process{p}); err != nil {
			return err
		}
	}
	for _, p := range pods {
		d, err := w.door(p, hostOfService, "7400")
		if err != nil {
			return err
		}
		defer d.close()
		id := "taken-by-" + p.name
		if err := d.submit(ctx, "noop", id, "{}"); err != nil {
			return fmt.Errorf("%s takes no task: %w", p.name, err)
		}
		if err := d.awaitSuccess(ctx, id); err != nil {
			return err
		}
	}
	fmt.Printf("processes: taskledger.yaml: %d pods pass their probes, and take tasks\n", len(pods))
	return nil
}

// unit runs the unit of systemd on the servers of the compose file, while one of each three is away.
func (w *world) unit(ctx context.Context, servers []*process) (err error) {
	for _, s := range servers {
		if s.name == "etcd-1" || s.name == "nats-1" {
			if err := s.end(); err != nil {
				return err
			}
		}
	}
	p, err := w.installed(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	if err := startAll(ctx, []*process{p}); err != nil {
		return err
	}
	fmt.Printf("processes: taskledger.service: ready, while one etcd and one NATS are away\n")
	return nil
}

// secrets is the folder of certificates and keys.
func (w *world) secrets() string { return filepath.Join(w.dir, "secrets", "taskledger-tls") }

// makeToken makes a token that may submit. It runs as the owner of the file of tokens, as the program demands.
func (w *world) makeToken(ctx context.Context) error {
	file := filepath.Join(w.deploy, "compose", "tokens", "tokens.json")
	owner := uint32(w.image.user)
	c := exec.CommandContext(ctx, filepath.Join(w.bin, "taskledger"), "token", "new", "load", "--role", "submitter",
		"--api-tokens", file)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner, Gid: owner}}
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("token new: %w: %s", err, out)
	}
	w.token = strings.TrimSpace(string(out))
	return nil
}

// layPrograms puts a program where the process finds it that its command names without a folder, and the one that asks
// etcd how it is.
func (w *world) layPrograms(p *process) error {
	if strings.HasPrefix(p.args[0], "/") {
		return nil
	}
	for _, name := range []string{p.args[0], "etcdctl"} {
		if err := link(filepath.Join(w.bin, name), filepath.Join(p.root, programs, name)); err != nil {
			return err
		}
	}
	return nil
}

// link makes a file the same file at another place, too.
func link(from, to string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Link(from, to))
}
