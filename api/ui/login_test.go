package ui_test

import (
	"context"
	"crypto/tls"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/measured"
	"taskledger/api/problem"
	"taskledger/api/ui"
)

// Whoever opens a page without a session logs in, and is led to that page.
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
		got := s.want(s.send("", "POST", "/ui/login", url.Values{"token": {secret}}), 401, "This token is not known")
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

// asks sends a request that a test changes, and returns the answer.
func (s *server) asks(method, path string, form url.Values, change func(*http.Request)) answer {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Host = "localhost"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	change(r)
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// Nodes in containers all listen on one port, and are asked by others of one host: a browser has a session at each.
func TestSession_HasThePortThatTheBrowserAsks(t *testing.T) {
	s := serve(t)
	names := map[string]string{
		"localhost:7401": "taskledger-session-7401=",
		"[::1]:7402":     "taskledger-session-7402=",
		"localhost":      "taskledger-session-7400=",
		"localhost:":     "taskledger-session-7400=",
	}
	for host, name := range names {
		mapped := func(r *http.Request) {
			r.Host = host
			*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{Port: 7400}))
		}
		got := s.want(s.asks("POST", "/ui/login", url.Values{"token": {"viewer"}}, mapped), 303)
		if set := got.header.Get("Set-Cookie"); !strings.HasPrefix(set, name) {
			t.Errorf("%s: %s", host, set)
		}
		s.want(s.asks("GET", "/ui/", nil, func(r *http.Request) {
			mapped(r)
			r.Header.Set("Cookie", cookieOf(got)+"; taskledger-session-7403=other")
		}), 200, "vera, viewer")
	}
}

// A proxy that asks under a name of its own passes the origin of the form alone: the session has TLS by that.
func TestSession_BehindAProxyWithANameOfItsOwnIsSentByTLSAlone(t *testing.T) {
	s := serve(t, func(a *api.Config, u *ui.Config) {
		a.Origins = []string{"https://tasks.example"}
		u.Origins = a.Origins
	})
	from := func(origin, cookie string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Origin", origin)
			r.Header.Set("Cookie", cookie)
			if origin == "" {
				r.Header.Del("Origin")
			}
		}
	}
	form := url.Values{"token": {"viewer"}}
	got := s.want(s.asks("POST", "/ui/login", form, from("https://tasks.example", "")), 303)
	set := got.header.Get("Set-Cookie")
	if !strings.HasPrefix(set, "__Secure-taskledger-session=") || !strings.Contains(set, "; Secure") {
		t.Error(set)
	}
	s.want(s.asks("GET", "/ui/", nil, from("", cookieOf(got))), 200, "vera, viewer")
	s.want(s.asks("GET", "/ui/tasks", nil, from("", cookieOf(got)+"; "+cookieOf(got))), 303)
	s.want(s.asks("POST", "/ui/logout", nil, from("https://tasks.example", cookieOf(got))), 303)
	s.want(s.asks("GET", "/ui/tasks", nil, from("", cookieOf(got))), 303)
	straight := s.want(s.asks("POST", "/ui/login", form, from("http://localhost", "")), 303)
	if set := straight.header.Get("Set-Cookie"); !strings.HasPrefix(set, "taskledger-session=") {
		t.Error(set)
	}
	s.want(s.asks("GET", "/ui/", nil, from("", cookieOf(straight))), 200, "vera, viewer")
}

// A page in a tab that nobody uses asks for its changes, and the session ends all the same.
func TestSession_IsNotUsedByPagesThatRefreshThemselves(t *testing.T) {
	now := &clock{time.Now()}
	s := serve(t, func(_ *api.Config, u *ui.Config) { u.Now = now.now })
	cookie := s.login("operator")
	refresh := append([]string{"HX-Request", "true", "HX-Source", "div#live"}, cookie...)
	slide := append([]string{"HX-Request", "true", "HX-Source", "input#slide"}, cookie...)
	now.at = now.at.Add(7 * time.Hour)
	s.want(s.get("", "/ui/tasks", refresh...), 200, "olga")
	s.want(s.get("", "/ui/tasks", slide...), 200, "olga")
	now.at = now.at.Add(7 * time.Hour)
	s.want(s.get("", "/ui/tasks", refresh...), 200, "olga")
	now.at = now.at.Add(time.Hour)
	s.want(s.get("", "/ui/tasks", refresh...), 303)
	s.want(s.get("", "/ui/tasks", cookie...), 303)
}

// watcher keeps why requests were refused.
type watcher struct{ refused []problem.Type }

// Answered implements measured.Watcher.
func (w *watcher) Answered(r measured.Request) { w.refused = append(w.refused, r.Refused) }

// Guesses at tokens are counted like those at the API, and visits without a session are none.
func TestLogin_GuessesAreCountedAsRefused(t *testing.T) {
	told := &watcher{}
	s := serve(t, func(a *api.Config, _ *ui.Config) { a.Watch = told })
	s.send("", "POST", "/ui/login", url.Values{"token": {"guess"}})
	s.send("", "POST", "/ui/login", url.Values{"link": {"guess"}})
	s.get("guess", "/ui/tasks")
	s.get("", "/ui/tasks")
	s.get("", "/ui/tasks", "Cookie", "taskledger-session=old")
	s.send("", "POST", "/ui/login", url.Values{"token": {"viewer"}})
	guess := problem.Unauthorized
	if want := []problem.Type{guess, guess, guess, "", "", ""}; !slices.Equal(told.refused, want) {
		t.Errorf("%q, want %q", told.refused, want)
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

// Whoever chooses a zone on the answer to a form is led to a page that there is: the address of the form takes forms
// alone.
func TestZone_IsChosenOnAnyAnswerToAForm(t *testing.T) {
	s := serve(t)
	s.begin("sleep", "a", `{"duration":"1h"}`)
	pages := 0
	for _, r := range s.routes() {
		if r.Method != http.MethodPost {
			continue
		}
		name := r.Method + " " + r.Pattern
		forms := []url.Values{nil, {"token": {"wrong"}}, {"name": {"a", "b"}, "verb": {"pause"}}}
		if form := formOf(name, "a"); form != nil {
			forms = append(forms, form)
		}
		for _, form := range forms {
			got := s.send("admin", r.Method, pathOf(r, "a"), form)
			i := strings.LastIndex(got.text, `name="next" value="`) // the last one stands at the end of the page
			if i < 0 {
				continue
			}
			pages++
			next := html.UnescapeString(between(got.text[i:], `name="next" value="`))
			chosen := s.want(s.send("admin", "POST", "/ui/zone", url.Values{"zone": {"UTC"}, "next": {next}}), 303)
			to := chosen.header.Get("Location")
			if led := s.get("admin", to); led.status != 200 {
				t.Errorf("%s with %v leads to %s: %d", name, form, to, led.status)
			}
		}
	}
	if pages < 10 {
		t.Errorf("%d answers to forms are pages", pages)
	}
}
