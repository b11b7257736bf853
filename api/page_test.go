package api_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
)

var policy = &api.PagePolicy{
	Content:  "default-src 'self'",
	Referrer: "same-origin",
	Cache:    "private, no-cache",
}

// pages adds a front of pages: one shows a text, and one takes a form. A session is the cookie with the secret.
func pages(c *api.Config) {
	c.ErrorFormats = append(c.ErrorFormats, api.ErrorFormat{
		Path:  "/pages/",
		Type:  "text/html",
		Out:   "",
		Pages: true,
		Page:  policy,
		Refuse: func(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
			w.WriteHeader(p.Status)
			_, _ = io.WriteString(w, "no "+r.URL.Path+": "+p.Error())
		},
		Session: func(r *http.Request) string {
			if cookie, err := r.Cookie("session"); err == nil {
				return cookie.Value
			}
			return ""
		},
	})
	c.Routes = append(c.Routes, api.Route{
		Method:  "GET",
		Pattern: "/pages/text",
		Summary: "Show a text",
		Role:    token.Viewer,
		Page:    policy,
		Query:   []api.Param{{Name: "say"}, {Name: "column"}},
		Many:    []string{"column"},
		Serve: func(c *api.Call) error {
			return c.HTML(c.Context(), http.StatusOK, []byte("<p>"+c.Param("say")+c.Token().Name))
		},
	}, api.Route{
		Method:  "POST",
		Pattern: "/pages/form",
		Summary: "Take a form",
		Role:    token.Operator,
		Page:    policy,
		MaxBody: 64,
		Form:    []api.Param{{Name: "say"}, {Name: "id"}},
		Many:    []string{"id"},
		Serve: func(c *api.Call) error {
			form, err := c.Form()
			if err != nil {
				return err
			}
			return c.Redirect("/pages/text?say=" + form.Get("say") + strings.Join(form["id"], "+"))
		},
	})
}

const formType = "application/x-www-form-urlencoded"

// A browser keeps a page and asks whether it is another one, and knows what the page may load.
func TestPages_HaveHeadersOfTheirOwnAndATag(t *testing.T) {
	s, _ := serve(t, pages)
	page := s.want(s.send("viewer", "GET", "/pages/text?say=hi", nil), 200, "<p>hi")
	for _, got := range []answer{
		page,
		s.send("viewer", "GET", "/pages/none", nil),
		s.send("", "GET", "/pages/text", nil),
	} {
		for name, want := range map[string]string{
			"Content-Security-Policy": policy.Content,
			"Referrer-Policy":         policy.Referrer,
			"Cache-Control":           policy.Cache,
			"X-Content-Type-Options":  "nosniff",
		} {
			if got.header.Get(name) != want {
				t.Errorf("%d: %s: %q", got.status, name, got.header.Get(name))
			}
		}
	}
	if is := page.header.Get("Content-Type"); is != "text/html; charset=utf-8" {
		t.Error(is)
	}
	tag := page.header.Get("ETag")
	for _, known := range []string{tag, "W/" + tag, `"other", ` + tag} {
		got := s.send("viewer", "GET", "/pages/text?say=hi", nil, "If-None-Match", known)
		if got.status != 304 || got.text != "" || got.header.Get("ETag") != tag {
			t.Errorf("%s: %d %q", known, got.status, got.text)
		}
	}
	s.want(s.send("viewer", "GET", "/pages/text?say=ho", nil, "If-None-Match", tag), 200, "<p>ho")
	s.want(s.send("viewer", "GET", "/v1/health", nil), 200, "ok")
	if strings.Contains(s.send("viewer", "GET", "/openapi.json", nil).text, "/pages/") {
		t.Error("the OpenAPI document has pages, which are for browsers")
	}
}

func TestPages_TakeFormsOfKnownFieldsAlone(t *testing.T) {
	s, _ := serve(t, pages)
	send := func(body string, header ...string) answer {
		return s.send("operator", "POST", "/pages/form", body, append([]string{"Content-Type", formType}, header...)...)
	}
	got := s.want(send("say=a%26b&id=1&id=2"), 303, "")
	if to := got.header.Get("Location"); to != "/pages/text?say=a&b1+2" {
		t.Error(to)
	}
	s.want(send("say=a&other=1"), 400, "the form has no such field")
	s.want(send("say=a&say=b"), 400, "more than once")
	s.want(send("say=%zz"), 400, "cannot be read")
	s.want(send("say="+strings.Repeat("x", 64)), 413, "64 bytes")
	s.want(send("say=a", "Content-Encoding", "gzip"), 415, "not encoded")
	s.want(s.send("operator", "POST", "/pages/form", `{"say":"a"}`), 415, formType)
	s.want(s.send("viewer", "POST", "/pages/form", "say=a", "Content-Type", formType), 403, "operator")
	s.want(s.send("viewer", "GET", "/pages/text?column=a&column=b", nil), 200, "<p>")
	s.want(s.send("viewer", "GET", "/pages/text?say=a&say=b", nil), 400, "more than once")
}

// A browser sends a cookie also with requests that another site has made, so a cookie opens pages and not the API.
func TestPages_KnowACallerByACookieAndTheAPIDoesNot(t *testing.T) {
	s, _ := serve(t, pages)
	s.want(s.send("", "GET", "/pages/text", nil, "Cookie", "session=viewer"), 200, everybody["viewer"].Name)
	s.want(s.send("", "GET", "/pages/text", nil, "Cookie", "session=nobody"), 401, "no /pages/text")
	s.want(s.send("operator", "GET", "/pages/text", nil, "Cookie", "session=viewer"), 200, everybody["operator"].Name)
	s.want(s.send("", "GET", "/v1/tasks", nil, "Cookie", "session=admin"), 401, "unauthorized")
	if got := s.send("", "GET", "/pages/text", nil); got.header.Get("WWW-Authenticate") != "" {
		t.Error("the browser would ask for a password in a window of its own")
	}
}

// A link in a chat opens a page, and no page of another site does anything with ours.
func TestPages_AreOpenedByLinksOfOtherSitesAndNothingElse(t *testing.T) {
	s, _ := serve(t, pages)
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	s.want(s.send("viewer", "GET", "/pages/text", nil, link...), 200, "<p>")
	s.want(s.send("viewer", "GET", "/v1/tasks", nil, link...), 403, "another origin")
	sent := s.send("operator", "POST", "/pages/form", "say=a", append(link, "Content-Type", formType)...)
	s.want(sent, 403, "another origin")
	for _, other := range [][]string{
		{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "document"},
		{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"},
		append(link, "Origin", "https://evil.example"),
		append(link, "Origin", "null"),
	} {
		s.want(s.send("viewer", "GET", "/pages/text", nil, other...), 403, "another origin")
	}
}

// A proxy that ends TLS leaves the browser's origin, which is not that of the connection.
func TestOrigins_OfAProxyAreOurs(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) {
		pages(c)
		c.Origins = []string{"https://tasks.example", "https://other.example:8443"}
	})
	for _, c := range []struct {
		host, origin string
		status       int
	}{
		{"tasks.example", "https://tasks.example", 303},
		{"other.example:8443", "https://other.example:8443", 303},
		{"localhost", "https://tasks.example", 303},
		{"tasks.example", "https://tasks.example:8443", 403},
		{"tasks.example", "http://evil.example", 403},
		{"evil.example", "https://tasks.example", 403},
	} {
		header := []string{"Content-Type", formType, "Host", c.host, "Origin", c.origin}
		got := s.send("operator", "POST", "/pages/form", "say=a", header...)
		if got.status != c.status {
			t.Errorf("%s from %s: %d", c.host, c.origin, got.status)
		}
	}
	for _, wrong := range []string{
		"tasks.example", "http://tasks.example", "https://", "https://tasks.example/", "https://u@tasks.example",
		"https://tasks.example?x", "https://tasks.example#x", "null", "",
	} {
		_, err := api.New(api.Config{Client: away{}, Tokens: everybody, Origins: []string{wrong}})
		if err == nil || !strings.Contains(err.Error(), "https://NAME") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestRoute_WithAFormAndJSONIsRefused(t *testing.T) {
	route := api.Route{
		Method:  "POST",
		Pattern: "/a",
		Summary: "Take both",
		MaxBody: 1,
		In:      1,
		Form:    []api.Param{{Name: "a"}},
		Serve:   func(*api.Call) error { return nil },
	}
	_, err := api.New(api.Config{Client: away{}, Tokens: everybody, Routes: []api.Route{route}})
	if err == nil || !strings.Contains(err.Error(), "not both") {
		t.Error(err)
	}
}

// A large page waits for its place once it is made, and holds none while it asks other routes, which may be large.
func TestPages_ThatAreLargeTakeTheirPlaceWhenTheyAreMade(t *testing.T) {
	entered, made := make(chan struct{}, 8), make(chan struct{})
	s, _ := serve(t, func(c *api.Config) {
		c.Routes = append(c.Routes, api.Route{
			Method:  "GET",
			Pattern: "/pages/large",
			Summary: "Show what others answer",
			Role:    token.Viewer,
			Page:    policy,
			Large:   true,
			Serve: func(c *api.Call) error {
				var shown api.TaskPage
				if _, err := c.Client().Ask(c.Context(), api.Question{Path: "/v1/tasks"}, &shown); err != nil {
					return err
				}
				if err := c.Making(c.Context()); err != nil {
					return err
				}
				entered <- struct{}{}
				<-made
				return c.HTML(c.Context(), http.StatusOK, []byte("<p>large"))
			},
		})
	})
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() { s.want(s.send("viewer", "GET", "/pages/large", nil), 200, "<p>large") })
	}
	<-entered
	<-entered // those are all places of the principal
	for range 2 {
		select {
		case <-entered:
			t.Error("a third page is made beside two")
		default:
		}
		made <- struct{}{}
		<-entered
	}
	close(made)
	asking.Wait()
}
