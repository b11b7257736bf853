package httpd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asker is a connection on which requests are asked one after the other.
type asker struct {
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, network, address string) *asker {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &asker{c, bufio.NewReader(c)}
}

func (a *asker) ask(t *testing.T) {
	t.Helper()
	if _, err := fmt.Fprint(a, "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

// answered reads an answer, which has to be there within a time.
func (a *asker) answered(within time.Duration) error {
	if err := a.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	resp, err := http.ReadResponse(a.answers, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return resp.Body.Close()
}

// Beyond the limit connections wait, the others are served meanwhile, and one that ends makes room for one that waits.
func TestServe_ConnectionsBeyondTheLimitWaitForOthersToEnd(t *testing.T) {
	const most, more, long = 3, 4, 30 * time.Second
	dir := t.TempDir()
	s, err := open(Options{Address: "127.0.0.1:0"}, dir, filepath.Join(dir, "api"), slog.New(slog.DiscardHandler), most)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Serve(ctx, nil, func() string { return "" }, nil)
	}()
	for network, address := range map[string]string{"tcp": strings.TrimPrefix(s.URL(), "http://"), "unix": s.socket} {
		var served, waiting []*asker
		for range most {
			a := dial(t, network, address)
			a.ask(t)
			if err := a.answered(long); err != nil {
				t.Fatalf("%s: %v", network, err)
			}
			served = append(served, a)
		}
		for range more {
			a := dial(t, network, address)
			a.ask(t)
			waiting = append(waiting, a)
		}
		for range 20 {
			for _, a := range served {
				a.ask(t)
				if err := a.answered(long); err != nil {
					t.Errorf("%s, beside others that wait: %v", network, err)
				}
			}
		}
		for _, a := range waiting {
			if err := a.answered(20 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("%s, one of %d more than %d connections: %v", network, more, most, err)
			}
		}
		for i, a := range waiting { // they are taken in their order
			_ = served[i].Close()
			if err := a.answered(long); err != nil {
				t.Errorf("%s, when there is room: %v", network, err)
			}
			served = append(served, a)
		}
		dial(t, network, address).ask(t) // this connection still waits when the node ends, and does not delay the end
	}
	begun := time.Now()
	stop()
	<-ended
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("ended after %s", took)
	}
}
