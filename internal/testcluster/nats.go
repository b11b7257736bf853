package testcluster

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// readyWithin bounds how long a server may take to accept connections, before it is looked whether it has said why
	// not.
	readyWithin = 10 * time.Millisecond
	// mostStarts bounds the servers that are started one after the other while the port is in use.
	mostStarts = 1_000
)

// fatals keeps why a server cannot run.
type fatals struct{ why atomic.Pointer[string] }

func (l *fatals) Fatalf(format string, v ...any) {
	why := fmt.Sprintf(format, v...)
	l.why.Store(&why)
}
func (*fatals) Noticef(string, ...any) {}
func (*fatals) Warnf(string, ...any)   {}
func (*fatals) Errorf(string, ...any)  {}
func (*fatals) Debugf(string, ...any)  {}
func (*fatals) Tracef(string, ...any)  {}

// NATS is a NATS server on a loopback port of its own, which it keeps when it is started again.
type NATS struct {
	URL string // stays the same

	// What clients are asked for from the next Start on; the zero values ask for nothing.
	Token          string
	User, Password string
	users          []*server.User
	TLS            *tls.Config
	Store          string // directory of JetStream, which survives; "" = no JetStream
	MaxStore       int64  // bytes that JetStream may store; 0 = as much as the disk takes
	MaxPayload     int32  // bytes of a message with its headers; 0 = 1 MiB
	Lazy           bool   // JetStream does not sync every message

	t      testing.TB
	port   int
	server *server.Server // nil while stopped
}

// StartNATS runs a server without JetStream until the test ends.
func StartNATS(t testing.TB) *NATS {
	t.Helper()
	return startNATS(&NATS{t: t})
}

// StartJetStream runs a server with JetStream, which syncs every message, until the test ends.
func StartJetStream(t testing.TB) *NATS {
	t.Helper()
	return startNATS(&NATS{t: t, Store: t.TempDir()})
}

func startNATS(n *NATS) *NATS {
	n.t.Helper()
	n.port = reservePort(n.t)
	n.Start()
	n.port = n.server.Addr().(*net.TCPAddr).Port
	n.URL = "nats://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port))
	n.t.Cleanup(n.Stop)
	return n
}

// Start starts a stopped server again on the same port; nothing but Store survives in it. A process that has been
// started while the last server ran may have its socket until the program of that process begins, so that it is tried
// again.
func (n *NATS) Start() {
	n.t.Helper()
	for range mostStarts - 1 {
		if n.start() == nil {
			return
		}
	}
	if err := n.start(); err != nil {
		n.t.Fatal(err)
	}
}

// start returns an error where the port is in use.
func (n *NATS) start() error {
	n.t.Helper()
	s, err := server.NewServer(n.options())
	if err != nil {
		n.t.Fatalf("make NATS server: %v", err)
	}
	var said fatals
	s.SetLogger(&said, false, false)
	s.Start()
	for !s.ReadyForConnections(readyWithin) { // a busy machine takes longer; the test's own time ends that
		why := said.why.Load()
		if why == nil {
			continue
		}
		s.Shutdown()
		s.WaitForShutdown()
		err := fmt.Errorf("NATS server on port %d is not ready: %s", n.port, *why)
		if !strings.Contains(*why, syscall.EADDRINUSE.Error()) {
			n.t.Fatal(err)
		}
		return err
	}
	n.server = s
	return nil
}

func (n *NATS) options() *server.Options {
	return &server.Options{
		ServerName:        n.t.Name(),
		Host:              "127.0.0.1",
		Port:              n.port,
		Authorization:     n.Token,
		Username:          n.User,
		Password:          n.Password,
		Users:             n.users,
		TLS:               n.TLS != nil,
		TLSVerify:         n.TLS != nil && n.TLS.ClientAuth == tls.RequireAndVerifyClientCert,
		TLSConfig:         n.TLS,
		NoLog:             true,
		NoSigs:            true,
		NoSystemAccount:   n.Store == "", // JetStream needs it
		JetStream:         n.Store != "",
		StoreDir:          n.Store,
		JetStreamMaxStore: n.MaxStore,
		MaxPayload:        n.MaxPayload,
		SyncAlways:        !n.Lazy,
	}
}

// Secure starts the server again, with what its clients are to be asked for.
func (n *NATS) Secure(config *tls.Config, user, password string) {
	n.t.Helper()
	n.Stop()
	n.TLS, n.User, n.Password = config, user, password
	n.Start()
}

// Permit starts the server again for one user, who may publish and subscribe there alone.
func (n *NATS) Permit(user, password string, publish, subscribe []string) {
	n.t.Helper()
	n.Stop()
	n.users = []*server.User{{
		Username: user,
		Password: password,
		Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: publish},
			Subscribe: &server.SubjectPermission{Allow: subscribe},
		},
	}}
	n.Start()
}

// Stop cuts all connections and waits until the server is gone. A stopped server stays so.
func (n *NATS) Stop() {
	if n.server == nil {
		return
	}
	n.server.Shutdown()
	n.server.WaitForShutdown()
	n.server = nil
}

// StopJetStream has the server, to which clients stay connected, answer nothing of JetStream.
func (n *NATS) StopJetStream() {
	n.t.Helper()
	if err := n.server.ShutdownJetStream(); err != nil {
		n.t.Fatalf("stop JetStream: %v", err)
	}
}

// StartJetStream has the server answer again after StopJetStream.
func (n *NATS) StartJetStream() {
	n.t.Helper()
	if err := n.server.EnableJetStream(&server.JetStreamConfig{StoreDir: n.Store}); err != nil {
		n.t.Fatalf("start JetStream: %v", err)
	}
}

// Server is the running server, or nil. A client in the same process can reach it without a socket.
func (n *NATS) Server() *server.Server { return n.server }
