package health_test

import (
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/cluster"
	"taskledger/cmd/node/internal/health"
	"taskledger/store"
)

// answers serves a status at a path, and 404 elsewhere.
func answers(path string, status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(status)
		w.Write([]byte(text))
	}
}

func address(s *httptest.Server) string { return s.Listener.Addr().String() }

func TestReady_IsWhatMetricsOrTheAPISay(t *testing.T) {
	metrics := httptest.NewServer(answers("/readyz", http.StatusOK, ""))
	defer metrics.Close()
	api := httptest.NewServer(answers("/v1/ready", http.StatusServiceUnavailable, "draining\n"))
	defer api.Close()
	if err := (&health.Node{Metrics: address(metrics), API: address(api)}).Ready(t.Context()); err != nil {
		t.Errorf("metrics are asked first: %v", err)
	}
	err := (&health.Node{API: address(api)}).Ready(t.Context())
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "draining") {
		t.Errorf("the API: %v", err)
	}
	_, port, err := net.SplitHostPort(address(metrics))
	if err != nil {
		t.Fatal(err)
	}
	if err := (&health.Node{Metrics: "0.0.0.0:" + port, MetricsInsecure: true}).Ready(t.Context()); err != nil {
		t.Errorf("all addresses: %v", err)
	}
	metrics.Close()
	if err := (&health.Node{Metrics: address(metrics)}).Ready(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestReady_TrustsTheCertificateOfTheNodeAlone(t *testing.T) {
	api := httptest.NewTLSServer(answers("/v1/ready", http.StatusOK, ""))
	defer api.Close()
	cert := filepath.Join(t.TempDir(), "api.pem")
	write := func(der []byte) {
		t.Helper()
		if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := &health.Node{API: address(api), Cert: cert}
	write(api.Certificate().Raw)
	if err := n.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	write([]byte("another one"))
	if err := n.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "another certificate") {
		t.Errorf("with another certificate: %v", err)
	}
	if err := os.WriteFile(cert, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := n.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "has none") {
		t.Errorf("with a file that is none: %v", err)
	}
}

func TestReady_WithoutAListenerNamesWhatIsMissing(t *testing.T) {
	err := (&health.Node{Dir: t.TempDir()}).Ready(t.Context())
	if !errors.Is(err, cluster.ErrNoNode) || !strings.Contains(err.Error(), "--metrics") {
		t.Errorf("no node: %v", err)
	}
	if err := (&health.Node{API: "127.0.0.1:0"}).Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "port 0") {
		t.Errorf("port 0: %v", err)
	}
}
