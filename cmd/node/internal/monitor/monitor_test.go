package monitor_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"taskledger/cmd/node/internal/monitor"
	"taskledger/meter"
)

// served serves vitals until the test ends, and returns the address.
func served(t *testing.T, vitals func() meter.Vitals) (*monitor.Monitor, string) {
	t.Helper()
	m, err := monitor.Open(monitor.Config{Address: "127.0.0.1:0", Names: []string{"node-1"}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { m.Serve(ctx, m.Figures(vitals), vitals) })
	t.Cleanup(func() {
		stop()
		serving.Wait()
		http.DefaultClient.CloseIdleConnections()
	})
	return m, strings.TrimSuffix(m.URL(), "/metrics")
}

func ask(t *testing.T, method, url, host string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

var sound = meter.Vitals{
	Readiness:    meter.Readiness{Session: "a-abcdefghij", Renewed: true, Settled: true},
	HasBus:       true,
	BusConnected: true,
}

func TestCheck_AllowsLoopbackAddressesAndOthersWithACertificateOrOnPurpose(t *testing.T) {
	for _, address := range []string{"127.0.0.1:9464", "127.0.0.2:0", "[::1]:9464", "localhost:9464"} {
		if err := monitor.Check(address, false, false); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for address, want := range map[string]string{
		"0.0.0.0:9464": "no loopback", ":9464": "no loopback", "[::]:9464": "no loopback", "10.0.0.1:9464": "no loopback", "example.com:9464": "no loopback",
		"127.0.0.1": "want an address and a port", "9464": "want an address and a port", "127.0.0.1:": "0 to 65535", "127.0.0.1:http": "0 to 65535",
		"127.0.0.1:65536": "0 to 65535", "127.0.0.1:-1": "0 to 65535",
	} {
		if err := monitor.Check(address, false, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
	for _, address := range []string{"0.0.0.0:9464", ":9464", "10.0.0.1:9464"} {
		if err := errors.Join(monitor.Check(address, true, false), monitor.Check(address, false, true)); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestListen_OnATakenPortFails(t *testing.T) {
	_, url := served(t, func() meter.Vitals { return sound })
	if m, err := monitor.Open(monitor.Config{Address: strings.TrimPrefix(url, "http://")}, slog.New(slog.DiscardHandler)); err == nil {
		_ = m.Close()
		t.Error("listens twice on one port")
	}
}

func TestServe_MetricsAreThoseThatTheMeterIsTold(t *testing.T) {
	m, url := served(t, func() meter.Vitals { return meter.Vitals{Slots: 5} })
	m.Meter().Count(meter.TasksCreated, "work", 3)
	status, text := ask(t, "GET", url+"/metrics", "")
	if status != 200 || !strings.Contains(text, `taskledger_tasks_created_total{behavior="work"} 3`) || !strings.Contains(text, "taskledger_slots 5") {
		t.Errorf("status %d: %s", status, text)
	}
}

func TestServe_ReadinessSaysWhyNotAndWhatIsDegraded(t *testing.T) {
	var mu sync.Mutex
	now := sound
	_, url := served(t, func() meter.Vitals {
		mu.Lock()
		defer mu.Unlock()
		return now
	})
	for _, c := range []struct {
		spoil  func(*meter.Vitals)
		status int
		text   string
	}{
		{func(*meter.Vitals) {}, 200, "ready\n"},
		{func(v *meter.Vitals) { v.BusConnected = false }, 200, "ready\ndegraded: NATS is not connected: everything goes by way of the store, and is slower\n"},
		{func(v *meter.Vitals) { v.Session = "" }, 503, "not ready: the node has no session: it has not joined yet, or cannot reach the store\n"},
		{func(v *meter.Vitals) { v.Draining = true }, 503, "not ready: the node drains\n"},
	} {
		v := sound
		c.spoil(&v)
		mu.Lock()
		now = v
		mu.Unlock()
		if status, text := ask(t, "GET", url+"/readyz", ""); status != c.status || text != c.text {
			t.Errorf("status %d, %q; want %d, %q", status, text, c.status, c.text)
		}
		if status, text := ask(t, "GET", url+"/healthz", ""); status != 200 || text != "ok\n" {
			t.Errorf("health: status %d, %q", status, text)
		}
	}
}

func TestServe_AnswersOnlyWhatItIsFor(t *testing.T) {
	_, url := served(t, func() meter.Vitals { return sound })
	for _, c := range []struct {
		method, path, host string
		status             int
	}{
		{"GET", "/", "", 404}, {"GET", "/debug/pprof/", "", 404}, {"POST", "/metrics", "", 405}, {"HEAD", "/readyz", "", 200},
		{"GET", "/metrics", "attacker.example", 403}, {"GET", "/metrics", "attacker.example:80", 403}, {"GET", "/metrics", "localhost", 200}, {"GET", "/readyz", "10.1.2.3:9464", 200}, {"GET", "/metrics", "node-1:9464", 200}, {"GET", "/metrics", "node-2:9464", 403}, {"GET", "/healthz", "[::1]:80", 200},
	} {
		if status, text := ask(t, c.method, url+c.path, c.host); status != c.status {
			t.Errorf("%s %s of %q: status %d, want %d: %s", c.method, c.path, c.host, status, c.status, text)
		}
	}
}

func TestServe_RefusesHeadersThatAreTooLong(t *testing.T) {
	_, url := served(t, func() meter.Vitals { return sound })
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("x", 64<<10)); err != nil {
		return // it has been cut off
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", answer.StatusCode)
	}
}
