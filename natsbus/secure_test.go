package natsbus_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/natsbus"
)

const (
	user     = "node"
	password = "hunter2-node"
)

// refusedCert is in what the client says, as it happens: that the server refused its certificate, or that it closed the
// connection after the TLS handshake.
const refusedCert = "tls"

// withUser puts user and password into the server's URL.
func withUser(s *testcluster.NATS, user, password string) []string {
	return []string{strings.Replace(s.URL, "nats://", "nats://"+user+":"+password+"@", 1)}
}

func TestOpen_TLSAndAPasswordCarryMessagesAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	ca := testcluster.NewAuthority(t)
	for name, clientCerts := range map[string]bool{"password": false, "password and client certificate": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testcluster.StartNATS(t)
			s.Secure(ca.Server(clientCerts), user, password)
			cfg := natsbus.Config{URLs: withUser(s, user, password), TLS: ca.Client()}
			if clientCerts {
				cfg.TLS = ca.Client(ca.Issue("client"))
			}
			one, two := open(t, cfg), open(t, cfg)
			toldOne, toldTwo := states(t, one), states(t, two)
			await(t, toldOne, true)
			await(t, toldTwo, true)
			came := subscribe(t, two, "load", "")
			publish(t, one, "load", "", []byte("first"))
			if m := receive(t, came); string(m.Data) != "first" {
				t.Errorf("received %q", m.Data)
			}
			s.Stop()
			await(t, toldOne, false)
			await(t, toldTwo, false)
			s.Start()
			await(t, toldOne, true)
			await(t, toldTwo, true)
			settle(t, two)
			publish(t, one, "load", "", []byte("again"))
			if m := receive(t, came); string(m.Data) != "again" {
				t.Errorf("received %q", m.Data)
			}
		})
	}
}

func TestOpen_LogsWhatIsWrongWithPasswordAndCertificatesAndNoPassword(t *testing.T) {
	t.Parallel()
	ca, other := testcluster.NewAuthority(t), testcluster.NewAuthority(t)
	for name, c := range map[string]struct {
		clientCerts, plain bool // of the server
		cfg                func(s *testcluster.NATS) natsbus.Config
		want               string
	}{
		"wrong password": {cfg: func(s *testcluster.NATS) natsbus.Config {
			return natsbus.Config{URLs: withUser(s, user, "hunter2-wrong"), TLS: ca.Client()}
		}, want: "Authorization Violation"},
		"no user": {cfg: func(s *testcluster.NATS) natsbus.Config {
			return natsbus.Config{URLs: []string{s.URL}, TLS: ca.Client()}
		}, want: "Authorization Violation"},
		"wrong authority": {cfg: func(s *testcluster.NATS) natsbus.Config {
			return natsbus.Config{URLs: withUser(s, user, password), TLS: other.Client()}
		}, want: "certificate signed by unknown authority"},
		"the system's authorities": {cfg: func(s *testcluster.NATS) natsbus.Config {
			return natsbus.Config{URLs: withUser(s, user, password)}
		}, want: "certificate signed by unknown authority"},
		"no client certificate": {clientCerts: true, cfg: func(s *testcluster.NATS) natsbus.Config {
			return natsbus.Config{URLs: withUser(s, user, password), TLS: ca.Client()}
		}, want: refusedCert},
		"client certificate of another authority": {clientCerts: true, cfg: func(s *testcluster.NATS) natsbus.Config {
			return natsbus.Config{URLs: withUser(s, user, password), TLS: ca.Client(other.Issue("client"))}
		}, want: refusedCert},
		"TLS against a server without": {plain: true, cfg: func(s *testcluster.NATS) natsbus.Config {
			return natsbus.Config{URLs: withUser(s, user, password), TLS: ca.Client()}
		}, want: "secure connection not available"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testcluster.StartNATS(t)
			if c.plain {
				s.Secure(nil, user, password)
			} else {
				s.Secure(ca.Server(c.clientCerts), user, password)
			}
			var log logText
			cfg := c.cfg(s)
			cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			bus := open(t, cfg)
			testcluster.Await(t, "the log says "+c.want, func() bool { return strings.Contains(log.String(), c.want) })
			if text := log.String(); strings.Contains(text, "hunter2") || strings.Count(text, "\n") != 1 {
				t.Errorf("log: %s", text)
			}
			if err := bus.Publish("load", "", nil); err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("publish: %v", err)
			}
		})
	}
}

// logText collects log output.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// What the servers do not permit is lost like a hint, but for ever: whoever asks is told.
func TestBus_TellsWhatIsNotPermitted(t *testing.T) {
	t.Parallel()
	s := testcluster.StartNATS(t)
	s.Permit(user, password, []string{"other.>"}, []string{">"})
	bus := open(t, natsbus.Config{URLs: withUser(s, user, password)})
	told := states(t, bus)
	await(t, told, true)
	if refused := bus.Refused(); refused != "" {
		t.Errorf("before anything was sent, %q was not permitted", refused)
	}
	publish(t, bus, "load", "", []byte("hello"))
	testcluster.Await(t, "a refusal", func() bool { return strings.Contains(bus.Refused(), "Publish") })
}
