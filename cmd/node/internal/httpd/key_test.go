package httpd_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/httpd"
)

func TestOpen_WarnsOfAKeyThatOthersCanRead(t *testing.T) {
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o660: true, 0o602: true} {
		path := filepath.Join(t.TempDir(), "key.pem")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		httpd.WarnOfKey(path, slog.New(slog.NewTextHandler(&log, nil)))
		if got := strings.Contains(log.String(), "private key"); got != warns {
			t.Errorf("mode %s: warned %t: %s", mode, got, log.String())
		}
	}
}
