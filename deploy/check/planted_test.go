package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// files are the checks that start nothing, but for those of programs that come with the system.
func files(t *testing.T) error {
	if _, err := readImage(); err != nil {
		return err
	}
	all, err := manifests()
	if err != nil {
		return err
	}
	w := &world{addresses: &addresses{of: map[string]string{}}}
	for _, m := range all {
		var c *corev1.Container
		switch m := m.(type) {
		case *appsv1.StatefulSet:
			c = &m.Spec.Template.Spec.Containers[0]
		case *appsv1.Deployment:
			c = &m.Spec.Template.Spec.Containers[0]
		default:
			continue
		}
		if err := w.probe(&process{name: "node"}, c); err != nil {
			return err
		}
	}
	if err := composeLoads(t.Context()); err != nil {
		return err
	}
	project, err := loadCompose(t.Context(), filepath.Join(deploy, "compose", "compose.yaml"))
	if err != nil {
		return err
	}
	for _, service := range project.Services {
		if service.HealthCheck == nil {
			continue
		}
		if _, err := probeOf(service.HealthCheck); err != nil {
			return err
		}
	}
	return verifyUnit(t.Context(), t.TempDir())
}

// A time or an option that is misspelt, or that nothing uses, is told.
func TestFiles_PlantedMistakesAreTold(t *testing.T) {
	original, err := filepath.Abs(deploy)
	if err != nil {
		t.Fatal(err)
	}
	const none = ""
	const period, timeout = "periodSeconds: 5", "timeoutSeconds: 5"
	for _, c := range []struct{ file, is, planted, want string }{
		{"Dockerfile", none, none, none},
		{"Dockerfile", "--interval=", "--intervall=", "not defined: -intervall"},
		{"Dockerfile", "--timeout=5s ", "", "--timeout"},
		{"kubernetes/taskledger.yaml", period, "periodSecond: 5", "periodSecond"},
		{"kubernetes/taskledger.yaml", timeout, "successThreshold: 2", "timeoutSeconds"},
		{"kubernetes/taskledger.yaml", timeout, timeout + "\n            initialDelaySeconds: 5", "nothing here uses"},
		{"kubernetes/taskledger.yaml", "            failureThreshold: 6\n", "", "failureThreshold"},
		{"compose/compose.yaml", "    interval: 10s", "    intervall: 10s", "intervall"},
		{"compose/compose.yaml", "    timeout: 5s\n", "", "timeout"},
		{"compose/compose.yaml", "    timeout: 5s", "    timeout: 5s\n    start_interval: 1s", "start_interval"},
		{"systemd/taskledger.service", "TimeoutStopSec", "TimeoutStopSecs", "TimeoutStopSecs"},
	} {
		t.Run(c.file+" "+c.planted, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"Dockerfile", "kubernetes", "compose", "systemd"} {
				var change func(string) (string, error)
				if c.is != none && strings.HasPrefix(c.file, name) {
					change = func(text string) (string, error) { return strings.ReplaceAll(text, c.is, c.planted), nil }
				}
				if err := copyTree(filepath.Join(original, name), filepath.Join(dir, name), change); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(dir, "check"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Chdir(filepath.Join(dir, "check"))
			err := files(t)
			if c.want == none && err != nil || c.want != none && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v", err)
			}
		})
	}
}

// The times of a probe are those by which a process is asked and given up.
func TestProcess_IsGivenUpByTheTimesOfItsProbe(t *testing.T) {
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer silent.Close()
	defer close(release)
	p := &process{name: "node"}
	err := p.ask(t.Context(), probe{url: silent.URL, timeout: time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	err = p.awaitPass(t.Context(), probe{url: silent.URL, timeout: time.Hour, within: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "node is not ready after 1ms") {
		t.Error(err)
	}
}
