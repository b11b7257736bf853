package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/stores"
	"taskledger/events"
	"taskledger/internal/testcluster"
)

func TestRequest_BadInputNamesWhatIsWrong(t *testing.T) {
	s, _ := serve(t, nil)
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	flat := strings.Repeat("[", 62) + strings.Repeat("]", 62)
	for _, c := range []struct {
		secret, method, path string
		body                 any
		status               int
		want                 string
	}{
		{"submitter", "POST", "/v1/tasks", ``, 400, "malformed"},
		{"submitter", "POST", "/v1/tasks", `{`, 400, "malformed"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop"} x`, 400, "malformed"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","colour":1}`, 400, `"field":"colour"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":7}`, 400, `"field":"behavior"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","ID":"a"}`, 400, `"field":"ID"`},
		{"submitter", "POST", "/v1/tasks:batch", `{"tasks":[{"behavior":"noop","id":"a","id":"b"}]}`, 400, `"field":"tasks[0].id"`},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"retry","ids":["a"],"ids":["b"]}`, 400, `"field":"ids"`},
		{"operator", "POST", "/v1/tasks:change-matching", `{"operation":"retry","filter":{"status":"FAILURE","status":"SUCCESS"}}`, 400, `"field":"filter.status"`},
		{"operator", "POST", "/v1/behaviors/noop/pause", `{"Reason":"typed"}`, 400, `"field":"Reason"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","id":"a b"}`, 400, "task id"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","id":""}`, 400, `"field":"id"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","id":"cluster/settings"}`, 400, `"field":"id"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","priority":-1}`, 400, `"field":"priority"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","delay_ms":-1}`, 400, `"field":"delay_ms"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","not_before":"soon"}`, 400, "malformed"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"nobody"}`, 422, "unknown-behavior"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","params":` + deep + `}`, 400, "64 levels"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"nobody","params":` + flat + `}`, 422, "unknown-behavior"},
		{"submitter", "POST", "/v1/tasks", "{\"behavior\":\"no\xffop\"}", 400, "UTF-8"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","params":"` + strings.Repeat("x", 300<<10) + `"}`, 413, "too-large"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","params":"` + strings.Repeat("x", 600<<10) + `"}`, 413, "too-large"},
		{"submitter", "POST", "/v1/tasks?wait=61s", `{"behavior":"noop"}`, 400, `"field":"wait"`},
		{"submitter", "POST", "/v1/tasks?wait=5", `{"behavior":"noop"}`, 400, `"field":"wait"`},
		{"submitter", "POST", "/v1/tasks?colour=1", `{"behavior":"noop"}`, 400, `"field":"colour"`},
		{"viewer", "GET", "/v1/tasks?limit=1001", nil, 400, `"field":"limit"`},
		{"viewer", "GET", "/v1/tasks?limit=1&limit=2", nil, 400, "more than once"},
		{"viewer", "GET", "/v1/tasks?status=done", nil, 400, `"field":"status"`},
		{"viewer", "GET", "/v1/tasks?cursor=x", nil, 400, `"field":"cursor"`},
		{"viewer", "GET", "/v1/tasks?created-to=1970-01-01T00:00:00Z", nil, 400, `"field":"created-to"`},
		{"viewer", "GET", "/v1/tasks?node=a", nil, 400, `"field":"node"`},
		{"viewer", "GET", "/v1/tasks?a=%zz", nil, 400, "malformed"},
		{"viewer", "GET", "/v1/export", nil, 400, `"field":"task"`},
		{"viewer", "GET", "/v1/export?task=a&shard=1", nil, 400, `"field":"task"`},
		{"viewer", "GET", "/v1/export?task=a%20b", nil, 400, `"field":"id"`},
		{"viewer", "GET", "/v1/export?task=none", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/export?shard=4", nil, 400, `"field":"shard"`},
		{"viewer", "GET", "/v1/export?shard=x", nil, 400, `"field":"shard"`},
		{"viewer", "GET", "/v1/metrics", nil, 404, "measures nothing"},
		{"viewer", "GET", "/v1/tasks/none", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/tasks/none?wait=1s", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/tasks/a%20b", nil, 400, `"field":"id"`},
		{"viewer", "GET", "/v1/tasks/a~b~c", nil, 400, `"field":"id"`},
		{"viewer", "GET", "/v1/tasks/a%2Fb%2Fc", nil, 400, `"field":"id"`},
		{"viewer", "GET", "/v1/tasks/..%2f..%2fopenapi.json", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/tasks/../nodes", nil, 404, "not-found"},
		{"viewer", "GET", "//v1/nodes", nil, 404, "not-found"},
		{"viewer", "GET", "/v1/tasks/none%0d%0aX:y", nil, 400, `"field":"id"`},
		{"viewer", "GET", "/v1/tasks/" + strings.Repeat("x", 129), nil, 400, "limit of 128"},
		{"viewer", "GET", "/v1/tasks/none/history?order=up", nil, 400, `"field":"order"`},
		{"viewer", "GET", "/v1/tasks/none?seq=0", nil, 400, `"field":"seq"`},
		{"viewer", "GET", "/v1/tasks/none?seq=1&at=2026-01-01T00:00:00Z", nil, 400, `"field":"seq"`},
		{"viewer", "GET", "/v1/replay?from=noon", nil, 400, `"field":"from"`},
		{"viewer", "GET", "/v1/replay?from=1970-01-01T00:00:00Z", nil, 400, `"field":"from"`},
		{"viewer", "GET", "/v1/replay?to=1970-01-01T00:00:00Z", nil, 400, `"field":"to"`},
		{"viewer", "GET", "/v1/replay?to=0001-01-01T00:00:00Z", nil, 400, "want a time after 1970-01-01T00:00:00Z"},
		{"viewer", "GET", "/v1/tasks/none?at=1970-01-01T00:00:00Z", nil, 400, `"field":"at"`},
		{"viewer", "GET", "/v1/tasks/none?at=0001-01-01T00:00:00Z", nil, 400, "want a time after 1970-01-01T00:00:00Z"},
		{"viewer", "GET", "/nothing", nil, 404, "not-found"},
		{"viewer", "PATCH", "/v1/tasks", nil, 405, "method"},
		{"viewer", "BREW", "/v1/tasks/none", nil, 405, "method"},
		{"operator", "POST", "/v1/tasks/none/retry", `{"x":1}`, 400, "takes no body"},
		{"operator", "POST", "/v1/tasks/none/cancel", `{"reason":"` + strings.Repeat("x", 257) + `"}`, 400, "256"},
		{"operator", "POST", "/v1/behaviors/No/pause", `{}`, 400, `"field":"behavior"`},
		{"operator", "POST", "/v1/behaviors/no-such/pause", `{"reason":"typed"}`, 422, "unknown-behavior"},
		{"operator", "POST", "/v1/behaviors/no-such/pause", `{"force":1}`, 400, "force: want true or false"},
		{"submitter", "POST", "/v1/tasks", `[]`, 400, "body: want an object"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":7}`, 400, "behavior: want a text"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","priority":1.5}`, 400, "priority: want a whole number"},
		{"submitter", "POST", "/v1/tasks", ``, 400, "it is empty"},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","params":"` + strings.Repeat("x", 300<<10) + `"}`, 413, `"field":"params"`},
		{"submitter", "POST", "/v1/tasks", `{"behavior":"noop","not_before":"2100-01-01T00:00:00Z"}`, 400, `"field":"not_before"`},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"explode","ids":["a"]}`, 400, `"field":"operation"`},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"retry","ids":[]}`, 400, `"field":"ids"`},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"retry","ids":["a","a"]}`, 400, "more than once"},
		{"operator", "POST", "/v1/tasks:change", `{"operation":"retry","ids":["a"],"reason":"x"}`, 400, `"field":"reason"`},
	} {
		begun := time.Now()
		got := s.send(c.secret, c.method, c.path, c.body)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("%s %.60s: answered after %s", c.method, c.path, took)
		}
		if got.status != c.status || !strings.Contains(got.text, c.want) || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %.60s %.80v: %d, want %d and %q: %.300s", c.method, c.path, c.body, got.status, c.status, c.want, got.text)
		}
	}
	if got := s.send("viewer", "PATCH", "/v1/tasks/none", nil); got.header.Get("Allow") != "DELETE, GET, HEAD" {
		t.Errorf("Allow: %q", got.header.Get("Allow"))
	}
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"noop"}`, "Content-Type", "text/plain"), 415, "media-type")
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"noop"}`, "Idempotency-Key", ""), 400, "it is empty")
	s.want(s.send("submitter", "POST", "/v1/tasks:batch", `{"tasks":[{"behavior":"noop","id":""}]}`), 200, `"field":"id"`)
	s.want(s.send("submitter", "POST", "/v1/tasks:batch", `{"tasks":[{"behavior":"noop"}]}`, "Idempotency-Key", ""), 400, "it is empty")
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"noop"}`, "Idempotency-Key", "a", "Idempotency-Key", "b"), 400, "more than once")
	s.want(s.send("operator", "POST", "/v1/tasks/none/retry", nil, "If-Match", `W/"1"`), 400, "not supported")
	s.want(s.send("operator", "POST", "/v1/behaviors/no-such/pause", `{"force":true}`), 204, "")
	s.want(s.send("operator", "POST", "/v1/behaviors/no-such/unpause", nil), 204, "")
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = fmt.Fprintf(c, "GET /v1/tasks?%s HTTP/1.1\r\n", strings.Repeat("a=1&", 100_000)) // it is not read to its end
	if line, err := bufio.NewReader(c).ReadString('\n'); !strings.Contains(line, "431") {
		t.Errorf("100,000 parameters: %q, %v", line, err)
	}
}

// What names no path is refused as what names no route is, and not answered by net/http itself.
func TestRequest_OfNoPathIsAProblem(t *testing.T) {
	s, _ := serve(t, nil)
	for _, line := range []string{"OPTIONS *", "CONNECT localhost:1", "GET http://localhost"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
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
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q", name, got.header.Get(name))
		}
	}
	for _, basic := range []string{"admin", "wrong"} {
		status := map[string]int{"admin": 200, "wrong": 401}[basic]
		r, err := http.NewRequestWithContext(t.Context(), "GET", strings.Replace(s.url, "://", "://x:"+basic+"@", 1)+"/v1/tasks", nil)
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

func TestRequest_OneCallerCannotTakeTheServerFromTheOthers(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) { c.Limits = api.Limits{PerSecond: 1, Burst: 8, InFlight: 2} })
	s.submit("submitter", "slow", "gate")
	var answers []chan answer
	for range 3 {
		a := make(chan answer, 1)
		answers = append(answers, a)
		go func() { a <- s.send("viewer", "GET", "/v1/tasks/slow?wait=1s", nil) }()
	}
	statuses := map[int]int{}
	for _, a := range answers {
		got := <-a
		if statuses[got.status]++; got.status == 429 && (got.header.Get("Retry-After") != "1" || got.problem() != "too-many") {
			t.Errorf("%v %s", got.header, got.text)
		}
	}
	if statuses[202] != 2 || statuses[429] != 1 {
		t.Errorf("two may be under way: %v", statuses)
	}
	refused := 0
	for range 12 {
		if got := s.send("viewer", "GET", "/openapi.json", nil); got.status == 429 {
			refused++
		}
	}
	if refused == 0 || refused > 10 {
		t.Errorf("%d of 12 refused", refused)
	}
	s.want(s.send("operator", "GET", "/openapi.json", nil), 200, "openapi")
}

// Whoever sends nothing, or a byte now and then, is cut off.
func TestServe_CutsOffWhoIsSlow(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil)
	for what, text := range map[string]string{
		"headers":                       "GET /v1/tasks HTTP/1.1\r\nHost: localhost\r\n",
		"a body that nobody is to read": "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
		"a body of no route":            "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
		"a body":                        "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer submitter\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := fmt.Fprint(c, text); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			if err := c.SetReadDeadline(begun.Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			told, err := io.ReadAll(c)
			if is := strings.Contains(string(told), " 408 "); is != (what == "a body") {
				t.Errorf("told %.200q", told)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("cut off after %s: %v", took, err)
			}
		})
	}
}

// What waits for longer than a body may take to come waits on, and so does the next request on its connection.
func TestServe_LongWaitsLeaveTheirConnectionAsItWas(t *testing.T) {
	t.Parallel()
	s, open := serve(t, nil)
	s.submit("submitter", "long", "gate")
	begun := time.Now()
	s.want(s.send("viewer", "GET", "/v1/tasks/long?wait=12s", nil), 202, "RUNNING")
	if took := time.Since(begun); took < 12*time.Second {
		t.Errorf("waited for %s", took)
	}
	s.want(s.send("viewer", "GET", "/v1/tasks/long", nil), 200, "RUNNING")
	s.want(s.send("submitter", "POST", "/v1/tasks?wait=10ms", `{"behavior":"gate","id":"long","params":"x"}`), 202, "joined")
	open()
	s.want(s.send("viewer", "GET", "/v1/tasks/long?wait=30s", nil), 200, "SUCCESS")
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

// A batch of more tasks than there may be is not decoded to its end.
func TestSubmit_OfFarTooManyTakesNoMemory(t *testing.T) {
	s, _ := serve(t, nil)
	body := `{"tasks":[` + strings.Repeat("{},", 1_200_000) + `{}]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.want(s.send("submitter", "POST", "/v1/tasks:batch", body), 400, "1000 tasks")
	runtime.ReadMemStats(&after)
	if took := int64(after.TotalAlloc-before.TotalAlloc) - int64(len(body)); took > 96<<20 {
		t.Errorf("%d MiB were allocated", took>>20)
	}
}

// repeated is a text between others, many times: a large body that takes no memory before it is read.
type repeated struct {
	before, text string
	times        int
	after        string
}

func (r repeated) reader() (io.Reader, int64) {
	parts := []io.Reader{strings.NewReader(r.before)}
	for range r.times {
		parts = append(parts, strings.NewReader(r.text))
	}
	return io.MultiReader(append(parts, strings.NewReader(r.after))...), int64(len(r.before) + r.times*len(r.text) + len(r.after))
}

// Many large bodies at once, which their callers may send, take a bounded amount of memory together.
func TestServe_LargeBodiesAtOnceTakeLittleMemory(t *testing.T) {
	s, _ := serve(t, nil)
	one := `{"behavior":"nobody","params":"` + strings.Repeat("x", 200<<10) + `"},`
	bodies := []repeated{
		{`{"tasks":[`, one, 19, `{}]}`},                                             // refused, each for its behavior
		{`{"tasks":[`, one, 19, ``},                                                 // cut short
		{`{"tasks":"`, strings.Repeat("y", 1<<20), 3, `"}`},                         // the value has the wrong type
		{`{"tasks":[`, strings.Repeat(`{"behavior":"nobody"},`, 1000), 150, `{}]}`}, // the batch has too many tasks
		{`{"behavior":"noop","params":"`, strings.Repeat("z", 1<<20), 20, `"}`},     // too large
	}
	runtime.GC()
	var idle, now runtime.MemStats
	runtime.ReadMemStats(&idle)
	var most uint64
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapInuse)
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			body, size := bodies[i%len(bodies)].reader()
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/tasks:batch", body)
			if err != nil {
				t.Error(err)
				return
			}
			r.ContentLength = size
			r.Header.Set("Authorization", "Bearer submitter")
			r.Header.Set("Content-Type", "application/json")
			resp, err := s.http.Do(r)
			if err != nil { // the server has refused it by its size, and hung up
				return
			}
			defer resp.Body.Close()
			if text, _ := io.ReadAll(resp.Body); resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%d %.200s", resp.StatusCode, text)
			}
		})
	}
	all.Wait()
	close(over)
	<-watched
	if more := (int64(most) - int64(idle.HeapInuse)) >> 20; more > 64 {
		t.Errorf("%d MiB more than idle", more)
	} else {
		t.Logf("%d MiB more than idle", more)
	}
}

// Who sends a large body slowly, or waits for an outcome, takes no room from the bodies of others.
func TestServe_LargeBodiesDoNotWaitForThoseThatDoNotCome(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil)
	for range 20 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprint(c, "POST /v1/tasks:batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer submitter\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
	}
	large := `{"behavior":"gate","params":"` + strings.Repeat("x", 200<<10) + `"}`
	var waiting sync.WaitGroup
	for range 30 {
		waiting.Go(func() { s.want(s.insist("admin", "POST", "/v1/tasks?wait=3s", large), 202, "id") })
	}
	waiting.Go(func() {
		for range 5 {
			s.want(s.insist("operator", "POST", "/v1/tasks:batch", `{"tasks":[`+strings.Repeat(`{"behavior":"noop"},`, 990)+strings.Repeat(`{"behavior":"sleep","params":{"duration":"1ms"}},`, 9)+`{"behavior":"noop","params":{}}]}`), 200, "id")
			s.want(s.insist("operator", "POST", "/v1/tasks:batch", `{"tasks":[`+large+`,`+large+`]}`), 200, "id")
		}
	})
	waiting.Wait()
}

// A stream whose reader has stopped reading does not hold up the drain: it is cut off, and its reader sees that it is not whole.
func TestServe_DrainCutsOffAStreamThatNobodyReads(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil)
	params := strings.Repeat("x", 200<<10)
	for i := range 60 {
		s.want(s.insist("submitter", "POST", "/v1/tasks", map[string]any{"behavior": "gate", "id": fmt.Sprintf("one/%d", i), "params": params}), http.StatusAccepted, "one/")
	}
	shard := events.TaskID("one/0").Shard(4)
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "GET /v1/export?shard=%d HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin\r\n\r\n", shard); err != nil {
		t.Fatal(err)
	}
	begins := bufio.NewReaderSize(c, 16)
	if line, err := begins.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	begun := time.Now()
	s.stop()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("drained after %s", took)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\n"), begins)), nil); err == nil {
		n, err := io.Copy(io.Discard, resp.Body)
		if err == nil {
			t.Errorf("the stream is whole, with %d bytes: its reader did not stop it", n)
		}
		_ = resp.Body.Close()
	}
}

// A token of the least role, and connections that read nothing of 4 MB each, take nothing from others.
func TestServe_ReadersThatReadNothingTakeNoListFromOthers(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, func(c *api.Config) {
		c.Routes, c.Dialects = stores.Routes(c.Client), []api.Dialect{stores.Dialect()}
	})
	params := strings.Repeat("x", 200<<10)
	for i := range 20 {
		s.want(s.insist("submitter", "POST", "/v1/tasks", map[string]any{"behavior": "gate", "id": fmt.Sprintf("big/%d", i), "params": params}), http.StatusAccepted, "big/")
	}
	s.want(s.send("submitter", "POST", "/store/s/update", `{"clientid":1,"adds":[{"group":"g","data":"x"}]}`), 200, "tasks")
	const readers = 8
	for range readers {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(c, "GET /v1/tasks?limit=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	testcluster.Await(t, "all readers are served", func() bool { return s.api.State().Requests == readers })
	for _, path := range []string{"/v1/tasks?limit=1", "/v1/tasks?limit=1000", "/v1/tasks/big~0/history", "/v1/behaviors", "/store/s/groups", "/store/s/group/g", "/store/s/task/1"} {
		begun := time.Now()
		s.want(s.send("operator", "GET", path, nil), 200, "")
		took := time.Since(begun)
		t.Logf("%s: %s", path, took)
		if took > 10*time.Second {
			t.Errorf("%s: answered after %s", path, took)
		}
	}
}

// A client that reads no answer before it has sent all of its body is told why it is refused, and no reset connection.
func TestRefuse_TellsWhoSendsFirstAndReadsThen(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil)
	for what, c := range map[string]struct{ head, body, want string }{
		"too large":  {"POST /v1/tasks HTTP/1.1\r\nAuthorization: Bearer submitter\r\nContent-Length: 8388608", strings.Repeat("x", 8<<20), " 413 "},
		"in chunks":  {"POST /v1/tasks HTTP/1.1\r\nAuthorization: Bearer submitter\r\nTransfer-Encoding: chunked", strings.Repeat("100000\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 8) + "0\r\n\r\n", " 413 "},
		"no token":   {"POST /v1/tasks HTTP/1.1\r\nContent-Length: 4194304", strings.Repeat("x", 4<<20), " 401 "},
		"no route":   {"POST /v1/nothing HTTP/1.1\r\nContent-Length: 4194304", strings.Repeat("x", 4<<20), " 404 "},
		"not a body": {"POST /v1/tasks/a~b/resume HTTP/1.1\r\nAuthorization: Bearer operator\r\nContent-Length: 4194304", strings.Repeat("x", 4<<20), " 400 "},
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, c.head+"\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n"+c.body); err != nil {
			t.Errorf("%s: send: %v", what, err)
		}
		if told, err := io.ReadAll(conn); err != nil || !strings.Contains(string(told), c.want) {
			t.Errorf("%s: told %.100q, %v", what, told, err)
		}
	}
}

// Who was refused after its body was read goes on over the same connection.
func TestRefuse_KeepsAConnectionWhoseBodyWasRead(t *testing.T) {
	s, _ := serve(t, nil)
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"nobody"}`), 422, "unknown-behavior")
	if got := s.want(s.send("submitter", "POST", "/v1/tasks", `{"behaviour":"noop"}`), 400, "behaviour"); got.header.Get("Connection") != "" {
		t.Errorf("%v", got.header)
	}
}
