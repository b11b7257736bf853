package doors_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"taskledger/api/doors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long bounds an answer on a machine that does much else.
const long = 30 * time.Second

// served is a server of a budget whose requests show a token by their path /token, and wait for release by /slow.
type served struct {
	t       *testing.T
	budget  *doors.Budget
	address string
	entered chan struct{}
	release chan struct{}
}

func serve(t *testing.T, most int, secure bool) *served {
	t.Helper()
	s := &served{t: t, budget: doors.New(most), entered: make(chan struct{}, 100), release: make(chan struct{})}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer doors.Of(r).Serving()()
		switch r.URL.Path {
		case "/token":
			doors.Of(r).ShowsToken()
		case "/lingers":
			doors.Of(r).Answered()
			w.Header().Set("Content-Length", "2")
			w.Header().Set("Connection", "close") // net/http would read the body first
			_, _ = io.WriteString(w, "ok")
			_ = http.NewResponseController(w).Flush()
			_, _ = io.Copy(io.Discard, r.Body)
		case "/slow":
			s.entered <- struct{}{}
			<-s.release
		}
		_, _ = io.WriteString(w, "ok")
	}))
	server.Config.ConnContext = doors.Context
	server.Listener = s.budget.Listen(server.Listener)
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	s.address = server.Listener.Addr().String()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if got := s.budget.State().Open; got != 0 {
			t.Errorf("%d connections are open at the end", got)
		}
	})
	return s
}

// peer is a connection to it.
type peer struct {
	net.Conn
	answers *bufio.Reader
}

func (s *served) dial(text string) *peer {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	p := &peer{c, bufio.NewReader(c)}
	p.send(text)
	return p
}

func (p *peer) send(text string) { _, _ = io.WriteString(p, text) }

func get(path string) string { return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path) }

func (p *peer) answered(within time.Duration) error {
	if err := p.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	resp, err := http.ReadResponse(p.answers, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// ended reports whether the server has closed the connection.
func (p *peer) ended() bool {
	_ = p.SetReadDeadline(time.Now().Add(long))
	_, err := p.answers.ReadByte()
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (s *served) must(p *peer) {
	s.t.Helper()
	if err := p.answered(long); err != nil {
		s.t.Fatal(err)
	}
}

// taken waits until the server has taken so many connections.
func (s *served) taken(n int) {
	s.t.Helper()
	for end := time.Now().Add(long); s.budget.State().Open < n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%+v, want %d open", s.budget.State(), n)
		}
	}
}

func TestBudget_ANewConnectionDisplacesTheOldestThatNoHandlerServes(t *testing.T) {
	for name, text := range map[string]string{"new": "", "half a header": "GET / HTTP/1.1\r\nHost: lo", "idle": get("/"), "half the next header": get("/") + "GET",
		"a body that does not come": "POST /lingers HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, 3, false)
			var old []*peer
			for i := range 3 {
				p := s.dial(text)
				if strings.Contains(text, "\r\n\r\n") {
					s.must(p)
				}
				s.taken(i + 1)
				old = append(old, p)
			}
			s.must(s.dial(get("/token")))
			if !old[0].ended() {
				t.Error("the oldest is still open")
			}
			s.must(s.dial(get("/")))
			if !old[1].ended() {
				t.Error("the second oldest is still open")
			}
			if got := s.budget.State(); got.Displaced != 2 || got.Open != 3 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestBudget_HalfAHandshakeIsDisplaced(t *testing.T) {
	s := serve(t, 2, true)
	for i := range 2 {
		s.dial("\x16\x03\x01") // the beginning of a record
		s.taken(i + 1)
	}
	c, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is of the test
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := &peer{c, bufio.NewReader(c)}
	p.send(get("/token"))
	s.must(p)
}

func TestBudget_ThoseWithATokenAreDisplacedLast(t *testing.T) {
	s := serve(t, 3, false)
	known := s.dial(get("/token"))
	s.must(known)
	for range 10 {
		s.must(s.dial(get("/")))
	}
	known.send(get("/token"))
	s.must(known)
	for range 3 { // now all have shown tokens
		s.must(s.dial(get("/token")))
	}
	if !known.ended() {
		t.Error("the oldest with a token keeps others out")
	}
}

func TestBudget_WhoIsServedIsNotDisplacedAndANewOneWaits(t *testing.T) {
	s := serve(t, 2, false)
	for range 2 {
		s.dial(get("/slow"))
		<-s.entered
	}
	waits := s.dial(get("/token"))
	if err := waits.answered(20 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("one more than there may be: %v", err)
	}
	close(s.release)
	s.must(waits)
}

// pipes is a listener of connections within the process, which a bubble of synctest can wait for.
type pipes struct {
	server chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn, 2_000), make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.server <- far
	return near
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.server:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func TestBudget_BehindManyOfItsOwnListenerARequestIsAnsweredWithinASecond(t *testing.T) {
	for _, most := range []int{1, 16, 32, 50, 250, 1_000} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				s := &http.Server{ConnContext: doors.Context, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer doors.Of(r).Serving()()
					_, _ = io.WriteString(w, "ok")
				})}
				ended := make(chan error, 1)
				go func() { ended <- s.Serve(doors.New(most).Listen(l)) }()
				for i := range 1_200 {
					c := l.dial()
					defer c.Close()
					if i%2 == 0 {
						go func() { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: ") }()
					}
				}
				began, c := time.Now(), l.dial()
				defer c.Close()
				p := &peer{c, bufio.NewReader(c)}
				p.send(get("/"))
				if err := p.answered(long); err != nil || time.Since(began) > time.Second {
					t.Errorf("answered after %s: %v", time.Since(began), err)
				}
				_ = s.Close() // it may say that it had closed the listener before
				<-ended
			})
		})
	}
}

func TestBudget_TheMomentBeginsWhenTheServerReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPipes()
		l := doors.New(1).Listen(inner)
		defer l.Close()
		defer inner.dial().Close()
		defer inner.dial().Close()
		first, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan net.Conn, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
			}
			second <- c
		}()
		time.Sleep(time.Hour)
		select {
		case <-second:
			t.Fatal("the first one is displaced before the server, which is busy, has begun to read it")
		default:
		}
		if _, err := first.Read(make([]byte, 1)); err == nil {
			t.Error("the first one is still open")
		}
		if err := (<-second).Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestListener_EndsWhileAConnectionWaitsForRoom(t *testing.T) {
	b := doors.New(1)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := b.Listen(inner)
	dial := func() net.Conn {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	defer dial().Close()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	r := (&http.Request{}).WithContext(doors.Context(context.Background(), first))
	defer doors.Of(r).Serving()()
	defer dial().Close()
	got := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		got <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-got; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
