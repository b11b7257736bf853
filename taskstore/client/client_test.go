package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/stores"
	"taskledger/api/token"
	"taskledger/internal/testcluster"
	"taskledger/taskstore/client"
	"taskledger/taskstore/taskstoretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type anyToken struct{}

func (anyToken) Find(string) *token.Token {
	return &token.Token{Name: "sam", Role: token.Submitter}
}

// serve serves the stores of a node of its own, and returns the URL of the API.
func serve(t *testing.T) string {
	t.Helper()
	of := operations.Direct{Client: testcluster.New(t, testcluster.Options{Shards: 4}).StartNode("a", nil).Client}
	a, err := api.New(api.Config{Client: of, Tokens: anyToken{}, Version: "test", Routes: stores.Routes(of), Dialects: []api.Dialect{stores.Dialect()},
		Limits: api.Limits{PerSecond: 1e6, Burst: 1e6, InFlight: 1e6}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return "http://" + l.Addr().String()
}

// lossy loses the answer of every third request, after the server has carried it out.
type lossy struct {
	http.RoundTripper
	n atomic.Int64
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err == nil && l.n.Add(1)%3 == 0 {
		answer.Body.Close()
		return nil, errors.New("the answer is lost")
	}
	return answer, err
}

func TestStore_KeepsThePromisesOfTaskStoresAlsoWhereAnswersAreLost(t *testing.T) {
	for _, loses := range []bool{false, true} {
		t.Run(fmt.Sprint("loses=", loses), func(t *testing.T) {
			url := serve(t)
			transport := &http.Transport{}
			t.Cleanup(transport.CloseIdleConnections)
			over := http.RoundTripper(transport)
			if loses {
				over = &lossy{RoundTripper: transport}
			}
			var names atomic.Int64
			taskstoretest.Run(t, func(t *testing.T) (one, other taskstoretest.Store) {
				cfg := client.Config{URL: fmt.Sprint(url, "/store/s", names.Add(1)), Token: "secret", HTTP: &http.Client{Transport: over}}
				var both [2]taskstoretest.Store
				for i := range both {
					s, err := client.New(cfg)
					if err != nil {
						t.Fatal(err)
					}
					both[i] = s
				}
				return both[0], both[1]
			})
		})
	}
}

func TestNew_RefusesWhatIsNoURLOfAStore(t *testing.T) {
	for _, at := range []string{"", "localhost:7400", "ftp://x/store/a", "http://", "http://x/store/a?b=c"} {
		if _, err := client.New(client.Config{URL: at}); err == nil {
			t.Errorf("%q is taken", at)
		}
	}
}
