package monitor_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"taskledger/cmd/node/internal/certificates"
	"taskledger/cmd/node/internal/monitor"
)

// certificateFile writes certificates that end after so many days each, and returns the path of the file.
func certificateFile(t *testing.T, days ...int) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for i, n := range days {
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), NotAfter: time.Now().AddDate(0, 0, n)}
		der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	path := filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMonitor_TellsTheClusterAndHowLongCertificatesHold(t *testing.T) {
	garbled := filepath.Join(t.TempDir(), "garbled.pem")
	if err := os.WriteFile(garbled, []byte("no certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	renewed := certificateFile(t, 3)
	m, err := monitor.Open(monitor.Config{Cluster: "k3v9", Certificates: []certificates.File{
		{Name: "chain", Path: certificateFile(t, 90, 20, 400)},
		{Name: "authorities", Path: certificateFile(t, 90, -20, 400), Authorities: true},
		{Name: "expired", Path: certificateFile(t, -2)},
		{Name: "renewed", Path: renewed},
		{Name: "garbled", Path: garbled},
		{Name: "missing", Path: filepath.Join(t.TempDir(), "none")},
		{Name: "not-named"},
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	told := func() map[string]float64 {
		families, err := m.Registry().Gather()
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]float64{}
		for _, family := range families {
			for _, one := range family.GetMetric() {
				for _, l := range one.GetLabel() {
					if name := family.GetName(); name == "taskledger_certificate_days_left" || name == "taskledger_cluster_info" {
						all[l.GetValue()] = one.GetGauge().GetValue()
					}
				}
			}
		}
		return all
	}
	want := map[string]float64{"k3v9": 1, "chain": 20, "authorities": 400, "expired": -2, "renewed": 3, "garbled": 0, "missing": 0}
	check := func() {
		t.Helper()
		got := told()
		for name, days := range want {
			if n, is := got[name]; !is || n < days-0.1 || n > days+0.1 {
				t.Errorf("of %s it is said %v, %t, want %v", name, n, is, days)
			}
		}
		if len(got) != len(want) {
			t.Errorf("it is said %v, want %v", got, want)
		}
	}
	check()
	text, err := os.ReadFile(certificateFile(t, 60))
	if err == nil {
		err = os.WriteFile(renewed, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	want["renewed"] = 60
	check()
}
