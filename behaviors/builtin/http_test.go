package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func redirect(to string, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, status) }
}

func anywhere() task.Behavior { return builtin.HTTP(builtin.HTTPOptions{AllowPrivate: true}) }

// only allows one loopback address, so that every other one stands for what is forbidden.
func only(address string) task.Behavior {
	return builtin.HTTP(builtin.HTTPOptions{Allow: []netip.Prefix{netip.MustParsePrefix(address)}})
}

func TestHTTP_SendsTheRequestAndReturnsTheResponse(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen := fmt.Sprint(r.Method, " ", r.Header.Get("X-Key"), " ", r.UserAgent(), " ", string(body))
		w.Header().Set("X-Seen", seen)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thanks")
	})
	got, o := run[builtin.HTTPResult](t.Context(), t, anywhere(), builtin.HTTPParams{
		Method:  "PUT",
		URL:     at,
		Headers: map[string]string{"x-key": "k"},
		Body:    "hello",
	})
	if o.Err != nil {
		t.Fatalf("failed: %+v", o.Err)
	}
	if got.Status != 202 || got.Body != "thanks" || got.BodyTruncated || got.HeadersTruncated {
		t.Errorf("result %+v", got)
	}
	if seen := got.Headers["X-Seen"]; len(seen) != 1 || seen[0] != "PUT k taskledger hello" {
		t.Errorf("server saw %q", seen)
	}
}

func TestHTTP_StatusDecidesWhetherToRetry(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		if after := r.URL.Query().Get("after"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		if status != http.StatusNotModified {
			_, _ = io.WriteString(w, "because")
		}
	})
	for _, c := range []struct {
		status int
		expect []int
		code   string
		final  bool
	}{
		{status: 200},
		{status: 299},
		{status: 404, expect: []int{200, 404}},
		{
			status: 200,
			expect: []int{404},
			code:   "status",
			final:  true,
		},
		{status: 304, code: "status", final: true},
		{status: 400, code: "status", final: true},
		{status: 404, code: "status", final: true},
		{status: 408, code: "status"},
		{status: 425, code: "status"},
		{status: 429, code: "status"},
		{status: 500, code: "status"},
		{status: 503, code: "status"},
		{status: 599, code: "status"},
	} {
		t.Run(fmt.Sprint(c.status, c.expect), func(t *testing.T) {
			params := builtin.HTTPParams{URL: fmt.Sprintf("%s/%d", at, c.status), ExpectStatus: c.expect}
			got, o := run[builtin.HTTPResult](t.Context(), t, anywhere(), params)
			if c.code == "" {
				if o.Err != nil || got.Status != c.status {
					t.Errorf("result %+v, failure %+v", got, o.Err)
				}
				return
			}
			e := testkit.WantFailure(t, o, c.code, c.final)
			if e.Retryable == c.final || e.Properties["status"] != fmt.Sprint(c.status) {
				t.Errorf("error %+v", e)
			}
			if c.status != 304 && e.Properties["body"] != "because" {
				t.Errorf("properties %v", e.Properties)
			}
		})
	}
	for _, c := range []struct {
		status   int
		honoured bool
	}{{429, true}, {503, true}, {500, false}} {
		t.Run(fmt.Sprint("retry after ", c.status), func(t *testing.T) {
			params := builtin.HTTPParams{URL: fmt.Sprintf("%s/%d?after=7200", at, c.status)}
			_, o := run[builtin.HTTPResult](t.Context(), t, anywhere(), params)
			testkit.WantFailure(t, o, "status", false)
			if (o.Wait >= 2*time.Hour) != c.honoured {
				t.Errorf("next attempt in %s", o.Wait)
			}
		})
	}
}

func TestHTTP_RetryAfterIsSecondsOrADate(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"0":                             0,
		"120":                           2 * time.Minute,
		"99999999":                      24 * time.Hour,
		"Sat, 21 Nov 2026 12:01:00 GMT": time.Minute,
		"Sat, 21 Nov 2026 11:00:00 GMT": 0,
		"Sat, 21 Nov 2099 12:00:00 GMT": 24 * time.Hour,
	} {
		if got, ok := builtin.RetryAfterHeader(value, epoch); !ok || got != want {
			t.Errorf("%q: %s, %t; want %s", value, got, ok, want)
		}
	}
	for _, value := range []string{"", "-1", "soon", "1.5"} {
		if got, ok := builtin.RetryAfterHeader(value, epoch); ok {
			t.Errorf("%q: %s", value, got)
		}
	}
}

func TestHTTP_RefusesAddressesThatAreNotPublic(t *testing.T) {
	at := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
	port := at[strings.LastIndex(at, ":"):]
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254", "10.0.0.1",
	} {
		t.Run(host, func(t *testing.T) {
			b := builtin.HTTP(builtin.HTTPOptions{})
			_, o := run[builtin.HTTPResult](t.Context(), t, b, builtin.HTTPParams{URL: "http://" + host + port})
			testkit.WantFailure(t, o, builtin.CodeRefused, true)
		})
	}
}

func TestHTTP_JudgesTheAddressThatANameResolvesTo(t *testing.T) {
	at := serve(t, func(http.ResponseWriter, *http.Request) {})
	url := "http://localhost" + at[strings.LastIndex(at, ":"):]
	_, o := run[builtin.HTTPResult](t.Context(), t, only("127.0.0.1/32"), builtin.HTTPParams{URL: url})
	if o.Err != nil {
		t.Errorf("an allowed address is refused: %+v", o.Err)
	}
	_, o = run[builtin.HTTPResult](t.Context(), t, only("127.0.0.2/32"), builtin.HTTPParams{URL: url})
	testkit.WantFailure(t, o, builtin.CodeRefused, true)
}

func TestHTTP_RefusesARedirectToAnAddressThatIsNotAllowed(t *testing.T) {
	inner := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the inner server was reached") })
	port := inner[strings.LastIndex(inner, ":"):]
	for _, to := range []string{
		"http://127.0.0.2" + port, "http://[::1]" + port, "file:///etc/passwd", "gopher://127.0.0.1" + port,
	} {
		t.Run(to, func(t *testing.T) {
			outer := serve(t, redirect(to, http.StatusFound))
			_, o := run[builtin.HTTPResult](t.Context(), t, only("127.0.0.1/32"), builtin.HTTPParams{URL: outer})
			testkit.WantFailure(t, o, builtin.CodeRefused, true)
		})
	}
}

func TestHTTP_FollowsRedirectsUpToALimit(t *testing.T) {
	hops := 0
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			return
		}
		hops++
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	_, o := run[builtin.HTTPResult](t.Context(), t, anywhere(), builtin.HTTPParams{URL: at})
	testkit.WantFailure(t, o, builtin.CodeRefused, true)
	if hops != 11 {
		t.Errorf("%d requests, want the first and 10 redirects", hops)
	}
}

func TestHTTP_HeadersStayWithTheirOrigin(t *testing.T) {
	var seen []string
	record := func(r *http.Request) { seen = append(seen, r.Header.Get("X-Api-Key")) }
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { record(r) })
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		record(r)
		if r.URL.Path == "/here" {
			http.Redirect(w, r, other, http.StatusFound)
			return
		}
		http.Redirect(w, r, "/here", http.StatusFound)
	})
	params := builtin.HTTPParams{URL: first, Headers: map[string]string{"X-Api-Key": "k"}}
	_, o := run[builtin.HTTPResult](t.Context(), t, anywhere(), params)
	if got := strings.Join(seen, ","); o.Err != nil || got != "k,k," {
		t.Errorf("keys seen %q, failure %+v", got, o.Err)
	}
}

func TestHTTP_ABodyStaysWithItsOrigin(t *testing.T) {
	bodies := make(chan string, 1)
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		bodies <- r.Method + " " + string(text)
	})
	for status, refused := range map[int]bool{
		http.StatusTemporaryRedirect: true,
		http.StatusPermanentRedirect: true,
		http.StatusSeeOther:          false,
	} {
		params := builtin.HTTPParams{Method: "POST", URL: serve(t, redirect(other, status)), Body: "secret"}
		_, o := run[builtin.HTTPResult](t.Context(), t, anywhere(), params)
		switch {
		case refused:
			testkit.WantFailure(t, o, builtin.CodeRefused, true)
		case o.Err != nil:
			t.Errorf("status %d: %+v", status, o.Err)
		default:
			if got := <-bodies; got != "GET " {
				t.Errorf("status %d: the other server got %q", status, got)
			}
		}
	}
	first := serve(t, redirect(other, http.StatusTemporaryRedirect))
	if _, o := run[builtin.HTTPResult](t.Context(), t, anywhere(), builtin.HTTPParams{URL: first}); o.Err != nil {
		t.Errorf("without a body: %+v", o.Err)
	} else if got := <-bodies; got != "GET " {
		t.Errorf("without a body: the other server got %q", got)
	}
}

func TestHTTP_ResultsStayWithinTheLimit(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 50 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("<", 1000))
		}
		_, _ = io.WriteString(w, strings.Repeat(r.URL.Query().Get("text"), 2*builtin.ExcerptBytes))
	})
	for text, atLeast := range map[string]int{"x": builtin.ExcerptBytes, "%00": 10_000} {
		got, o := run[builtin.HTTPResult](t.Context(), t, anywhere(), builtin.HTTPParams{URL: at + "?text=" + text})
		if o.Err != nil || len(o.Result) > events.MaxPayloadBytes {
			t.Fatalf("%q: result of %d bytes, failure %+v", text, len(o.Result), o.Err)
		}
		if !got.BodyTruncated || len(got.Body) < atLeast || len(got.Body) > builtin.ExcerptBytes {
			t.Errorf("%q: body of %d bytes, truncated = %t", text, len(got.Body), got.BodyTruncated)
		}
		if !got.HeadersTruncated || len(got.Headers) == 0 {
			t.Errorf("%q: %d headers, truncated = %t", text, len(got.Headers), got.HeadersTruncated)
		}
	}
}

func TestHTTP_AServerThatCannotBeReachedIsRetried(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, o := run[builtin.HTTPResult](t.Context(), t, anywhere(), builtin.HTTPParams{URL: gone.URL})
	testkit.WantFailure(t, o, builtin.CodeNetwork, false)
	broken := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, o = run[builtin.HTTPResult](t.Context(), t, anywhere(), builtin.HTTPParams{URL: broken})
	testkit.WantFailure(t, o, builtin.CodeNetwork, false)
}

func TestHTTP_ASlowServerTimesOut(t *testing.T) {
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	for _, path := range []string{"/header", "/body"} {
		_, o := run[builtin.HTTPResult](t.Context(), t, anywhere(),
			builtin.HTTPParams{URL: at + path, Timeout: builtin.Duration(50 * time.Millisecond)})
		testkit.WantFailure(t, o, events.CodeTimeout, false)
	}
}

func TestHTTP_EndsWithItsContext(t *testing.T) {
	cause := errors.New("cancelled by Ada")
	ctx, cancel := context.WithCancelCause(t.Context())
	at := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(cause)
		<-r.Context().Done()
	})
	_, o := run[builtin.HTTPResult](ctx, t, anywhere(), builtin.HTTPParams{URL: at})
	if e := testkit.WantFailure(t, o, "failed", false); e.Message != cause.Error() {
		t.Errorf("message %q, want the cause", e.Message)
	}
}

func TestHTTP_LeavesNoConnectionBehind(t *testing.T) {
	var peers sync.Map
	at := serve(t, func(_ http.ResponseWriter, r *http.Request) { peers.Store(r.RemoteAddr, r.Close) })
	b := anywhere()
	for range 2 {
		_, o := run[builtin.HTTPResult](t.Context(), t, b, builtin.HTTPParams{URL: at})
		if o.Err != nil {
			t.Fatalf("failed: %+v", o.Err)
		}
	}
	peers.Range(func(peer, closes any) bool {
		if closes != true {
			t.Errorf("the connection of %s is kept", peer)
		}
		return true
	})
}

func TestHTTP_NoProxyIsUsed(t *testing.T) {
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the proxy was used") })
	t.Setenv("HTTP_PROXY", proxy)
	t.Setenv("http_proxy", proxy)
	b := builtin.HTTP(builtin.HTTPOptions{})
	_, o := run[builtin.HTTPResult](t.Context(), t, b, builtin.HTTPParams{URL: "http://192.0.2.1/"})
	testkit.WantFailure(t, o, builtin.CodeRefused, true)
}

func TestHTTP_RefusesParametersThatAreNoRequest(t *testing.T) {
	header := func(name, value string) builtin.HTTPParams {
		return builtin.HTTPParams{URL: "http://a", Headers: map[string]string{name: value}}
	}
	for name, params := range map[string]builtin.HTTPParams{
		"no url":            {},
		"scheme":            {URL: "ftp://a/"},
		"no scheme":         {URL: "//a/"},
		"no host":           {URL: "http:///a"},
		"broken url":        {URL: "http://a:b:c/"},
		"method":            {URL: "http://a", Method: "GET /"},
		"connect":           {URL: "http://a", Method: "CONNECT"},
		"host":              header("host", "b"),
		"transfer encoding": header("Transfer-Encoding", "chunked"),
		"header name":       header("a b", "c"),
		"header value":      header("a", "b\r\nc: d"),
		"status":            {URL: "http://a", ExpectStatus: []int{100}},
		"timeout":           {URL: "http://a", Timeout: -1},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(params)
			must(t, err)
			_, err = anywhere().Plan(raw, epoch)
			if _, ok := errors.AsType[*store.InvalidError](err); !ok {
				t.Errorf("error %v, want an InvalidError", err)
			}
		})
	}
}
