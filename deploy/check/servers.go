package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
)

func prometheus(ctx context.Context, dir string) error {
	if err := tool(ctx, "promtool", "check", "rules", filepath.Join(deploy, "prometheus", "rules.yaml")); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(deploy, "compose", "prometheus.yaml"))
	if err != nil {
		return err
	}
	rules, err := filepath.Abs(filepath.Join(deploy, "prometheus", "rules.yaml"))
	if err != nil {
		return err
	}
	for _, file := range []string{"/etc/prometheus/rules.yaml", "/certs/ca.crt", "/tokens/prometheus"} {
		text = bytes.ReplaceAll(text, []byte(file), []byte(rules)) // promtool wants files that are there
	}
	path := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	return tool(ctx, "promtool", "check", "config", "--syntax-only", path)
}

// servers makes certificates as the compose file asks for, and has NATS read its configuration with them.
func servers(ctx context.Context, dir string) error {
	certs := filepath.Join(dir, "certs")
	for range 2 { // the second time changes nothing
		if err := tool(ctx, filepath.Join(deploy, "certs.sh"), certs, "etcd-1", "nats-1", "node-1"); err != nil {
			return err
		}
	}
	for _, name := range []string{"etcd-1", "nats-1", "node-1", "client"} {
		if err := seesItsOwn(ctx, filepath.Join(certs, name), filepath.Join(certs, "authority", "ca.crt")); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(deploy, "compose", "nats.conf"))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "nats.conf")
	text = bytes.ReplaceAll(text, []byte("/certs/"), []byte(filepath.Join(certs, "nats-1")+"/"))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	if err := os.Setenv("NATS_NAME", "nats-1"); err != nil {
		return err
	}
	options, err := server.ProcessConfigFile(path)
	if err != nil {
		return err
	}
	tls, between := options.TLSConfig != nil, options.Cluster.TLSConfig != nil
	if options.ServerName != "nats-1" || !tls || !between || !options.JetStream {
		return fmt.Errorf("nats.conf says %q, TLS %t and %t, JetStream %t", options.ServerName, tls, between, options.JetStream)
	}
	return nil
}

// seesItsOwn holds a directory of certs.sh to one certificate of the authority, with its key, and nothing else.
func seesItsOwn(ctx context.Context, dir, authority string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"ca.crt", "tls.crt", "tls.key"}; !slices.Equal(names, want) {
		return fmt.Errorf("%s holds %q, want %q", dir, names, want)
	}
	return tool(ctx, "openssl", "verify", "-CAfile", authority, filepath.Join(dir, "tls.crt"))
}
