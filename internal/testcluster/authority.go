package testcluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority issues the certificates of a test. Everything it makes is valid for an hour.
type Authority struct {
	File string // PEM of its own certificate

	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Certificate is one for 127.0.0.1, for servers as for clients.
type Certificate struct {
	CertFile, KeyFile string // PEM
	Pair              tls.Certificate
}

// NewAuthority makes an authority that nobody knows yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	template := template("authority of " + t.Name())
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	a.cert, a.key = template, newKey(t)
	der := a.sign(template, &a.key.PublicKey)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatalf("parse certificate: %v", err)
	}
	a.File = writePEM(t, "CERTIFICATE", der)
	return a
}

// Issue makes a certificate with the common name.
func (a *Authority) Issue(name string) Certificate {
	a.t.Helper()
	return a.IssueUntil(name, time.Now().Add(time.Hour))
}

// IssueUntil makes a certificate that expires at a time.
func (a *Authority) IssueUntil(name string, expires time.Time) Certificate {
	a.t.Helper()
	template := template(name)
	template.NotBefore, template.NotAfter = expires.Add(-2*time.Hour), expires
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	key := newKey(a.t)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatalf("marshal key: %v", err)
	}
	der := a.sign(template, &key.PublicKey)
	return Certificate{
		CertFile: writePEM(a.t, "CERTIFICATE", der),
		KeyFile:  writePEM(a.t, "PRIVATE KEY", keyDER),
		Pair:     tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}
}

// Client returns what a client needs that believes the authority alone and shows the certificates.
func (a *Authority) Client(show ...Certificate) *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.pool()}
	for _, c := range show {
		cfg.Certificates = append(cfg.Certificates, c.Pair)
	}
	return cfg
}

// Server returns what a server needs; it asks clients for a certificate of the authority if clientCerts says so.
func (a *Authority) Server(clientCerts bool) *tls.Config {
	a.t.Helper()
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{a.Issue("server").Pair}}
	if clientCerts {
		cfg.ClientCAs, cfg.ClientAuth = a.pool(), tls.RequireAndVerifyClientCert
	}
	return cfg
}

func (a *Authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func (a *Authority) sign(template *x509.Certificate, key *ecdsa.PublicKey) []byte {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key, a.key)
	if err != nil {
		a.t.Fatalf("sign certificate: %v", err)
	}
	return der
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, big.NewInt(1<<62)) // never fails
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make key: %v", err)
	}
	return key
}

func writePEM(t testing.TB, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
