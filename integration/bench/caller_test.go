package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/api"
	"taskledger/api/token"
	"taskledger/internal/measure"
)

const (
	secret     = "of the benchmark"
	batchTasks = 1000 // tasks of a batch
)

// asking orders a process to ask over HTTP.
type asking struct {
	Network     string
	Address     string
	Kind        string // of the requests
	Store       string // of cycles
	Connections int
	Idle        bool // the connections ask once, and are kept until the process ends
	Lasts       time.Duration
}

// asked tells what came of an order.
type asked struct {
	Count int // of tasks, cycles or idle connections
	Took  time.Duration
	P99Ms float64
	Err   string
}

// kinds holds the requests that an order may name: how much each turn of them counts, and what a connection asks in it.
var kinds = map[string]struct {
	counts int
	turn   func(c *connection, o *asking, worker int) error
}{
	"tasks":   {1, func(c *connection, _ *asking, _ int) error { return c.ask(submitOne, nil) }},
	"batches": {batchTasks, func(c *connection, _ *asking, _ int) error { return c.batch() }},
	"cycles":  {1, func(c *connection, o *asking, worker int) error { return c.cycle(o.Store, int64(worker+1)) }},
	"health":  {1, func(c *connection, _ *asking, _ int) error { return c.ask(request("GET", "/v1/health", ""), nil) }},
}

var (
	submitOne   = request("POST", "/v1/tasks?wait=30s", `{"behavior":"noop"}`)
	submitBatch = request("POST", "/v1/tasks:batch",
		`{"tasks":[`+strings.Repeat(`{"behavior":"noop"},`, batchTasks-1)+`{"behavior":"noop"}]}`)
)

// side returns the side of requests that a process makes. The processor time of its windows is that of this process,
// without that of the one which asks.
func (o asking) side(to *child) measure.Side {
	return func(_ context.Context, length time.Duration) (measure.Window, error) {
		got, cpu, err := o.order(to, length)
		return measure.Window{Count: got.Count, Took: got.Took, CPU: cpu}, err
	}
}

// order has a process ask for a while.
func (o asking) order(to *child, length time.Duration) (got asked, cpu time.Duration, err error) {
	before, err := measure.CPU()
	if err != nil {
		return got, 0, err
	}
	o.Lasts = length
	if err = to.ask(o, &got); err == nil && got.Err != "" {
		err = errors.New(got.Err)
	}
	if err != nil {
		return got, 0, fmt.Errorf("ask over HTTP: %w", err)
	}
	after, err := measure.CPU()
	return got, after - before, err
}

// askHTTP is the role of a process that asks.
func askHTTP(ctx context.Context, in *json.Decoder, out *json.Encoder) error {
	runtime.GOMAXPROCS(1) // it does little, and leaves the other processors to what is measured
	for {
		var o asking
		if err := in.Decode(&o); err != nil {
			return err
		}
		got, err := o.obey(ctx)
		if err != nil {
			got.Err = err.Error()
		}
		if err := out.Encode(got); err != nil {
			return err
		}
	}
}

// obey opens the connections and makes a window of requests.
func (o *asking) obey(ctx context.Context) (got asked, err error) {
	kind, conns := kinds[o.Kind], make([]*connection, o.Connections)
	for i := range conns {
		c, err := (&net.Dialer{}).DialContext(ctx, o.Network, o.Address)
		if err != nil {
			return got, fmt.Errorf("connection %d: %w", i, err)
		}
		if !o.Idle {
			defer c.Close()
		}
		conns[i] = &connection{Conn: c, in: bufio.NewReader(c)}
		if o.Idle {
			if err := kind.turn(conns[i], o, i); err != nil {
				return got, fmt.Errorf("idle connection %d: %w", i, err)
			}
		}
	}
	if o.Idle {
		keptIdle = conns
		return asked{Count: len(conns)}, nil
	}
	w, err := measure.Loop(ctx, len(conns), o.Lasts, func(_ context.Context, worker int) error {
		return kind.turn(conns[worker], o, worker)
	})
	if err != nil {
		return got, err
	}
	return asked{Count: kind.counts * w.Count, Took: w.Took, P99Ms: measure.Quantile(w.Times, 0.99)}, nil
}

// keptIdle holds the idle connections of this process.
var keptIdle []*connection

// connection is kept alive. It reads no more of HTTP than the node writes: a general client would share the processors
// with what is measured for longer.
type connection struct {
	net.Conn
	in   *bufio.Reader
	text []byte // of the latest answer
}

// request returns the text of a request.
func request(method, path, body string) []byte {
	text := method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\n"
	if body != "" {
		text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return []byte(text + "\r\n" + body)
}

// batch submits a batch, and waits for its last task.
func (c *connection) batch() error {
	var made struct{ Tasks []struct{ ID string } }
	if err := c.ask(submitBatch, &made); err != nil {
		return err
	}
	return c.ask(request("GET", "/v1/tasks/"+made.Tasks[len(made.Tasks)-1].ID+"?wait=30s", ""), nil)
}

// cycle claims an item, and removes it together with the addition of another.
func (c *connection) cycle(store string, client int64) error {
	path := "/store/" + store
	claim := fmt.Sprintf(`{"clientid":%d,"group":%q,"duration":%d}`, client, storeGroup, claimFor.Milliseconds())
	var got struct{ Tasks []struct{ ID int64 } }
	if err := c.ask(request("POST", path+"/claim", claim), &got); err != nil {
		return err
	}
	if len(got.Tasks) == 0 {
		return errors.New("there was nothing to be claimed")
	}
	update := fmt.Sprintf(`{"clientid":%d,"deletes":[%d],"adds":[{"group":%q,"data":"%0*d"}]}`,
		client, got.Tasks[0].ID, storeGroup, itemBytes, 0)
	return c.ask(request("POST", path+"/update", update), nil)
}

// ask sends a request, whose answer must be 200.
func (c *connection) ask(request []byte, into any) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	status, err := c.in.ReadString('\n')
	length := 0
	for line := []byte(status); err == nil && len(bytes.TrimSpace(line)) > 0; {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			break
		}
		if value, is := bytes.CutPrefix(line, []byte("Content-Length: ")); is {
			length, err = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	if err != nil {
		return err
	}
	c.text = slices.Grow(c.text[:0], length)[:length]
	if _, err := io.ReadFull(c.in, c.text); err != nil {
		return err
	}
	if !strings.HasPrefix(status, "HTTP/1.1 200 ") {
		line, _, _ := bytes.Cut(request, []byte(" HTTP"))
		return fmt.Errorf("%s: %s: %s", line, strings.TrimSpace(status), c.text)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(c.text, into)
}

// tokens finds the token of a text.
type tokens func(text string) *token.Token

// Find implements api.Tokens.
func (t tokens) Find(text string) *token.Token { return t(text) }

// onlyToken finds the token of those who ask.
func onlyToken(text string) *token.Token {
	if text != secret {
		return nil
	}
	return &token.Token{Name: "caller", Role: token.Submitter}
}

// serveAPI serves an API, and runs what stands beside it, until the measurement ends.
func serveAPI(tb testing.TB, network, address string, cfg api.Config, beside ...func(context.Context) error) net.Addr {
	tb.Helper()
	served := must(api.New(cfg))(tb)
	l := must(net.Listen(network, address))(tb)
	serving, stop := context.WithCancel(context.WithoutCancel(tb.Context()))
	g, serving := errgroup.WithContext(serving)
	g.Go(func() error { return served.Serve(serving, l) })
	for _, run := range beside {
		g.Go(func() error { return run(serving) })
	}
	tb.Cleanup(func() {
		stop()
		ended(tb, g.Wait())
	})
	return l.Addr()
}
