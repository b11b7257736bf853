package embedded_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"taskledger/engine/embedded"
)

// Somebody may take the port of the last start between the look whether it is free and NATS.
func TestServers_PortOfTheLastStartIsGivenUpWhereverItIsTaken(t *testing.T) {
	dir, port := t.TempDir(), freePort(t)
	if err := os.WriteFile(filepath.Join(dir, "nats-port"), []byte(strconv.Itoa(port)), 0o600); err != nil {
		t.Fatal(err)
	}
	started, thief := make(chan struct{}), make(chan net.Listener, 1)
	go func() {
		defer close(thief)
		for { // the directory of the streams is made after the look
			if _, err := os.Stat(filepath.Join(dir, "nats")); err == nil {
				break
			}
			select {
			case <-started:
				return
			default:
			}
		}
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			thief <- l
		}
	}()
	s, err := embedded.StartServers(t.Context(), embedded.ServersConfig{Dir: dir})
	close(started)
	if l, took := <-thief; took {
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
}
