package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// scrape asks each node for its metrics as Prometheus is told to.
func (w *world) scrape(ctx context.Context, nodes []*process) error {
	folder := filepath.Join(w.deploy, "compose")
	text, err := os.ReadFile(filepath.Join(folder, "prometheus.yaml"))
	if err != nil {
		return err
	}
	var says struct {
		Jobs []struct {
			Scheme        string `json:"scheme"`
			Authorization struct {
				File string `json:"credentials_file"`
			} `json:"authorization"`
			Targets []struct {
				Targets []string `json:"targets"`
			} `json:"static_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.Unmarshal(text, &says); err != nil {
		return err
	}
	if len(says.Jobs) != 1 || len(says.Jobs[0].Targets) != 1 || len(says.Jobs[0].Targets[0].Targets) != len(nodes) {
		return errors.New("want one job, and every node as its target")
	}
	job := says.Jobs[0]
	if job.Scheme != "https" {
		return fmt.Errorf("scheme %q: a token would cross the network for all to read", job.Scheme)
	}
	token, err := os.ReadFile(filepath.Join(folder, job.Authorization.File))
	if err != nil {
		return err
	}
	for _, target := range job.Targets[0].Targets {
		host, port, err := net.SplitHostPort(target)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(nodes, func(n *process) bool { return n.name == host })
		if at < 0 {
			return fmt.Errorf("%s is no node", host)
		}
		metrics, err := w.metrics(ctx, nodes[at], port, strings.TrimSpace(string(token)))
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		if !strings.Contains(metrics, "\ntaskledger_ready 1\n") {
			return fmt.Errorf("%s has no taskledger_ready 1", target)
		}
	}
	return nil
}

// metrics asks a node for its metrics.
func (w *world) metrics(ctx context.Context, node *process, port, token string) (string, error) {
	d, err := w.door(node, node.name, port)
	if err != nil {
		return "", err
	}
	defer d.close()
	d.token = token
	text, err := d.call(ctx, http.MethodGet, "/metrics", nil)
	return string(text), err
}

var slotsUsed = regexp.MustCompile(`(?m)^taskledger_slots_used (\d+)$`)

// awaitAttempts waits until a node makes two attempts or more: a load that takes its time has them in flight then.
func (w *world) awaitAttempts(ctx context.Context, node *process) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		text, err := w.metrics(ctx, node, "9464", w.token)
		if err != nil {
			return fmt.Errorf("await attempts of %s: %w", node.name, err)
		}
		found := slotsUsed.FindStringSubmatch(text)
		if found == nil {
			return fmt.Errorf("%s has no taskledger_slots_used", node.name)
		}
		if used, err := strconv.Atoi(found[1]); err != nil || used > 1 {
			return err
		}
		pause(ctx)
	}
}
