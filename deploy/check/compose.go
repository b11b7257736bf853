package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

func loadCompose(ctx context.Context, file string) (*types.Project, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithName("taskledger"))
	if err != nil {
		return nil, err
	}
	return options.LoadProject(ctx)
}

// composeLoads reports whether Compose would take the file.
func composeLoads(ctx context.Context) error {
	project, err := loadCompose(ctx, filepath.Join(deploy, "compose", "compose.yaml"))
	if err != nil {
		return err
	}
	if n := len(project.Services); n != 11 {
		return fmt.Errorf("there are %d services, want 11", n)
	}
	return nil
}

// beforeCompose runs what the compose file wants to have been done before the first start, but for the image.
func beforeCompose(ctx context.Context, file, bin string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	script := "set -e\nsudo() { \"$@\"; }\n" // the checks run as root
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if command, is := strings.CutPrefix(lines.Text(), "#     "); is && !strings.HasPrefix(command, "make ") {
			script += command + "\n"
		}
	}
	c := exec.CommandContext(ctx, "sh", "-c", script)
	c.Dir, c.Env = filepath.Dir(file), append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("what stands at the head of %s: %w\n%s", file, err, out)
	}
	return nil
}

// port finds the ports of NATS in its configuration: it listens on all addresses there.
var port = regexp.MustCompile(`(?m)^( *)port: ([0-9]+)$`)

// composed are the processes of the services that one machine can run without their images: etcd, NATS and the nodes.
func (w *world) composed(ctx context.Context) (servers, nodes []*process, err error) {
	project, err := loadCompose(ctx, filepath.Join(w.deploy, "compose", "compose.yaml"))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range project.ServiceNames() {
		service := project.Services[name]
		p := &process{name: name, first: true, root: filepath.Join(w.dir, "compose", name), dir: "/"}
		image, _, _ := strings.Cut(service.Image, ":")
		switch image {
		case "quay.io/coreos/etcd":
			p.args = append([]string{"etcd"}, service.Command...)
			servers = append(servers, p)
		case "nats":
			p.args = append([]string{"nats-server"}, service.Command...)
			servers = append(servers, p)
		case "taskledger":
			p.args = slices.Concat(w.image.entrypoint, service.Command)
			p.env, p.dir = slices.Clone(w.image.env), w.image.dir
			p.probes = []probe{w.image.health}
			p.user, p.group = w.image.user, w.image.user
			if err := w.image.lay(p.root, filepath.Join(w.bin, "taskledger")); err != nil {
				return nil, nil, err
			}
			nodes = append(nodes, p)
		default:
			continue // Prometheus and Grafana: their files are held to promtool, and to the names of metrics
		}
		if err := w.compose(p, &service); err != nil {
			return nil, nil, fmt.Errorf("service %s: %w", name, err)
		}
	}
	if len(servers) != 6 || len(nodes) != 3 {
		return nil, nil, fmt.Errorf("%d servers and %d nodes, want 6 and 3", len(servers), len(nodes))
	}
	return servers, nodes, nil
}

// compose gives a process what a service says of environment, volumes, health check and stop.
func (w *world) compose(p *process, service *types.ServiceConfig) error {
	for variable, value := range service.Environment {
		text, err := w.addresses.replaced(p.name, *value)
		if err != nil {
			return err
		}
		p.env = append(p.env, variable+"="+text)
	}
	if err := w.layPrograms(p); err != nil {
		return err
	}
	for _, volume := range service.Volumes {
		target := filepath.Join(p.root, volume.Target)
		if volume.Type == types.VolumeTypeVolume { // it begins as the image has the folder
			if err := own(target, p.user, p.group, 0o700); err != nil {
				return err
			}
			continue
		}
		var change func(string) (string, error)
		if filepath.Ext(volume.Source) == ".conf" {
			change = func(text string) (string, error) {
				return w.addresses.replaced(p.name, port.ReplaceAllString(text, "${1}listen: 0.0.0.0:$2"))
			}
		}
		if err := copyTree(volume.Source, target, change); err != nil {
			return err
		}
	}
	if service.StopGracePeriod == nil {
		return errors.New("it names no stop_grace_period")
	}
	p.stop = time.Duration(*service.StopGracePeriod)
	if check := service.HealthCheck; check != nil {
		asks, err := probeOf(check)
		if err != nil {
			return err
		}
		for _, word := range check.Test[1:] { // behind CMD
			word, err := w.addresses.replaced(p.name, word)
			if err != nil {
				return err
			}
			asks.command = append(asks.command, word)
		}
		p.probes = append(p.probes, asks)
	}
	return nil
}

// probeOf is a probe with the times of a health check.
func probeOf(check *types.HealthCheckConfig) (probe, error) {
	if check.Interval == nil || check.Timeout == nil || check.StartPeriod == nil {
		return probe{}, errors.New("its healthcheck wants interval, timeout and start_period")
	}
	if check.StartInterval != nil {
		return probe{}, errors.New("nothing here uses the start_interval of its healthcheck")
	}
	retries := uint64(defaultRetries)
	if check.Retries != nil {
		retries = *check.Retries
	}
	start, interval := time.Duration(*check.StartPeriod), time.Duration(*check.Interval)
	return probe{timeout: time.Duration(*check.Timeout), within: start + time.Duration(retries)*interval}, nil
}
