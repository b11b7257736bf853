package etcdstore_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
)

// A certificate that is renewed is used by the next connection, and one that is refused is named by whatever fails
// meanwhile.
func TestStore_CertificatesAndAuthoritiesAreThoseOfTheMoment(t *testing.T) {
	t.Parallel()
	ca, other := testcluster.NewAuthority(t), testcluster.NewAuthority(t)
	secure := testcluster.StartSecureEtcd(t, testcluster.Security{Authority: ca, ClientCerts: true})
	link, server := testcluster.NewLink(t), strings.TrimPrefix(secure.Endpoint, "https://")
	link.Lead(server)
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
		Endpoints:      []string{"https://" + link.Address},
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
		link.Lead(server) // cuts the connections that there are
		testcluster.Await(t, "an error with "+want, func() bool {
			err := read()
			return err != nil && strings.Contains(err.Error(), want)
		})
		shown.Store(&good)
		believed.Store(ca.Client().RootCAs)
		testcluster.Await(t, "an answer again", func() bool { return read() == nil })
	}
}
