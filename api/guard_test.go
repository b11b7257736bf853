package api_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"taskledger/api"
)

// What names no path is refused as what names no route is, and not answered by net/http itself.
func TestRequest_OfNoPathIsAProblem(t *testing.T) {
	s, _ := serve(t, nil)
	for _, line := range []string{"OPTIONS *", "CONNECT localhost:1", "GET http://localhost"} {
		c := s.dial(t)
		if _, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\n\r\n", line); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if resp.Body.Close(); resp.StatusCode != 404 || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s, %v", line, resp.Status, resp.Header)
		}
	}
}

// A page in a browser can do nothing, whether it is of another origin or has made its own name lead here.
func TestRequest_OfAPageOfElsewhereIsRefused(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) { c.Hosts = []string{"tasks.example"} })
	host := strings.TrimPrefix(s.url, "http://")
	_, port, err := net.SplitHostPort(host)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		header []string
		status int
	}{
		{nil, 200},
		{[]string{"Origin", s.url}, 200},
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", "https://" + host}, 403},
		{[]string{"Origin", "http://127.0.0.1:1"}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-site"}, 403},
		{[]string{"Sec-Fetch-Site", "same-origin", "Origin", s.url}, 200},
		{[]string{"Host", "evil.example:" + port}, 403},
		{[]string{"Host", "evil.example:" + port, "Origin", "http://evil.example:" + port}, 403},
		{[]string{"Host", "127.0.0.1.evil.example"}, 403},
		{[]string{"Host", "tasks.example"}, 200},
		{[]string{"Host", "TASKS.example:443"}, 200},
		{[]string{"Host", "localhost:" + port}, 200},
		{[]string{"Host", "[::1]:" + port}, 200},
	} {
		for _, path := range []string{"/v1/tasks", "/v1/health"} {
			if got := s.send("admin", "GET", path, nil, c.header...); got.status != c.status {
				t.Errorf("%s with %q: %d, want %d", path, c.header, got.status, c.status)
			}
		}
	}
	got := s.send("", "GET", "/v1/tasks", nil)
	if s.want(got, 401, "unauthorized").header.Get("WWW-Authenticate") == "" {
		t.Error("no WWW-Authenticate")
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options":  "nosniff",
		"Cache-Control":           "no-store",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q", name, got.header.Get(name))
		}
	}
	for _, basic := range []string{"admin", "wrong"} {
		status := map[string]int{"admin": 200, "wrong": 401}[basic]
		url := strings.Replace(s.url, "://", "://x:"+basic+"@", 1) + "/v1/tasks"
		r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != status {
			t.Errorf("password %s: %d", basic, resp.StatusCode)
		}
	}
}

// A browser sends the cookie of a session with whatever form a page sends, so a change by a cookie has to tell its
// page. Who shows a token has chosen to send it.
func TestRequest_ByACookieAloneTellsItsPageToChangeAnything(t *testing.T) {
	s, _ := serve(t, pages)
	cookie := []string{"Cookie", "session=operator"}
	for _, c := range []struct {
		what, token string
		header      []string
		status      int
	}{
		{"a cookie", "", cookie, 403},
		{"a cookie of no session", "", []string{"Cookie", "session="}, 401},
		{"no cookie", "", nil, 401},
		{"a cookie and the origin", "", append(cookie, "Origin", s.url), 303},
		{"a cookie and the site", "", append(cookie, "Sec-Fetch-Site", "same-origin"), 303},
		{"a cookie and an address that was typed", "", append(cookie, "Sec-Fetch-Site", "none"), 303},
		{"a cookie and both", "", append(cookie, "Sec-Fetch-Site", "same-origin", "Origin", s.url), 303},
		{"a cookie and another origin", "", append(cookie, "Origin", "https://evil.example"), 403},
		{"a cookie and another site", "", append(cookie, "Sec-Fetch-Site", "cross-site"), 403},
		{"a cookie and the page before", "", append(cookie, "Referer", s.url+"/pages/text"), 403},
		{"a token", "operator", nil, 303},
		{"a token and a cookie", "operator", cookie, 303},
		{"a token of nobody and a cookie", "nobody", cookie, 401},
	} {
		header := append([]string{"Content-Type", formType}, c.header...)
		if got := s.send(c.token, "POST", "/pages/form", "say=a", header...); got.status != c.status {
			t.Errorf("%s: %d, want %d: %s", c.what, got.status, c.status, got.text)
		}
	}
	s.want(s.send("", "POST", "/pages/form", "say=a", append(cookie, "Content-Type", formType)...), 403, "Sec-Fetch-Site")
	s.want(s.send("", "GET", "/pages/text", nil, cookie...), 200, "<p>")
	s.want(s.send("", "HEAD", "/pages/text", nil, cookie...), 200, "")
}

// Over TLS the page of the server itself is one of its origin, and one that came without TLS is not.
func TestRequest_OverTLSKnowsItsOrigin(t *testing.T) {
	s, _ := serve(t, nil)
	tls := httptest.NewTLSServer(s.api)
	defer tls.Close()
	for origin, want := range map[string]int{tls.URL: 200, strings.Replace(tls.URL, "https", "http", 1): 403} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", tls.URL+"/v1/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		resp, err := tls.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != want || resp.Header.Get("Strict-Transport-Security") == "" {
			t.Errorf("origin %s: %d, %v", origin, resp.StatusCode, resp.Header)
		}
	}
}
