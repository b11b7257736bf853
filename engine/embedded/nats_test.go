package embedded_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"taskledger/engine/embedded"
)

// Somebody may take the port of the last start between the look whether it is free and NATS.
func TestServers_PortOfTheLastStartIsGivenUpWhereverItIsTaken(t *testing.T) {
	t.Parallel()
	for range 100 { // the thief may come too late
		if takenAfterTheLook(t) {
			return
		}
	}
	t.Error("the port was never taken in time")
}

// takenAfterTheLook starts servers while a thief tries to take the port, and reports whether that was taken before
// NATS.
func takenAfterTheLook(t *testing.T) bool {
	t.Helper()
	dir, port := t.TempDir(), freePort(t)
	if err := os.WriteFile(filepath.Join(dir, "nats-port"), []byte(strconv.Itoa(port)), 0o600); err != nil {
		t.Fatal(err)
	}
	started, thief := make(chan struct{}), make(chan net.Listener, 1)
	go func() {
		defer close(thief)
		for {
			select {
			case <-started:
				return
			default:
			}
			if _, err := os.Stat(filepath.Join(dir, "nats")); err != nil { // the directory of the streams is made after the look
				continue
			}
			if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
				thief <- l
				return
			}
		}
	}()
	s, err := embedded.StartServers(t.Context(), embedded.ServersConfig{Dir: dir})
	close(started)
	l, took := <-thief
	if took {
		defer l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, err := os.ReadFile(filepath.Join(dir, "nats-port"))
	if err != nil || string(text) != strconv.Itoa(portOf(t, s.NATSURL())) {
		t.Errorf("NATS is at %s, remembered %q, %v", s.NATSURL(), text, err)
	}
	return took
}

// Whoever connects to NATS without proving anything takes no more files than it may.
func TestServers_NATSTakesAtMostSoManyConnections(t *testing.T) {
	t.Parallel()
	s, err := embedded.StartServers(t.Context(), embedded.ServersConfig{Dir: t.TempDir(), NATSConnections: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all []net.Conn
	for range 6 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.NATSURL(), "nats://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	refused := 0
	for _, c := range all {
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		told, _ := io.ReadAll(c) // those that were taken end, too, as they prove nothing
		if strings.Contains(string(told), "maximum connections exceeded") {
			refused++
		}
	}
	if refused == 0 {
		t.Error("6 connections are taken, 2 may be")
	}
}
