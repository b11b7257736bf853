package stores_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/stores"
	"taskledger/api/stores/form"
	"taskledger/api/token"
	"taskledger/internal/testcluster"
)

var everybody = apitest.Everybody(apitest.Secrets{
	"of a": {Name: "anna", Role: token.Operator, Prefix: "store:a"},
})

// server is an API with stores. root is where the URLs of the Task Store document hold for the store a.
type server struct {
	t         *testing.T
	api       *api.API
	url, root string
	http      *http.Client
	stop      func() // drains
}

// serve serves the stores of a node, or others.
func serve(t *testing.T, others operations.Stores) *server {
	t.Helper()
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 4})
	client := operations.Direct{Client: c.StartNode("a", nil).Client}
	if others == nil {
		others = client.Stores()
	}
	return serveOf(t, client, others)
}

func serveOf(t *testing.T, client operations.Client, of operations.Stores) *server {
	t.Helper()
	return serveWith(t, api.Limits{}, client, of)
}

// serveWith is serveOf with limits for each of those who ask.
func serveWith(t *testing.T, limits api.Limits, client operations.Client, of operations.Stores) *server {
	t.Helper()
	a, err := api.New(api.Config{
		Client:       client,
		Tokens:       everybody,
		Limits:       limits,
		Version:      "test",
		Routes:       stores.Routes(of),
		ErrorFormats: []api.ErrorFormat{stores.ErrorFormat()},
	})
	if err != nil {
		t.Fatal(err)
	}
	var l [2]net.Listener
	for i := range l {
		if l[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l[0], api.Below(l[1], "/store/a")) }()
	transport := &http.Transport{}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s := &server{
		t:    t,
		api:  a,
		url:  "http://" + l[0].Addr().String(),
		root: "http://" + l[1].Addr().String(),
		http: &http.Client{Transport: transport, CheckRedirect: noRedirect},
	}
	s.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		s.stop()
		transport.CloseIdleConnections()
	})
	return s
}

// answer holds an answer of the server.
type answer struct {
	status int
	header http.Header
	text   string
}

// send asks with a token. A body is sent as JSON; header is name and value by turns.
func (s *server) send(secret, method, url, body string, header ...string) answer {
	s.t.Helper()
	a, err := s.try(secret, method, url, body, header...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

func (s *server) try(secret, method, url, body string, header ...string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if strings.HasPrefix(url, "/") {
		url = s.url + url
	}
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.http.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

func (s *server) get(path string) answer {
	s.t.Helper()
	return s.send("viewer", "GET", path, "")
}

func (s *server) post(path, body string, header ...string) answer {
	s.t.Helper()
	return s.send("submitter", "POST", path, body, header...)
}

// want fails unless an answer has a status, and says exactly so. What is no array and no object stands for a part of
// it.
func (s *server) want(a answer, status int, text string) answer {
	s.t.Helper()
	is := strings.TrimSuffix(a.text, "\n")
	same := is == text
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		same = strings.Contains(is, text)
	}
	if a.status != status || !same {
		s.t.Errorf("status %d, want %d and %s: %.500s", a.status, status, text, is)
	}
	return a
}

// refused fails unless an answer is nothing but errors, of which one has a part.
func (s *server) refused(a answer, status int, part string) {
	s.t.Helper()
	var is form.Errors
	only := json.NewDecoder(strings.NewReader(a.text))
	only.DisallowUnknownFields()
	err := only.Decode(&is)
	if n := len(is.Problems); n > 0 && (status != http.StatusConflict || n != len(is.Errors)) {
		err = errors.New("problems that are not those of a conflict")
	}
	if a.status != status || err != nil || len(is.Errors) == 0 ||
		!strings.Contains(strings.Join(is.Errors, "\n"), part) || a.header.Get("Content-Type") != "application/json" {
		s.t.Errorf("status %d, %s, want %d and errors with %q: %.500s", a.status, a.header.Get("Content-Type"), status,
			part, a.text)
	}
}

// one is a task of an answer.
type one struct {
	ID       int64   `json:"id"`
	Group    string  `json:"group"`
	Data     *string `json:"data"`
	Data64   []byte  `json:"data64"`
	Keep     bool    `json:"keep"`
	Timespec int64   `json:"timespec"`
	OwnerID  int64   `json:"ownerid"`
}

// listOf reads an array of tasks.
func (s *server) listOf(a answer) (all []*one) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(a.text), &all); err != nil || a.status != 200 {
		s.t.Fatalf("status %d, %v: %.300s", a.status, err, a.text)
	}
	return all
}

// made reads the tasks that an update or a claim answers with.
func (s *server) made(a answer) []one {
	s.t.Helper()
	var is struct {
		Tasks *[]one `json:"tasks"`
	}
	if err := json.Unmarshal([]byte(a.text), &is); err != nil || a.status != 200 || is.Tasks == nil {
		s.t.Fatalf("status %d, %v: %.300s", a.status, err, a.text)
	}
	return *is.Tasks
}

func ids(all []*one) string {
	var b strings.Builder
	for _, t := range all {
		if t == nil {
			b.WriteString("- ")
		} else {
			fmt.Fprintf(&b, "%d ", t.ID)
		}
	}
	return strings.TrimSpace(b.String())
}

// serveTwo serves the stores of a cluster by two nodes, one server for each.
func serveTwo(t *testing.T) (a, b *server) {
	t.Helper()
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 4})
	one, other := operations.Direct{Client: c.StartNode("a", nil).Client}, operations.Direct{Client: c.StartNode("b",
		nil).Client}
	return serveOf(t, one, one.Stores()), serveOf(t, other, other.Stores())
}
