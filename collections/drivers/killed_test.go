//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package drivers_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"taskledger/behaviors/builtin"
	"taskledger/collections/drivers"
)

// A child that fetches is this test in a process of its own, which these variables tell what from and where to.
const (
	childURL  = "TASKLEDGER_TEST_FETCH_URL"
	childRoot = "TASKLEDGER_TEST_FETCH_ROOT"
)

func TestFetch_AKilledRunLeavesTheOldFileAndTheNextOneClearsUp(t *testing.T) {
	if at := os.Getenv(childURL); at != "" {
		f := &fixture{T: t, Options: drivers.Options{
			HTTP: builtin.HTTPOptions{AllowPrivate: true},
			Root: os.Getenv(childRoot),
		}}
		f.does(url(at, "shop/to"))
		return
	}
	stuck := make(chan struct{}, 2)
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stuck" {
			_, _ = io.WriteString(w, strings.Repeat("x", 32<<20)) // more than waits between the two: the child writes it
			stuck <- struct{}{}
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, r.URL.Path)
	})
	f := newFixture(t)
	f.does(url(at+"/old", "shop/to"))
	start := func() *exec.Cmd {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), childURL+"="+at+"/stuck", childRoot+"="+f.Root)
		must(t, child.Start())
		<-stuck
		return child
	}
	kill := func(child *exec.Cmd) {
		must(t, child.Process.Kill())
		_ = child.Wait() // it was killed
	}
	parts := func() (n int) {
		entries, err := os.ReadDir(f.Root + "/shop")
		must(t, err)
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".part") {
				n++
			}
		}
		return n
	}
	killed, running := start(), start()
	kill(killed)
	if f.target("shop/to") != "/old" || parts() != 2 {
		t.Fatalf("the file has %q, beside %d others", f.target("shop/to"), parts())
	}
	f.does(url(at+"/other", "shop/other"))
	if parts() != 2 {
		t.Errorf("%d temporary files after a run of another target, want 2", parts())
	}
	f.does(url(at+"/new", "shop/to"))
	if f.target("shop/to") != "/new" || parts() != 1 {
		t.Errorf("the file has %q, beside %d others: want that of the run that goes on", f.target("shop/to"), parts())
	}
	kill(running)
	f.does(url(at+"/new", "shop/to"))
	f.wantAlone("shop", "other", "to")
}
