package connect_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"taskledger/cmd/node/internal/connect"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

// echo serves one byte to whoever shows a certificate that is asked for.
func echo(t *testing.T, cfg *tls.Config) (address string) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte{1})
			c.Close()
		}
	}()
	return l.Addr().String()
}

// greeted connects, and returns what went wrong until the server's first byte came.
func greeted(cfg *tls.Config, address string) error {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: time.Minute}, Config: cfg}
	c, err := dialer.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.ReadFull(c, make([]byte, 1))
	return err
}

func put(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Whoever renews a certificate replaces files: the next connection must use them.
func TestTLS_FilesAreReadAgainForEveryHandshake(t *testing.T) {
	t.Parallel()
	ca, other := testcluster.NewAuthority(t), testcluster.NewAuthority(t)
	address, dir := echo(t, ca.Server(true)), t.TempDir()
	files := connect.TLS{CA: filepath.Join(dir, "ca"), Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key")}
	install := func(a *testcluster.Authority, c testcluster.Certificate) {
		put(t, a.File, files.CA)
		put(t, c.CertFile, files.Cert)
		put(t, c.KeyFile, files.Key)
	}
	install(ca, ca.Issue("node"))
	cfg, authorities, err := connect.Config(files)
	if err != nil {
		t.Fatal(err)
	}
	if err := greeted(cfg, address); err != nil {
		t.Fatalf("with a certificate of the authority: %v", err)
	}
	for _, row := range []struct {
		name string
		ca   *testcluster.Authority
		cert testcluster.Certificate
		want string // in the error
	}{
		{"expired", ca, ca.IssueUntil("node", time.Now().Add(-time.Minute)), "has expired"},
		{"of another authority", ca, other.Issue("node"), "remote error: tls"},
		{"a server of another authority", other, ca.Issue("node"), "unknown authority"},
	} {
		install(row.ca, row.cert)
		if cfg.RootCAs, err = authorities(); err != nil {
			t.Fatal(err)
		}
		if err := greeted(cfg, address); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want one with %q", row.name, err, row.want)
		}
	}
	install(ca, ca.Issue("node"))
	cfg.RootCAs, err = authorities()
	if err := errors.Join(err, greeted(cfg, address)); err != nil {
		t.Errorf("renewed: %v", err)
	}
}

func TestTLS_FilesThatDoNotFitAreBadInput(t *testing.T) {
	t.Parallel()
	ca := testcluster.NewAuthority(t)
	one, two := ca.Issue("one"), ca.Issue("two")
	for name, files := range map[string]connect.TLS{
		"a key of another certificate": {Cert: one.CertFile, Key: two.KeyFile},
		"no key":                       {Cert: one.CertFile},
		"no file":                      {CA: filepath.Join(t.TempDir(), "none")},
		"a key as authorities":         {CA: one.KeyFile},
	} {
		if _, _, err := connect.Config(files); !isInvalid(err) {
			t.Errorf("%s: %v, want an InvalidError", name, err)
		}
	}
}

func isInvalid(err error) bool {
	_, invalid := errors.AsType[*store.InvalidError](err)
	return invalid
}
