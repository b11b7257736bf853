package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

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
		authority, certificate := filepath.Join(certs, "ca.crt"), filepath.Join(certs, name+".crt")
		if err := tool(ctx, "openssl", "verify", "-CAfile", authority, certificate); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(filepath.Join(deploy, "compose", "nats.conf"))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("/certs/"), []byte(certs+"/")), 0o600); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"NATS_NAME": "nats-1",
		"NATS_CERT": filepath.Join(certs, "nats-1.crt"),
		"NATS_KEY":  filepath.Join(certs, "nats-1.key"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
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
