package builtin_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"taskledger/behaviors/builtin"
	"taskledger/events"
	"taskledger/task"
)

// FuzzParameters plans any parameters with every built-in behavior: what is accepted is written and accepted again as
// the same, and is what the behavior can work with.
func FuzzParameters(f *testing.F) {
	for _, text := range []string{
		"", `{}`, `null`, `{"duration":"1m30s"}`, `{"duration":"-1s"}`, `{"path":"a/b"}`, `{"path":"../b"}`,
		`{"program":"date","args":["-u"],"env":{"A":"b"},"dir":"/tmp","timeout":"1s"}`,
		`{"program":"date","env":{"LD_PRELOAD":"x"}}`,
		`{"method":"POST","url":"https://example.org/x?y","headers":{"X-A":"b"},"body":"c","expect_status":[204],` +
			`"timeout":"30s"}`,
		`{"url":"http://user:secret@[::1%25eth0]:80/"}`, strings.Repeat("[", 10_000),
	} {
		f.Add([]byte(text))
	}
	all := builtin.Behaviors(builtin.Options{
		Exec:     builtin.ExecOptions{Allow: []string{"date"}},
		Checksum: builtin.ChecksumOptions{Root: "/"},
	})
	now := time.Unix(1_800_000_000, 0)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, b := range all {
			plan, err := b.Plan(text, now)
			if err != nil {
				continue
			}
			if len(text) > events.MaxPayloadBytes || len(text) > 0 && !json.Valid(text) ||
				plan.NotBefore.Before(now) && !plan.NotBefore.IsZero() {
				t.Errorf("%s: planned %+v of %d bytes", b.ID(), plan, len(text))
			}
			acceptedAgain(t, b, text, now)
		}
	})
}

// acceptedAgain reads accepted parameters by themselves.
func acceptedAgain(t *testing.T, b task.Behavior, text []byte, now time.Time) {
	t.Helper()
	switch b.ID() {
	case "http":
		p := reread[builtin.HTTPParams](t, b, text, now)
		if _, err := http.NewRequest(p.Method, p.URL, strings.NewReader(p.Body)); err != nil {
			t.Errorf("http: accepted %q: %v", text, err)
		}
	case "exec":
		p := reread[builtin.ExecParams](t, b, text, now)
		if p.Dir != "" && !filepath.IsAbs(p.Dir) || p.Env["PATH"] != "" {
			t.Errorf("exec: accepted %+v", p)
		}
	case "checksum":
		if p := reread[builtin.ChecksumParams](t, b, text, now); !filepath.IsLocal(p.Path) {
			t.Errorf("checksum: accepted %q", p.Path)
		}
	case "sleep":
		if p := reread[builtin.SleepParams](t, b, text, now); p.Duration < 0 {
			t.Errorf("sleep: accepted %s", p.Duration)
		}
	}
}

func reread[P any](t *testing.T, b task.Behavior, text []byte, now time.Time) (p P) {
	t.Helper()
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatalf("%s: accepted %q: %v", b.ID(), text, err)
	}
	written, err := json.Marshal(p)
	if err != nil {
		t.Fatalf("%s: %v", b.ID(), err)
	}
	var again P
	if err := json.Unmarshal(written, &again); err != nil || !reflect.DeepEqual(tidy(t, again), tidy(t, p)) {
		t.Fatalf("%s: %q is written as %q and read as %+v, %v; want %+v", b.ID(), text, written, again, err, p)
	}
	if len(written) <= events.MaxPayloadBytes {
		if _, err := b.Plan(written, now); err != nil {
			t.Fatalf("%s: %q is written as %q and refused: %v", b.ID(), text, written, err)
		}
	}
	return p
}

// tidy makes an empty list or map the same as none: omitempty writes neither.
func tidy(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FuzzResponse reads what servers and programs say: any Retry-After is 0 to a day, any excerpt fits and ends between
// runes.
func FuzzResponse(f *testing.F) {
	f.Add("120", []byte("plain"), 10)
	f.Add("Fri, 31 Dec 1999 23:59:59 GMT", []byte("\x00\xff\"\\\u2028<"), 7)
	f.Add("-1", []byte("äöü€😀"), 3)
	f.Add("4294967296", []byte{}, 0)
	f.Fuzz(func(t *testing.T, header string, text []byte, limit int) {
		wait, ok := builtin.RetryAfterHeader(header, time.Unix(1_800_000_000, 0))
		if wait < 0 || wait > 24*time.Hour || !ok && wait != 0 {
			t.Errorf("Retry-After %q: %s, %t", header, wait, ok)
		}
		limit &= 0xffff
		first, last := builtin.FirstJSON(text, limit), builtin.LastJSON(text, limit)
		if !strings.HasPrefix(string(text), string(first)) || !strings.HasSuffix(string(text), string(last)) {
			t.Errorf("of %q the ends are %q and %q", text, first, last)
		}
		for _, kept := range [][]byte{first, last} {
			written, err := json.Marshal(string(kept))
			if err != nil || len(written)-len(`""`) > limit {
				t.Errorf("%q takes %d bytes, %v; want %d at most", kept, len(written)-2, err, limit)
			}
			if utf8.Valid(text) && !utf8.Valid(kept) {
				t.Errorf("%q is cut within a rune: %q", text, kept)
			}
		}
	})
}
