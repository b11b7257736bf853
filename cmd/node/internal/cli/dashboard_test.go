package cli

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/httpd"
	"taskledger/internal/advertised"
)

// place is a data directory of a node.
type place string

func (p place) Dir() string                     { return string(p) }
func (p place) SocketPath(name string) string   { return filepath.Join(string(p), name) }
func (p place) Advertise(*advertised.API) error { return nil }
func (p place) Close() error                    { return nil }

// A log is read by others than whoever has started the node, and a terminal is not: /dev/null stands for one.
func TestServe_PrintsALoginLinkOnATerminalAlone(t *testing.T) {
	web, err := httpd.Open(httpd.Options{Address: "127.0.0.1:0"}, place(t.TempDir()), 10, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	for path, terminal := range map[string]bool{os.DevNull: true, filepath.Join(t.TempDir(), "log"): false} {
		out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		a := &app{Program: Program{Out: out, Err: io.Discard}}
		a.inBackground()
		told := a.dashboard(web)
		a.flush()
		if link := strings.HasPrefix(told, web.DashboardURL()+"login?link="); link != terminal ||
			link != strings.HasSuffix(told, " (for one login, within ten minutes)") || !link && told != web.DashboardURL() {
			t.Errorf("on %s it prints %q", path, told)
		}
	}
}
