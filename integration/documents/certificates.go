package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// issue makes an authority, ca.crt in a new directory, and a certificate and key of each name that it has signed.
func issue(dir string, names ...string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	authority := certificate("authority")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := write(dir, "ca", authority, authority, signer, signer); err != nil {
		return err
	}
	for _, name := range names {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		if err := write(dir, name, certificate(name), authority, key, signer); err != nil {
			return err
		}
	}
	return nil
}

// certificate is for a server or client on loopback, for a day.
func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// write signs a certificate and writes it and its key.
func write(dir, name string, cert, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, signer)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name, kind string
		bytes      []byte
	}{
		{name + ".crt", "CERTIFICATE", der},
		{name + ".key", "PRIVATE KEY", private},
	} {
		text := pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.bytes})
		if err := os.WriteFile(filepath.Join(dir, file.name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
