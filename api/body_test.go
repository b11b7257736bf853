package api_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

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
	parts = append(parts, strings.NewReader(r.after))
	return io.MultiReader(parts...), int64(len(r.before) + r.times*len(r.text) + len(r.after))
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
			text, _ := io.ReadAll(resp.Body)
			if resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable {
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

// Whoever sends a large body slowly, or waits for an outcome, takes no room from the bodies of others.
func TestServe_LargeBodiesDoNotWaitForThoseThatDoNotCome(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil)
	for range 20 {
		c := s.dial(t)
		const begins = "POST /v1/tasks:batch HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer submitter\r\n" +
			"Content-Type: application/json\r\nContent-Length: 4000000\r\n\r\n{"
		if _, err := fmt.Fprint(c, begins); err != nil {
			t.Fatal(err)
		}
	}
	large := `{"behavior":"gate","params":"` + strings.Repeat("x", 200<<10) + `"}`
	many := `{"tasks":[` + strings.Repeat(`{"behavior":"noop"},`, 990) +
		strings.Repeat(`{"behavior":"sleep","params":{"duration":"1ms"}},`, 9) +
		`{"behavior":"noop","params":{}}]}`
	var waiting sync.WaitGroup
	for range 30 {
		waiting.Go(func() { s.want(s.insist("admin", "POST", "/v1/tasks?wait=3s", large), 202, "id") })
	}
	waiting.Go(func() {
		for range 5 {
			s.want(s.insist("operator", "POST", "/v1/tasks:batch", many), 200, "id")
			s.want(s.insist("operator", "POST", "/v1/tasks:batch", `{"tasks":[`+large+`,`+large+`]}`), 200, "id")
		}
	})
	waiting.Wait()
}
