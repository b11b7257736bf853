package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"taskledger/events"
)

// Whoever sends nothing, or a byte now and then, is cut off.
func TestServe_CutsOffWhoIsSlow(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil)
	for what, text := range map[string]string{
		"headers":                       "GET /v1/tasks HTTP/1.1\r\nHost: localhost\r\n",
		"a body that nobody is to read": "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
		"a body of no route":            "POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
		"a body": "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer submitter\r\n" +
			"Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := s.dial(t)
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
	again := s.send("submitter", "POST", "/v1/tasks?wait=10ms", `{"behavior":"gate","id":"long","params":"x"}`)
	s.want(again, 202, "joined")
	open()
	s.want(s.send("viewer", "GET", "/v1/tasks/long?wait=30s", nil), 200, "SUCCESS")
}

// A stream whose reader has stopped reading does not hold up the drain: it is cut off, and its reader sees that it is
// not whole.
func TestServe_DrainCutsOffAStreamThatNobodyReads(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil)
	params := strings.Repeat("x", 200<<10)
	for i := range 60 {
		body := map[string]any{"behavior": "gate", "id": fmt.Sprintf("one/%d", i), "params": params}
		s.want(s.insist("submitter", "POST", "/v1/tasks", body), http.StatusAccepted, "one/")
	}
	shard := events.TaskID("one/0").Shard(4)
	c := s.dial(t)
	const get = "GET /v1/export?shard=%d HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin\r\n\r\n"
	if _, err := fmt.Fprintf(c, get, shard); err != nil {
		t.Fatal(err)
	}
	begins := bufio.NewReaderSize(c, 16)
	if line, err := begins.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	ran := ownTime()
	s.stop()
	if took := ran(); took > 5*time.Second {
		t.Errorf("drained after %s", took)
	}
	whole := io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\n"), begins)
	if resp, err := http.ReadResponse(bufio.NewReader(whole), nil); err == nil {
		n, err := io.Copy(io.Discard, resp.Body)
		if err == nil {
			t.Errorf("the stream is whole, with %d bytes: its reader did not stop it", n)
		}
		_ = resp.Body.Close()
	}
}

// ownTime measures time in sleeps of this process: one that waits for a processor sleeps less often, so that a busy
// machine does not make what it does look slow.
func ownTime() (since func() time.Duration) {
	const nap = 10 * time.Millisecond
	end, naps := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-end:
				naps <- n
				return
			case <-time.After(nap):
				n++
			}
		}
	}()
	return func() time.Duration { close(end); return time.Duration(<-naps) * nap }
}
