package ui_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/ui"
)

// Who opens a page without a session logs in, and is led to that page.
func TestLogin_LeadsToThePageThatWasAskedFor(t *testing.T) {
	s := serve(t)
	to := s.want(s.get("", "/ui/tasks?status=FAILURE"), 303).header.Get("Location")
	if to != "/ui/login?next=%2Fui%2Ftasks%3Fstatus%3DFAILURE" {
		t.Fatal(to)
	}
	s.want(s.get("", to), 200, `name="next" value="/ui/tasks?status=FAILURE"`)
	form := url.Values{"token": {"viewer"}, "next": {"/ui/tasks?status=FAILURE"}}
	got := s.want(s.send("", "POST", "/ui/login", form), 303)
	if to := got.header.Get("Location"); to != form.Get("next") {
		t.Error(to)
	}
	set := got.header.Get("Set-Cookie")
	for _, part := range []string{"taskledger-session", "Path=/ui;", "HttpOnly", "SameSite=Lax"} {
		if !strings.Contains(set+";", part) {
			t.Errorf("%s: no %s", set, part)
		}
	}
	if strings.Contains(set, "Secure") || strings.Contains(set, "viewer") {
		t.Error(set)
	}
	s.want(s.get("", to, "Cookie", cookieOf(got)), 200)
	s.want(s.get("", "/ui/", "Cookie", cookieOf(got)), 200, "vera, viewer")
}

func TestLogin_LeadsNowhereElse(t *testing.T) {
	s := serve(t)
	for _, next := range []string{
		"", "https://evil.example/ui/", "//evil.example/ui/", `/\evil.example/ui/`, "/v1/tasks", "javascript:alert(1)", "/ui", "%zz",
	} {
		got := s.want(s.send("", "POST", "/ui/login", url.Values{"token": {"viewer"}, "next": {next}}), 303)
		if to := got.header.Get("Location"); to != "/ui/" {
			t.Errorf("%q leads to %q", next, to)
		}
	}
}

func TestLogin_WithASecretThatNobodyHasSaysSo(t *testing.T) {
	s := serve(t)
	for _, secret := range []string{"", "wrong", strings.Repeat("x", 8<<10)} {
		got := s.want(s.send("", "POST", "/ui/login", url.Values{"token": {secret}}), 401, "No token has this secret")
		if got.header.Get("Set-Cookie") != "" {
			t.Error("a cookie was set")
		}
		s.wantNot(got, "xxx")
	}
	s.want(s.send("", "POST", "/ui/login", url.Values{"token": {strings.Repeat("x", 17<<10)}}), 413, "16384 bytes")
}

// A cookie is for pages, on the port that has set it, once, and until the end of its session.
func TestSession_CountsBelowItsPathAloneAndUntilItsEnd(t *testing.T) {
	now := &clock{time.Now()}
	s := serve(t, func(_ *api.Config, u *ui.Config) { u.Now = now.now })
	cookie := s.login("operator")
	s.want(s.get("", "/ui/", cookie...), 200, "olga, operator")
	s.want(s.get("", "/v1/tasks", cookie...), 401)
	s.want(s.get("viewer", "/ui/", cookie...), 200, "vera, viewer")
	name, value, _ := strings.Cut(cookie[1], "=")
	for _, forged := range []string{
		name + "=x", name + "=", "other=" + value, name + "=" + value + "; " + name + "=" + value, name + "-7400=" + value,
		"__Secure-" + name + "=" + value,
	} {
		s.want(s.get("", "/ui/tasks", "Cookie", forged), 303)
	}
	got := s.want(s.send("", "POST", "/ui/logout", nil, append(cookie, ours...)...), 303)
	if set := got.header.Get("Set-Cookie"); !strings.Contains(set, "Max-Age=0") {
		t.Error(set)
	}
	s.want(s.get("", "/ui/tasks", cookie...), 303)
	again := s.login("operator")
	now.at = now.at.Add(8 * time.Hour)
	s.want(s.get("", "/ui/tasks", again...), 303)
	s.want(s.send("", "POST", "/ui/logout", nil, again...), 401, "Log in")
}

func TestSession_BehindTLSIsSentByTLSAlone(t *testing.T) {
	s := serve(t, func(a *api.Config, u *ui.Config) {
		a.Origins = []string{"https://tasks.example"}
		u.Origins = a.Origins
	})
	form := url.Values{"token": {"viewer"}}
	for name, change := range map[string]func(*http.Request){
		"TLS":     func(r *http.Request) { r.TLS = &tls.ConnectionState{} },
		"a proxy": func(r *http.Request) { r.Host = "tasks.example" },
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/ui/login", strings.NewReader(form.Encode()))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		change(r)
		w := httptest.NewRecorder()
		s.api.ServeHTTP(w, r)
		set := w.Header().Get("Set-Cookie")
		if w.Code != 303 || !strings.HasPrefix(set, "__Secure-taskledger-session") || !strings.Contains(set, "; Secure") {
			t.Errorf("%s: %d %s", name, w.Code, set)
		}
	}
}

// A link begins a session once, by its button: a preview of it does not.
func TestLink_IsSpentByItsButton(t *testing.T) {
	now := &clock{time.Now()}
	s := serve(t, func(_ *api.Config, u *ui.Config) { u.Now = now.now })
	link := func() string {
		got := s.want(s.send("admin", "POST", "/ui/links", nil), 200, `"expires"`)
		_, code, found := strings.Cut(got.text, "link=")
		if !found {
			t.Fatal(got.text)
		}
		code, _, _ = strings.Cut(code, `"`)
		return code
	}
	code := link()
	for range 2 {
		s.want(s.get("", "/ui/login?link="+code), 200, "begins one session, once", code)
	}
	got := s.want(s.send("", "POST", "/ui/login", url.Values{"link": {code}}), 303)
	s.want(s.get("", "/ui/", "Cookie", cookieOf(got)), 200, "ada, admin")
	s.want(s.send("", "POST", "/ui/login", url.Values{"link": {code}}), 401, "has been used, or is too old")
	s.want(s.get("", "/ui/login?link="+code), 200, "has been used, or is too old")
	code = link()
	now.at = now.at.Add(10 * time.Minute)
	s.want(s.send("", "POST", "/ui/login", url.Values{"link": {code}}), 401, "has been used, or is too old")
	s.want(s.send("", "POST", "/ui/links", nil, append(s.login("admin"), ours...)...), 403, "Bearer")
}

func TestZone_IsKeptForThoseWithoutJavaScript(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	at := s.want(s.get("viewer", "/ui/tasks/a"), 200, " UTC</time>")
	_, exact, _ := strings.Cut(at.text, `<time datetime="`)
	exact, _, _ = strings.Cut(exact, `"`)
	when, err := time.Parse(time.RFC3339, exact)
	if err != nil || len(exact) != len("2026-11-29T09:00:00.000Z") {
		t.Fatalf("%s: %v", exact, err)
	}
	got := s.want(s.send("", "POST", "/ui/zone", url.Values{"zone": {"Asia/Kolkata"}, "next": {"/ui/tasks/a"}}), 303)
	zone, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	s.want(s.get("viewer", "/ui/tasks/a", "Cookie", cookieOf(got)), 200, when.In(zone).Format("2006-01-02 15:04:05 MST"), exact)
	for _, wrong := range []string{"Nowhere/Land", "../etc/passwd", "Local"} {
		s.want(s.send("", "POST", "/ui/zone", url.Values{"zone": {wrong}}), 400, "want a name such as Europe/Berlin")
	}
}
