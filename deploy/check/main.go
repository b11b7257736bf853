// Command check holds the files of deploy to the tools that their users have: manifests of Kubernetes are decoded
// strictly into its types, the compose file is loaded as Compose does, systemd-analyze and promtool verify unit, rules
// and scrape, NATS reads its configuration, and certs.sh makes the certificates. It is run in its folder:
//
//	cd deploy/check && go run .
//
// It is a module of its own, so that the project links nothing of it. Needs openssl, systemd-analyze and promtool. An
// image is built where there is buildah, and else the output says that none was.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/nats-io/nats-server/v2/server"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const deploy = ".."

func main() {
	dir, err := os.MkdirTemp("", "deploy")
	if err == nil {
		err = errors.Join(check(context.Background(), dir), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// check makes every check, also after one has failed.
func check(ctx context.Context, dir string) error {
	var failed []error
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"kubernetes", manifests},
		{"compose", func() error { return compose(ctx) }},
		{"systemd", func() error { return unit(ctx, dir) }},
		{"prometheus", func() error { return prometheus(ctx, dir) }},
		{"certs.sh and nats.conf", func() error { return servers(ctx, dir) }},
		{"image", func() error { return image(ctx, dir) }},
	} {
		if err := c.run(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.name, err))
			continue
		}
		fmt.Println(c.name + ": as its tool wants it")
	}
	return errors.Join(failed...)
}

// tool runs a program, whose output an error holds.
func tool(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// kinds are the types of the manifests.
var kinds = map[string]func() any{
	"Namespace":           func() any { return new(corev1.Namespace) },
	"ConfigMap":           func() any { return new(corev1.ConfigMap) },
	"Service":             func() any { return new(corev1.Service) },
	"StatefulSet":         func() any { return new(appsv1.StatefulSet) },
	"Deployment":          func() any { return new(appsv1.Deployment) },
	"PodDisruptionBudget": func() any { return new(policyv1.PodDisruptionBudget) },
}

func manifests() error {
	text, err := os.ReadFile(filepath.Join(deploy, "kubernetes", "taskledger.yaml"))
	if err != nil {
		return err
	}
	documents := strings.Split(string(text), "\n---\n")
	for i, d := range documents {
		var of struct{ Kind string }
		if err := yaml.Unmarshal([]byte(d), &of); err != nil {
			return fmt.Errorf("document %d: %w", i+1, err)
		}
		is, known := kinds[of.Kind]
		if !known {
			return fmt.Errorf("document %d is of kind %q, which check does not know", i+1, of.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(d), is()); err != nil {
			return fmt.Errorf("document %d, %s: %w", i+1, of.Kind, err)
		}
	}
	if len(documents) < len(kinds) {
		return fmt.Errorf("there are %d documents, want one of each of %d kinds", len(documents), len(kinds))
	}
	return nil
}

func compose(ctx context.Context) error {
	options, err := cli.NewProjectOptions([]string{filepath.Join(deploy, "compose", "compose.yaml")}, cli.WithName("taskledger"))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return err
	}
	if n := len(project.Services); n != 11 {
		return fmt.Errorf("there are %d services, want 11", n)
	}
	return nil
}

// unit verifies the unit with a program where the installed one would be.
func unit(ctx context.Context, dir string) error {
	text, err := os.ReadFile(filepath.Join(deploy, "systemd", "taskledger.service"))
	if err != nil {
		return err
	}
	program, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte("/usr/local/bin/taskledger"), []byte(program))
	text = bytes.ReplaceAll(text, []byte("User=taskledger"), []byte("User=root"))
	path := filepath.Join(dir, "taskledger.service")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "systemd-analyze", "verify", "--man=no", path).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte(path)) {
		return fmt.Errorf("systemd-analyze verify: %w\n%s", err, out)
	}
	return nil
}

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
	for from, to := range map[string]string{"/etc/prometheus/rules.yaml": rules, "/certs/ca.crt": rules, "/tokens/prometheus": rules} { // files that are there
		text = bytes.ReplaceAll(text, []byte(from), []byte(to))
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
		if err := tool(ctx, "openssl", "verify", "-CAfile", filepath.Join(certs, "ca.crt"), filepath.Join(certs, name+".crt")); err != nil {
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
	if options.ServerName != "nats-1" || options.TLSConfig == nil || options.Cluster.TLSConfig == nil || !options.JetStream {
		return fmt.Errorf("nats.conf says %q, TLS %t and %t, JetStream %t", options.ServerName, options.TLSConfig != nil, options.Cluster.TLSConfig != nil, options.JetStream)
	}
	return nil
}

// image builds the Dockerfile with a file in place of the program.
func image(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("buildah"); err != nil {
		fmt.Println("image: there is no buildah here, so none was built")
		return nil
	}
	place := filepath.Join(dir, "image")
	for _, d := range []string{place, filepath.Join(place, "tmp"), filepath.Join(place, "data")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	in, err := os.Open(filepath.Join(deploy, "Dockerfile"))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(filepath.Join(place, "Dockerfile"))
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	for _, name := range []string{"taskledger", "ca-certificates.crt", "passwd"} {
		if err := os.WriteFile(filepath.Join(place, name), nil, 0o755); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), tool(ctx, "buildah", "--storage-driver", "vfs", "--root", filepath.Join(dir, "storage"), "--runroot", filepath.Join(dir, "run"),
		"build", "--isolation", "chroot", "-t", "taskledger:check", place))
}
