package httpd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taskledger/cmd/node/internal/openfiles"
	"taskledger/internal/advertised"
)

// caller is a connection on which requests are asked one after the other.
type caller struct {
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, network, address string) *caller {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &caller{c, bufio.NewReader(c)}
}

func (a *caller) ask(t *testing.T, path, token string) {
	t.Helper()
	if _, err := fmt.Fprintf(a, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path, token); err != nil {
		t.Fatal(err)
	}
}

// answered reads an answer, which has to be there within a time.
func (a *caller) answered(within time.Duration) error {
	if err := a.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	resp, err := http.ReadResponse(a.answers, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return errors.Join(errors.New(resp.Status), resp.Body.Close())
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// place is a data directory without servers.
type place string

func (p place) Dir() string                     { return string(p) }
func (p place) SocketPath(name string) string   { return filepath.Join(string(p), name) }
func (p place) Advertise(*advertised.API) error { return nil }
func (p place) Close() error                    { return nil }

// A store in files has no other way in.
func TestOpen_WithTheAPIOffLeavesTheSocketOfAStoreInFiles(t *testing.T) {
	at := place(t.TempDir())
	log := slog.New(slog.DiscardHandler)
	if s, err := Open(Options{Address: off}, at, 10, log); s != nil || err != nil {
		t.Errorf("with servers inside: %v, %v", s, err)
	}
	s, err := Open(Options{Address: off, Local: true}, at, 10, log)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if told := s.Advertised(); s.URL() != "" || told.Socket() != at.SocketPath("api") || len(told.Addresses) != 1 || told.Token == "" {
		t.Errorf("listens at %q, and tells %+v", s.URL(), told)
	}
}

// Whoever connects without a token, to whichever listener, keeps nobody out who has one.
func TestServe_ManyConnectionsWithoutATokenKeepNobodyOut(t *testing.T) {
	const most, many, long = 20, 200, 30 * time.Second
	dir := t.TempDir()
	o := Options{Address: "127.0.0.1:0"}
	o.Store.Address, o.Store.Name = "127.0.0.1:0", "a"
	s, err := Open(o, place(dir), most, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Serve(ctx, nil, func() string { return "" }, func() bool { return false }, nil)
	}()
	doors := map[string][3]string{ // network, address, and a path that needs a token
		"api":    {"tcp", strings.TrimPrefix(s.URL(), "http://"), "/openapi.json"},
		"store":  {"tcp", strings.TrimPrefix(s.StoreURL(), "http://"), "/groups"},
		"socket": {"unix", s.socket, "/openapi.json"},
	}
	for name, at := range doors {
		known := dial(t, at[0], at[1])
		known.ask(t, at[2], s.tokens.own)
		if err := known.answered(long); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := range many {
			a := dial(t, at[0], at[1])
			if i%2 == 0 {
				a.ask(t, "/v1/health", "")
			}
		}
		for _, other := range doors {
			a := dial(t, other[0], other[1])
			a.ask(t, other[2], s.tokens.own)
			if err := a.answered(long); err != nil {
				t.Errorf("a new connection of a token, beside %d to %s: %v", many, name, err)
			}
		}
		known.ask(t, at[2], s.tokens.own)
		if err := known.answered(long); err != nil {
			t.Errorf("a connection of a token, beside %d to %s: %v", many, name, err)
		}
	}
	if tcp, local := s.budget.State(), s.local.State(); tcp.Open > most || local.Open > openfiles.Socket || tcp.Displaced == 0 || local.Displaced == 0 {
		t.Errorf("by TCP %+v, by the socket %+v", tcp, local)
	}
	begun := time.Now()
	stop()
	<-ended
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("ended after %s", took)
	}
}
