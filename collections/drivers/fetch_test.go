//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package drivers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/collections"
	"taskledger/internal/testkit"
)

func TestFetch_BringsFilesAndMakesTheirFolders(t *testing.T) {
	f := newFixture(t)
	f.writeSource("orders.csv", "a,b\n")
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "c,d\n") })
	line := f.does(path("orders.csv", "shop/new/orders.csv"))
	if !strings.HasPrefix(line, "INFO shop/new/orders.csv: 4 bytes, in ") {
		t.Errorf("log %q", line)
	}
	f.does(url(at, "prices.csv"))
	if a, b := f.target("shop/new/orders.csv"), f.target("prices.csv"); a != "a,b\n" || b != "c,d\n" {
		t.Errorf("fetched %q and %q", a, b)
	}
	f.wantAlone("shop/new", "orders.csv")
	f.wantAlone(".", "prices.csv", "shop")
}

func TestFetch_ReplacesWhatHasChangedAndNothingElse(t *testing.T) {
	text := "one"
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
	for name, d := range map[string]collections.Driver{"path": path("from", "to"), "url": url(at, "to")} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			set := func(to string) {
				text = to
				f.writeSource("from", to)
			}
			stat := func() os.FileInfo {
				info, err := os.Stat(filepath.Join(f.Root, "to"))
				must(t, err)
				return info
			}
			set("one")
			f.does(d)
			first := stat()
			for range 2 { // by the same process, and by another one
				if line := f.does(d); !strings.HasPrefix(line, "INFO to: unchanged, in ") || !os.SameFile(first, stat()) {
					t.Errorf("log %q, replaced: %t", line, !os.SameFile(first, stat()))
				}
				f.behavior = nil
			}
			for _, next := range []string{"two", "three", ""} {
				set(next)
				if f.does(d); f.target("to") != next {
					t.Errorf("fetched %q, want %q", f.target("to"), next)
				}
			}
			must(t, os.WriteFile(filepath.Join(f.Root, "to"), []byte("by hand"), 0o600))
			if f.does(d); f.target("to") != "" {
				t.Errorf("what was written by hand stays: %q", f.target("to"))
			}
			f.wantAlone(".", "to")
		})
	}
}

// A server is believed that nothing has changed only about the file that this process brought from this URL.
func TestFetch_AsksAServerForWhatHasChanged(t *testing.T) {
	etag, modified, bodies := "", time.Time{}, 0
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		w.Header().Set("ETag", etag)
		if etag == "" {
			w.Header().Del("ETag")
		}
		if r.Header.Get("If-None-Match") == "" && r.Header.Get("If-Modified-Since") == "" {
			bodies++
		}
		http.ServeContent(w, r, "", modified, strings.NewReader("text"))
	})
	hour := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		etag     string
		modified time.Time
		url      string
		asks     bool
	}{
		"etag":            {`"1"`, time.Time{}, at, true},
		"time":            {"", hour, at, true},
		"both":            {`"1"`, hour, at, true},
		"neither":         {"", time.Time{}, at, false},
		"a time of now":   {"", time.Now(), at, false},
		"after redirects": {`"1"`, time.Time{}, at + "/moved", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			etag, modified, bodies = c.etag, c.modified, 0
			wantBodies := func(n int, when string) {
				t.Helper()
				if bodies != n {
					t.Errorf("%s: %d answers in full, want %d", when, bodies, n)
				}
				bodies = 0
			}
			f.does(url(c.url, "to"))
			wantBodies(1, "at first")
			line := f.does(url(c.url, "to"))
			if !strings.HasPrefix(line, "INFO to: unchanged, in ") {
				t.Errorf("log %q", line)
			}
			if c.asks {
				wantBodies(0, "again")
			} else {
				wantBodies(1, "again")
			}
			f.does(url(c.url+"?other", "to"))
			wantBodies(1, "from another URL")
			f.does(url(c.url, "to"))
			wantBodies(1, "after another URL")
			file, later := filepath.Join(f.Root, "to"), time.Now().Add(time.Second) // clocks of files are slow
			must(t, os.WriteFile(file, []byte("hand"), 0o600), os.Chtimes(file, later, later))
			f.does(url(c.url, "to"))
			wantBodies(1, "after a change by hand")
			must(t, os.Remove(filepath.Join(f.Root, "to")))
			f.does(url(c.url, "to"))
			wantBodies(1, "without the file")
			if f.target("to") != "text" {
				t.Errorf("fetched %q", f.target("to"))
			}
		})
	}
}

func TestFetch_ReadsAFileAgainUnlessItsTimeTells(t *testing.T) {
	f := newFixture(t)
	source, hour := filepath.Join(f.Files.Root, "from"), time.Now().Add(-time.Hour)
	set := func(text string, at time.Time) {
		f.writeSource("from", text)
		must(t, os.Chtimes(source, at, at))
	}
	set("one", hour)
	f.does(path("from", "to"))
	set("two", hour) // the same size, and by its time the same
	if f.does(path("from", "to")); f.target("to") != "one" {
		t.Fatalf("%q: the file was read though its time tells that it is the same", f.target("to"))
	}
	now := time.Now()
	set("two", now)
	f.does(path("from", "to"))
	set("six", now) // a time of now does not tell
	if f.does(path("from", "to")); f.target("to") != "six" {
		t.Errorf("fetched %q", f.target("to"))
	}
}

func TestFetch_ANodeWithoutADirectoryIsNamedWithTheFlag(t *testing.T) {
	f := newFixture(t)
	f.Root = ""
	f.fails(url("http://127.0.0.1:1/", "to"), builtin.CodeRefused, `node "b"`, "--sync-root")
	f = newFixture(t)
	f.Files.Root = ""
	f.fails(path("from", "to"), builtin.CodeRefused, `node "b"`, "--checksum-root")
	f.wantAlone(".")
}

func TestFetch_WritesNothingOutsideOfTheRoot(t *testing.T) {
	f := newFixture(t)
	f.writeSource("from", "text")
	outside := t.TempDir()
	must(t,
		os.Symlink(outside, filepath.Join(f.Root, "out")),
		os.Symlink(filepath.Join(outside, "file"), filepath.Join(f.Root, "link")),
		os.Mkdir(filepath.Join(f.Root, "dir"), 0o700),
		os.WriteFile(filepath.Join(f.Root, "file"), nil, 0o600),
		syscall.Mkfifo(filepath.Join(f.Root, "pipe"), 0o600),
	)
	for to, code := range map[string]string{
		"":                          builtin.CodeInvalid,
		".":                         builtin.CodeInvalid,
		"..":                        builtin.CodeInvalid,
		"../to":                     builtin.CodeInvalid,
		"dir/../../to":              builtin.CodeInvalid,
		"dir/../to":                 builtin.CodeInvalid,
		outside + "/to":             builtin.CodeInvalid,
		`..\to`:                     builtin.CodeInvalid,
		"zero\x00":                  builtin.CodeInvalid,
		"out/to":                    builtin.CodeRefused,
		"out/new/to":                builtin.CodeRefused,
		"out":                       builtin.CodeInvalid,
		"link":                      builtin.CodeInvalid,
		"dir":                       builtin.CodeInvalid,
		"pipe":                      builtin.CodeInvalid,
		"file/to":                   builtin.CodeInvalid,
		strings.Repeat("x", 300):    builtin.CodeInvalid,
		".sync-0123-ABC.part":       builtin.CodeInvalid,
		"dir/.sync-0123-ABC.part":   builtin.CodeInvalid,
		"new/" + "../../" + outside: builtin.CodeInvalid,
	} {
		t.Run(to[:min(len(to), 20)], func(t *testing.T) {
			inner := &fixture{T: t, Options: f.Options}
			inner.fails(path("from", to), code)
		})
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v, %v", entries, err)
	}
	f.wantAlone(".", "dir", "file", "link", "out", "pipe")
}

// Whoever may submit would have the keys of the node, or give it others.
func TestFetch_NeitherReadsNorReplacesWhatIsTheNodes(t *testing.T) {
	f := newFixture(t)
	f.writeSource("key", "secret")
	f.writeSource("from", "text")
	data := filepath.Join(f.Root, "data")
	must(t,
		os.MkdirAll(filepath.Join(data, "etcd"), 0o700),
		os.WriteFile(filepath.Join(f.Root, "tokens"), []byte("[]"), 0o600),
		os.Symlink("data", filepath.Join(f.Root, "link")),
	)
	f.Files.Exclude = []string{data, filepath.Join(f.Root, "tokens"), filepath.Join(f.Files.Root, "key")}
	for _, to := range []string{"data/to", "data/etcd/wal", "data/new/to", "link/to", "link/new/to", "tokens"} {
		f.fails(path("from", to), builtin.CodeRefused, "belongs to the node")
	}
	f.fails(path("key", "to"), builtin.CodeRefused, "belongs to the node")
	if f.target("tokens") != "[]" || f.target("data/new/to") != "(none)" {
		t.Error("what is the node's was written")
	}
	f.wantAlone(".", "data", "link", "tokens")
	f.wantAlone("data", "etcd")
}

func TestFetch_RefusesParametersThatNoFileOfCollectionsHas(t *testing.T) {
	f := newFixture(t)
	both := path("from", "to")
	both.URL = "http://127.0.0.1:1/"
	for _, d := range []collections.Driver{both, path("", "to"), path("../from", "to"), url("file:///etc/passwd", "to")} {
		f.fails(d, builtin.CodeInvalid)
	}
	f.fails(path("missing", "to"), builtin.CodeNotFound)
	f.wantAlone(".")
}

func TestFetch_ReachesTheAddressesOfBehaviorHTTP(t *testing.T) {
	f := newFixture(t)
	f.HTTP = builtin.HTTPOptions{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	inner := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the inner server was reached") })
	port := inner[strings.LastIndex(inner, ":"):]
	outer := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/in" {
			http.Redirect(w, r, "http://127.0.0.2"+port, http.StatusFound)
		}
	})
	f.does(url(outer, "to"))
	f.fails(url(outer+"/in", "to"), builtin.CodeRefused, "127.0.0.2")
	f.fails(url("http://127.0.0.2"+port, "to"), builtin.CodeRefused, "127.0.0.2")
	f.fails(url("http://169.254.169.254/", "to"), builtin.CodeRefused, "169.254.169.254")
}

func TestFetch_FailuresOfServersAreThoseOfBehaviorHTTP(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		if _, _ = fmt.Sscanf(r.URL.Path, "/%d", &status); status == 0 {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "cut")
			return
		}
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(status)
	})
	f := newFixture(t)
	f.writeSource("from", "old")
	f.does(path("from", "to"))
	for _, c := range []struct {
		path, code string
		final      bool
		wait       time.Duration
	}{
		{"/404", builtin.CodeStatus, true, 0},
		{"/204", builtin.CodeStatus, true, 0},
		{"/304", builtin.CodeStatus, true, 0}, // nobody asked whether it has changed
		{"/500", builtin.CodeStatus, false, 0},
		{"/503", builtin.CodeStatus, false, 2 * time.Hour},
		{"/cut", builtin.CodeNetwork, false, 0},
	} {
		o, _ := f.run(t.Context(), url(at+c.path, "to"))
		testkit.WantFailure(t, o, c.code, c.final)
		if o.Wait < c.wait {
			t.Errorf("%s: next attempt in %s", c.path, o.Wait)
		}
		if f.target("to") != "old" {
			t.Errorf("%s: the file has %q", c.path, f.target("to"))
		}
	}
	f.wantAlone(".", "to")
}

func TestFetch_AFileBeyondTheLimitIsRefused(t *testing.T) {
	f := newFixture(t)
	f.MaxFileBytes = 1000
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unsaid" {
			w.(http.Flusher).Flush() // without a length
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 1001))
	})
	f.writeSource("most", strings.Repeat("x", 1000))
	f.writeSource("large", strings.Repeat("x", 1001))
	f.does(path("most", "to"))
	for _, d := range []collections.Driver{path("large", "to"), url(at, "to"), url(at+"/unsaid", "to")} {
		f.fails(d, builtin.CodeRefused, "limit of 1000 bytes")
	}
	if n := len(f.target("to")); n != 1000 {
		t.Errorf("the file has %d bytes", n)
	}
	f.wantAlone(".", "to")
}

func TestFetch_ACancelledRunStopsAndLeavesTheOldFile(t *testing.T) {
	f := newFixture(t)
	f.writeSource("from", "old")
	f.does(path("from", "to"))
	cause := errors.New("cancelled by Ada")
	for _, where := range []string{"/header", "/body"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		at := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/body" {
				_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
				w.(http.Flusher).Flush()
			}
			cancel(cause)
			<-r.Context().Done()
		})
		o, _ := f.run(ctx, url(at+where, "to"))
		if e := testkit.WantFailure(t, o, "failed", false); e.Message != cause.Error() {
			t.Errorf("%s: message %q, want the cause", where, e.Message)
		}
		if f.target("to") != "old" {
			t.Errorf("%s: the file has %q", where, f.target("to"))
		}
	}
	f.wantAlone(".", "to")
}

// Each answer is one letter, over and over.
func TestFetch_RunsOfOneTargetAtOnceLeaveAWholeFile(t *testing.T) {
	t.Parallel()
	const size = 200_000
	var letter atomic.Int64
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		part := strings.Repeat(string(rune('a'+letter.Add(1)%26)), size/10)
		for range 10 {
			_, _ = io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	})
	first := newFixture(t)
	second := &fixture{T: t, Options: first.Options} // another node, with the directory that they share
	first.open()
	second.open()
	whole := func() {
		got := first.target("to")
		if got != "(none)" && (len(got) != size || strings.Trim(got, got[:1]) != "") {
			t.Errorf("the file has %d bytes, and not of one answer", len(got))
		}
	}
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for range 10 {
				f := first
				if i%2 > 0 {
					f = second
				}
				if o, _ := f.run(t.Context(), url(at, "to")); o.Err != nil {
					t.Errorf("failed: %+v", o.Err)
				}
				whole()
			}
		})
	}
	running.Wait()
	first.wantAlone(".", "to")
}
