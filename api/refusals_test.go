package api_test

import (
	"io"
	"strings"
	"testing"
)

// A client that reads no answer before it has sent all of its body is told why it is refused, and no reset connection.
func TestRefuse_TellsWhoSendsFirstAndReadsThen(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, nil)
	for what, c := range map[string]struct{ head, body, want string }{
		"too large": {
			"POST /v1/tasks HTTP/1.1\r\nAuthorization: Bearer submitter\r\nContent-Length: 8388608",
			strings.Repeat("x", 8<<20), " 413 ",
		},
		"in chunks": {
			"POST /v1/tasks HTTP/1.1\r\nAuthorization: Bearer submitter\r\nTransfer-Encoding: chunked",
			strings.Repeat("100000\r\n"+strings.Repeat("x", 1<<20)+"\r\n", 8) + "0\r\n\r\n", " 413 ",
		},
		"no token": {
			"POST /v1/tasks HTTP/1.1\r\nContent-Length: 4194304",
			strings.Repeat("x", 4<<20), " 401 ",
		},
		"no route": {
			"POST /v1/nothing HTTP/1.1\r\nContent-Length: 4194304",
			strings.Repeat("x", 4<<20), " 404 ",
		},
		"not a body": {
			"POST /v1/tasks/a~b/resume HTTP/1.1\r\nAuthorization: Bearer operator\r\nContent-Length: 4194304",
			strings.Repeat("x", 4<<20), " 400 ",
		},
	} {
		conn := s.dial(t)
		const rest = "\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n"
		if _, err := io.WriteString(conn, c.head+rest+c.body); err != nil {
			t.Errorf("%s: send: %v", what, err)
		}
		if got, err := io.ReadAll(conn); err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: got %.100q, %v", what, got, err)
		}
	}
}

// Whoever was refused after its body was read goes on over the same connection.
func TestRefuse_KeepsAConnectionWhoseBodyWasRead(t *testing.T) {
	s, _ := serve(t, nil)
	s.want(s.send("submitter", "POST", "/v1/tasks", `{"behavior":"nobody"}`), 422, "unknown-behavior")
	got := s.want(s.send("submitter", "POST", "/v1/tasks", `{"behaviour":"noop"}`), 400, "behaviour")
	if got.header.Get("Connection") != "" {
		t.Errorf("%v", got.header)
	}
}
