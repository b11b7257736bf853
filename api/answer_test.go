package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/token"
)

// pipes are a listener without buffers, for a bubble of time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// frontOf serves routes without a cluster, in a bubble of time. The function returned connects to them.
func frontOf(t *testing.T, routes ...api.Route) (dial func() net.Conn) {
	t.Helper()
	a, err := api.New(api.Config{Client: operations.Direct{}, Tokens: everybody, Routes: routes})
	if err != nil {
		t.Fatal(err)
	}
	l := pipes{make(chan net.Conn), make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func() net.Conn {
		mine, its := net.Pipe()
		l.conns <- its
		t.Cleanup(func() { _ = mine.Close() })
		return mine
	}
}

func ask(t *testing.T, c net.Conn, secret, path string) {
	t.Helper()
	const get = "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
	if _, err := fmt.Fprintf(c, get, path, secret); err != nil {
		t.Fatal(err)
	}
}

// status reads an answer to its end.
func status(t *testing.T, c net.Conn) (int, error) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

var (
	big = api.Route{
		Method:  "GET",
		Pattern: "/big",
		Summary: "Answer with 4 MB",
		Role:    token.Viewer,
		Large:   true,
		Query:   []api.Param{{Name: "limit"}},
		Serve: func(c *api.Call) error {
			return c.JSON(http.StatusOK, json.RawMessage(`"`+strings.Repeat("x", 4<<20)+`"`))
		},
	}
	held = func(until <-chan struct{}) api.Route {
		return api.Route{
			Method:  "GET",
			Pattern: "/held",
			Summary: "Answer late",
			Role:    token.Viewer,
			Large:   true,
			Query:   []api.Param{{Name: "limit"}},
			Serve: func(c *api.Call) error {
				select {
				case <-until:
				case <-c.Context().Done():
				}
				return c.JSON(http.StatusOK, "done")
			},
		}
	}
)

// One caller whose connections read nothing takes nothing that others need, and each of these connections ends.
func TestJSON_ReadersThatReadNothingHoldUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := frontOf(t, big)
		var stalled []net.Conn
		for range 8 {
			c := dial()
			ask(t, c, "viewer", "/big")
			stalled = append(stalled, c)
		}
		begun := time.Now()
		for range 3 {
			c := dial()
			ask(t, c, "operator", "/big")
			if got, err := status(t, c); got != 200 || err != nil || time.Since(begun) > time.Second {
				t.Errorf("%d, %v after %s", got, err, time.Since(begun))
			}
		}
		time.Sleep(20 * time.Second)
		for i, c := range stalled {
			if got, err := status(t, c); got == 200 && err == nil {
				t.Errorf("the reader %d has read nothing for 20 s, and is answered with %d, %v", i, got, err)
			}
		}
	})
}

// A reader that takes a little now and then is no such reader.
func TestJSON_AReaderThatIsSlowGetsAllOfALargeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := frontOf(t, big)
		c := dial()
		ask(t, c, "viewer", "/big")
		got := 0
		piece := make([]byte, 256<<10)
		for got < 4<<20 {
			time.Sleep(time.Second)
			n, err := io.ReadFull(c, piece)
			if got += n; err != nil && got < 4<<20 {
				t.Fatalf("%d bytes, %v", got, err)
			}
		}
	})
}

// Slow answers occupy only a share of the places: a caller of small answers always finds one.
func TestRequest_OneCallerTakesAPartOfThePlacesForLargeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		dial := frontOf(t, big, held(open))
		for range 8 {
			ask(t, dial(), "viewer", "/held")
		}
		for secret, path := range map[string]string{"operator": "/big", "viewer": "/big?limit=1"} {
			c := dial()
			ask(t, c, secret, path)
			if got, err := status(t, c); got != 200 || err != nil {
				t.Errorf("%s %s: %d, %v", secret, path, got, err)
			}
		}
		c := dial()
		ask(t, c, "viewer", "/big")
		synctest.Wait()
		close(open)
		if got, err := status(t, c); got != 200 || err != nil {
			t.Errorf("the caller's own turn: %d, %v", got, err)
		}
	})
}

// Two callers whose large bodies do not come to an end leave room for a third.
func TestBody_TwoCallersDoNotTakeTheRoomOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := frontOf(t, api.Route{
			Method:  "POST",
			Pattern: "/take",
			Summary: "Take a text",
			Role:    token.Viewer,
			MaxBody: 4 << 20,
			In:      "",
			Out:     "",
			Serve: func(c *api.Call) error {
				if _, err := c.Body(); err != nil {
					return err
				}
				return c.JSON(http.StatusOK, "done")
			},
		})
		send := func(secret string, says, sends int) net.Conn {
			c := dial()
			_, _ = fmt.Fprintf(c, "POST /take HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
				"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				secret, says, strings.Repeat("x", sends))
			return c
		}
		for _, secret := range []string{"viewer", "submitter"} {
			go send(secret, 4<<20, 3<<20)
		}
		synctest.Wait()
		if got, err := status(t, send("operator", 100<<10, 100<<10)); got != 200 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
		time.Sleep(time.Minute)
	})
}
