package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// The user of a machine is let in by a link, which no log of the node holds.
func TestUI_PrintsALinkThatLogsInOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serveFiles(t, dir, "--api", "127.0.0.1:0")
	printed := strings.Join(n.printed, "\n")
	if !strings.Contains(printed, "  dashboard  http://127.0.0.1:") || strings.Contains(printed, "link=") {
		t.Errorf("printed where no terminal is: %s", printed)
	}
	var told struct{ Dashboard, Link string }
	if err := json.Unmarshal([]byte(must(t, dir, "ui", "-o", "json")), &told); err != nil {
		t.Fatal(err)
	}
	if text := must(t, dir, "ui"); !strings.HasPrefix(text, told.Dashboard+"login?link=") || !strings.Contains(text, "for one login, until ") {
		t.Error(text)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	defer browser.CloseIdleConnections()
	read := func(resp *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if page := read(browser.Get(told.Link)); !strings.Contains(page, "begins one session, once") {
		t.Errorf("%s", page)
	}
	at, err := url.Parse(told.Link)
	if err != nil {
		t.Fatal(err)
	}
	spend := func() (*http.Response, error) {
		form := url.Values{"link": {at.Query().Get("link")}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, told.Dashboard+"login", strings.NewReader(form.Encode()))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", at.Scheme+"://"+at.Host) // as a browser does
		return browser.Do(r)
	}
	if page := read(spend()); !strings.Contains(page, "local, admin") {
		t.Errorf("%s", page)
	}
	if page := read(spend()); !strings.Contains(page, "has been used") {
		t.Errorf("%s", page)
	}
	n.stop(t)
	if r := run(t, dir, "ui"); r.code != 4 || !strings.Contains(r.err, "no node runs on ") {
		t.Errorf("code %d: %s", r.code, r.err)
	}
}
