package connect

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"taskledger/store"
)

// TLS names the PEM files that secure a connection. The zero value is no TLS, or what the URLs say.
type TLS struct {
	CA   string // whom to believe instead of the system's authorities
	Cert string // to show, together with Key
	Key  string
}

// config returns nil for the zero value, and what reads the authorities again; nil = the system's. The files are read
// for every handshake, so that certificates and authorities are renewed while the process runs.
func (t TLS) config() (*tls.Config, func() (*x509.CertPool, error), error) {
	if t == (TLS{}) {
		return nil, nil, nil
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, nil, &store.InvalidError{Field: "TLS", Problem: "a certificate needs its key and a key its certificate"}
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.Cert != "" {
		if _, err := t.pair(); err != nil {
			return nil, nil, &store.InvalidError{Field: "TLS", Problem: err.Error()}
		}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.pair() }
	}
	if t.CA == "" {
		return cfg, nil, nil
	}
	var err error
	if cfg.RootCAs, err = t.authorities(); err != nil {
		return nil, nil, &store.InvalidError{Field: "TLS", Problem: err.Error()}
	}
	return cfg, t.authorities, nil
}

// pair reads the certificate to show.
func (t TLS) pair() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("load certificate %s: %w", t.Cert, err)
	}
	if now := time.Now(); now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("certificate %s has expired, at %s", t.Cert, pair.Leaf.NotAfter.Format(time.RFC3339))
	}
	return &pair, nil
}

// authorities reads whom to believe.
func (t TLS) authorities() (*x509.CertPool, error) {
	text, err := os.ReadFile(t.CA)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read authorities: no certificate in %s", t.CA)
	}
	return pool, nil
}
