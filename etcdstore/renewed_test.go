package etcdstore_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
)

// passage forwards connections to a server and can cut all of them.
type passage struct {
	net.Listener
	to    string
	mu    sync.Mutex
	conns []net.Conn
	ended sync.WaitGroup
}

func openPassage(t *testing.T, to string) *passage {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &passage{Listener: l, to: to}
	p.ended.Go(p.serve)
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.ended.Wait()
	})
	return p
}

func (p *passage) serve() {
	for {
		from, err := p.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.to)
		if err != nil {
			from.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, from, to)
		p.mu.Unlock()
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			p.ended.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				pair[0].Close()
			})
		}
	}
}

func (p *passage) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// A certificate that is renewed is used by the next connection, and one that is refused is named by whatever fails
// meanwhile.
func TestStore_CertificatesAndAuthoritiesAreThoseOfTheMoment(t *testing.T) {
	t.Parallel()
	ca, other := testcluster.NewAuthority(t), testcluster.NewAuthority(t)
	secure := testcluster.StartSecureEtcd(t, testcluster.Security{Authority: ca, ClientCerts: true})
	p := openPassage(t, strings.TrimPrefix(secure.Endpoint, "https://"))
	good, bad := ca.Issue("node").Pair, other.Issue("node").Pair
	var shown atomic.Pointer[tls.Certificate]
	var believed atomic.Pointer[x509.CertPool]
	shown.Store(&good)
	believed.Store(ca.Client().RootCAs)
	cfg := &tls.Config{
		MinVersion:           tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return shown.Load(), nil },
	}
	s := openStore(t, etcdstore.Config{
		Endpoints:      []string{"https://" + p.Addr().String()},
		TLS:            cfg,
		Authorities:    func() (*x509.CertPool, error) { return believed.Load(), nil },
		RequestTimeout: time.Second,
	})
	read := func() error {
		_, err := s.ReadMembers(t.Context())
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(){
		"tls: ":             func() { shown.Store(&bad) },
		"unknown authority": func() { believed.Store(other.Client().RootCAs) },
	} {
		change()
		p.cut()
		testcluster.Await(t, "an error with "+want, func() bool {
			err := read()
			return err != nil && strings.Contains(err.Error(), want)
		})
		shown.Store(&good)
		believed.Store(ca.Client().RootCAs)
		testcluster.Await(t, "an answer again", func() bool { return read() == nil })
	}
}
