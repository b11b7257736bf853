package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"taskledger/engine"
)

// TLS names the PEM files that secure a connection. The zero value is no TLS, or what the URLs say.
type TLS struct {
	CA   string // whom to believe instead of the system's authorities
	Cert string // to show, together with Key
	Key  string
}

// config returns nil for the zero value.
func (t TLS) config() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, &engine.InvalidError{Field: "TLS", Problem: "a certificate needs its key and a key its certificate"}
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("load certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read authorities: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate in it", t.CA)
		}
	}
	return cfg, nil
}
