package schedules_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/schedules"
	"taskledger/api/token"
	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/internal/testcluster"
)

var everybody = apitest.Everybody(apitest.Secrets{
	"executor": {Name: "eve", Role: token.Submitter, Behaviors: []string{"exec"}},
})

// server is an API with schedules.
type server struct {
	t   failer
	api *api.API
}

// serve serves the schedules of a node.
func serve(t *testing.T) *server {
	t.Helper()
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 4})
	program := behaviors.Define[behaviors.None, behaviors.None]("exec", nil)
	end := func(context.Context, behaviors.None) (behaviors.None, error) { return behaviors.None{}, nil }
	n := c.StartNode("a", nil, builtin.Noop(), builtin.Sleep(), program.Bind(end))
	client := operations.Direct{Client: n.Client}
	return serveOf(t, everybody, client, client.Schedules(), client.Backfills())
}

// failer fails a test.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// serveOf serves schedules beside what a client reaches.
func serveOf(
	t failer, tokens api.Tokens, client operations.Client, of operations.Schedules, fills operations.Backfills,
) *server {
	t.Helper()
	a, err := api.New(api.Config{
		Client:  client,
		Tokens:  tokens,
		Version: "test",
		Routes:  schedules.Routes(of, fills),
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &server{t: t, api: a}
}

// answer holds an answer of the server.
type answer struct{ *httptest.ResponseRecorder }

// get returns a member of the JSON object that was answered.
func (a answer) get(t *testing.T, member string) any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(a.Body.Bytes(), &all); err != nil {
		t.Fatalf("%s: %v", a.Body, err)
	}
	return all[member]
}

// send asks with a token. A body is sent as JSON; header is name and value by turns.
func (s *server) send(secret, method, path, body string, header ...string) answer {
	return answer{apitest.Ask(s.api, secret, method, path, body, header...)}
}

// want fails unless an answer has a status and a part.
func (s *server) want(a answer, status int, part string) answer {
	s.t.Helper()
	return answer{apitest.Want(s.t, a.ResponseRecorder, status, part)}
}

// never is a definition of which no test sees a tick.
func never(behavior string) string {
	return `{"cron":"0 0 3 1 1 ? 2026,2100-2102","behavior":"` + behavior + `","params":` + params[behavior] + `}`
}

var params = map[string]string{"noop": `{}`, "sleep": `{"duration":"1h"}`, "exec": `{}`}

// set makes a schedule, or changes it, as an operator.
func (s *server) set(name, definition string) {
	s.t.Helper()
	if got := s.send("operator", "PUT", "/v1/schedules/"+name, definition); got.Code >= 300 {
		s.t.Fatalf("set %s: status %d: %s", name, got.Code, got.Body)
	}
}
