// Package certificates tells how long the certificates hold that a configuration names.
package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"
)

// File is a PEM file of certificates.
type File struct {
	Name        string // what it is for, such as etcd-cert
	Path        string // "" = there is none
	Authorities bool   // it holds those that are believed, one of which suffices; else a certificate and its chain
}

// Until returns the time at which the file no longer serves: the end of the first certificate of a chain, or of the
// last one of authorities.
func (f File) Until() (until time.Time, err error) {
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return until, fmt.Errorf("read %s: %w", f.Name, err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return until, fmt.Errorf("read %s: %s: %w", f.Name, f.Path, err)
		}
		if until.IsZero() || c.NotAfter.After(until) == f.Authorities {
			until = c.NotAfter
		}
	}
	if until.IsZero() {
		return until, fmt.Errorf("read %s: %s: %w", f.Name, f.Path, errors.New("there is no certificate in it"))
	}
	return until, nil
}
