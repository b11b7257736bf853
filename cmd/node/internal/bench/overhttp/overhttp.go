// Package overhttp measures the HTTP API against the same calls in the process.
package overhttp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/bench"
	"taskledger/task"
)

const (
	connections = 64
	healthy     = 8    // connections whose requests are timed beside idle ones
	batchTasks  = 1000 // tasks in a batch
	batchers    = 4    // connections, or callers, that submit batches
	secret      = "of the benchmark"
)

// Config says how.
type Config struct {
	Duration time.Duration // of all windows together; at least four are made
	Idle     int           // connections that ask nothing any more
	Asker    []string      // command line of the process that runs Ask
}

// Result holds the cost of the HTTP API, from windows that alternate with windows of the same load in this process.
type Result struct {
	TasksPerS      float64 `json:"tasks_per_s"` // submitted and waited for by 64 connections
	InProcessPerS  float64 `json:"in_process_tasks_per_s"`
	Ratio          float64 `json:"ratio"`           // median over pairs of neighbouring windows
	CPUUsPerTask   float64 `json:"cpu_us_per_task"` // of this process: nodes, servers and API, and not who asks
	InProcessUs    float64 `json:"in_process_cpu_us_per_task"`
	ExtraUs        float64 `json:"extra_cpu_us_per_task"`
	BareUs         float64 `json:"bare_cpu_us_per_request"` // of a handler of net/http that does nothing for as long as a task takes
	BatchPerS      float64 `json:"batch_tasks_per_s"`       // batches of 1,000, each waited for, of 4 callers
	BatchInProcess float64 `json:"batch_in_process_tasks_per_s"`
	BatchRatio     float64 `json:"batch_ratio"`
	P99Ms          float64 `json:"p99_ms"` // of 8 connections
	IdleP99Ms      float64 `json:"idle_p99_ms"`
	Idle           int     `json:"idle_connections"` // meanwhile
}

// Bounds holds the worst values that a result may have; zero bounds nothing.
type Bounds struct {
	Ratio   float64 // least of Ratio and BatchRatio
	ExtraUs float64
	Idle    float64 // p99 beside idle connections by that without
}

// Within returns an error that names the bound which a result breaks.
func (r *Result) Within(b Bounds) error {
	switch {
	case min(r.Ratio, r.BatchRatio) < b.Ratio:
		return fmt.Errorf("ratio %.2f and %.2f of batches: below the %.2f asked for", r.Ratio, r.BatchRatio, b.Ratio)
	case b.ExtraUs > 0 && r.ExtraUs > b.ExtraUs:
		return fmt.Errorf("a task over HTTP costs %.1f us more, above the %.1f allowed", r.ExtraUs, b.ExtraUs)
	case b.Idle > 0 && r.IdleP99Ms > b.Idle*r.P99Ms:
		return fmt.Errorf("p99 %.1f ms beside idle connections, above %.1f times the %.1f ms without", r.IdleP99Ms, b.Idle, r.P99Ms)
	}
	return nil
}

// asking is a window of requests, as this process orders it.
type asking struct {
	Network     string
	Address     string
	Connections int
	Millis      int
	Batch       int // tasks of a request; 0 = one, which waits for its outcome
	Idle        int // instead: connections to open, and to keep until the next order
}

// asked holds the result of a window of requests.
type asked struct {
	Count  int // tasks
	Micros int64
	P99Ms  float64
	Err    string
}

// Run measures the HTTP API: one node serves it and runs nothing, another runs the tasks.
func Run(ctx context.Context, cfg Config) (r Result, err error) {
	pair, err := bench.StartPair(ctx, connections)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	served, err := api.New(api.Config{Client: operations.Direct{Client: pair.Client}, Tokens: onlyToken{}, Limits: api.Limits{PerSecond: 1e6, Burst: 1e6, InFlight: 1e6}})
	if err != nil {
		return r, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	serving, stop := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return served.Serve(serving, l) })
	defer func() { stop(); err = errors.Join(err, g.Wait()) }()
	asker, err := bench.Spawn(cfg.Asker)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, asker.Close()) }()
	m := measurement{asker: asker, at: l.Addr(), pair: pair, window: max(2*time.Second, cfg.Duration/8)}
	if err := m.single(ctx, &r, max(2, int(cfg.Duration/(4*m.window)))); err != nil {
		return r, err
	}
	if err := m.bare(&r); err != nil {
		return r, err
	}
	if err := m.batches(ctx, &r); err != nil {
		return r, err
	}
	return r, m.besideIdle(&r, cfg)
}

// onlyToken is the token of who asks.
type onlyToken struct{}

// Find implements api.Tokens.
func (onlyToken) Find(text string) *token.Token {
	if text != secret {
		return nil
	}
	return &token.Token{Name: "asker", Role: token.Submitter}
}

type measurement struct {
	asker  bench.Child
	at     net.Addr // address of the API
	pair   *bench.Pair
	window time.Duration
}

// order has a process ask, and returns what came of it, with the processor time of this one.
func (m *measurement) order(to bench.Child, o asking) (got asked, cpu time.Duration, err error) {
	o.Network, o.Address, o.Millis = m.at.Network(), m.at.String(), int(m.window.Milliseconds())
	before, err := bench.CPU()
	if err != nil {
		return got, 0, err
	}
	if err := json.NewEncoder(to.In).Encode(o); err != nil {
		return got, 0, fmt.Errorf("order requests: %w", err)
	}
	line, err := to.Out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &got)
	}
	if err == nil && got.Err != "" {
		err = errors.New(got.Err)
	}
	if err != nil {
		return got, 0, fmt.Errorf("who asks over HTTP: %w", err)
	}
	after, err := bench.CPU()
	return got, after - before, err
}

func (a asked) perSecond() float64 { return float64(a.Count) / (float64(a.Micros) / 1e6) }

// single compares tasks that are submitted and waited for one by one.
func (m *measurement) single(ctx context.Context, r *Result, pairs int) error {
	var here, over []float64
	var ratios []float64
	var hereCPU, overCPU time.Duration
	hereTasks, overTasks := 0, 0
	if _, _, err := m.order(m.asker, asking{Connections: connections}); err != nil { // which warms both up
		return err
	}
	for range pairs {
		before, err := bench.CPU()
		if err != nil {
			return err
		}
		count, took, _, err := bench.Loop(ctx, connections, m.window, m.pair.SubmitAndWait())
		if err != nil {
			return err
		}
		after, err := bench.CPU()
		if err != nil {
			return err
		}
		got, cpu, err := m.order(m.asker, asking{Connections: connections})
		if err != nil {
			return err
		}
		perSecond := float64(count) / took.Seconds()
		here, over = append(here, perSecond), append(over, got.perSecond())
		ratios = append(ratios, got.perSecond()/perSecond)
		hereCPU, overCPU = hereCPU+after-before, overCPU+cpu
		hereTasks, overTasks = hereTasks+count, overTasks+got.Count
	}
	r.TasksPerS, r.InProcessPerS, r.Ratio = bench.Median(over), bench.Median(here), bench.Median(ratios)
	r.CPUUsPerTask = float64(overCPU.Microseconds()) / float64(overTasks)
	r.InProcessUs = float64(hereCPU.Microseconds()) / float64(hereTasks)
	r.ExtraUs = r.CPUUsPerTask - r.InProcessUs
	return nil
}

// bare tells what net/http takes by itself: a request that waits as long as a task does, and is answered by a constant.
func (m *measurement) bare(r *Result) (err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	takes := time.Duration(float64(connections) / r.InProcessPerS * float64(time.Second))
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(takes)
		_, _ = io.WriteString(w, `{"id":"bpq5wq2ahv6oxk4jwrbuipz2pe","status":"SUCCESS","result":null}`)
	})}
	var g errgroup.Group
	g.Go(func() error {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	defer func() { err = errors.Join(err, s.Close(), g.Wait()) }()
	api := m.at
	m.at = l.Addr()
	defer func() { m.at = api }()
	got, cpu, err := m.order(m.asker, asking{Connections: connections})
	r.BareUs = float64(cpu.Microseconds()) / float64(max(1, got.Count))
	return err
}

// batches compares tasks that are submitted a thousand at a time.
func (m *measurement) batches(ctx context.Context, r *Result) error {
	var ratios, here, over []float64
	for range 2 {
		count, took, _, err := bench.Loop(ctx, batchers, m.window, func(ctx context.Context, _ int) error { return submitBatch(ctx, m.pair) })
		if err != nil {
			return err
		}
		got, _, err := m.order(m.asker, asking{Connections: batchers, Batch: batchTasks})
		if err != nil {
			return err
		}
		perSecond := batchTasks * float64(count) / took.Seconds()
		here, over = append(here, perSecond), append(over, got.perSecond())
		ratios = append(ratios, got.perSecond()/perSecond)
	}
	r.BatchPerS, r.BatchInProcess, r.BatchRatio = bench.Median(over), bench.Median(here), bench.Median(ratios)
	return nil
}

// submitBatch submits a batch, and waits for its last task.
func submitBatch(ctx context.Context, n *bench.Pair) error {
	requests := make([]task.Request, batchTasks)
	for i := range requests {
		requests[i].Behavior = builtin.Noop()
	}
	results := n.SubmitMany(ctx, requests, task.ManyOptions{})
	for _, one := range results {
		if one.Err != nil {
			return one.Err
		}
	}
	_, err := results[len(results)-1].Wait(ctx)
	return err
}

// besideIdle compares the times of requests with those beside connections that do nothing.
func (m *measurement) besideIdle(r *Result, cfg Config) error {
	base, _, err := m.order(m.asker, asking{Connections: healthy})
	if err != nil || cfg.Idle == 0 {
		r.P99Ms = base.P99Ms
		return err
	}
	idler, err := bench.Spawn(cfg.Asker)
	if err != nil {
		return err
	}
	held, _, err := m.order(idler, asking{Idle: cfg.Idle})
	var beside asked
	if err == nil {
		beside, _, err = m.order(m.asker, asking{Connections: healthy})
	}
	r.P99Ms, r.IdleP99Ms, r.Idle = base.P99Ms, beside.P99Ms, held.Count
	return errors.Join(err, idler.Close())
}

// Ask is the process that asks over HTTP: it obeys every line of in, and ends with in.
func Ask(ctx context.Context, in io.Reader, out io.Writer) error {
	runtime.GOMAXPROCS(1) // it does little, and leaves the other processors to what is measured
	encode := json.NewEncoder(out)
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			_ = c.Close()
		}
	}()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var o asking
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		var got asked
		var err error
		if o.Idle > 0 {
			idle, err = openIdle(ctx, o)
			got.Count = len(idle)
		} else {
			got, err = ask(ctx, o)
		}
		if err != nil {
			got.Err = err.Error()
		}
		if err := encode.Encode(got); err != nil {
			return err
		}
	}
	return nil
}

// ask makes a window of requests.
func ask(ctx context.Context, o asking) (got asked, err error) {
	conns := make([]*connection, o.Connections)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	for i := range conns {
		if conns[i], err = dial(ctx, o); err != nil {
			return got, err
		}
	}
	tasks := 1
	submit := request("POST /v1/tasks?wait=30s", `{"behavior":"noop"}`)
	one := func(_ context.Context, worker int) error { return conns[worker].ask(submit, nil) }
	if o.Batch > 0 {
		tasks = o.Batch
		batch := request("POST /v1/tasks:batch", `{"tasks":[`+strings.Repeat(`{"behavior":"noop"},`, o.Batch-1)+`{"behavior":"noop"}]}`)
		one = func(_ context.Context, worker int) error {
			var made struct{ Tasks []struct{ ID string } }
			if err := conns[worker].ask(batch, &made); err != nil {
				return err
			}
			return conns[worker].ask(request("GET /v1/tasks/"+made.Tasks[len(made.Tasks)-1].ID+"?wait=30s", ""), nil)
		}
	}
	count, took, p99, err := bench.Loop(ctx, o.Connections, time.Duration(o.Millis)*time.Millisecond, one)
	return asked{Count: tasks * count, Micros: took.Microseconds(), P99Ms: p99}, err
}

// connection is kept alive by who asks. A general client would share its two processors with what is measured for
// longer.
type connection struct {
	net.Conn
	in *bufio.Reader
}

func dial(ctx context.Context, o asking) (*connection, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, o.Network, o.Address)
	if err != nil {
		return nil, err
	}
	return &connection{c, bufio.NewReader(c)}, nil
}

// request is the text of a request.
func request(line, body string) []byte {
	text := line + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + secret + "\r\n"
	if body != "" {
		text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return []byte(text + "\r\n" + body)
}

// ask sends a request, whose answer must be 200.
func (c *connection) ask(request []byte, into any) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		line, _, _ := strings.Cut(string(request), " HTTP")
		err = fmt.Errorf("%s: %s: %s", line, resp.Status, text)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// openIdle opens connections, each of which makes one request.
func openIdle(ctx context.Context, o asking) (all []net.Conn, err error) {
	health := request("GET /v1/health", "")
	for range o.Idle {
		c, err := dial(ctx, o)
		if err != nil {
			return all, err
		}
		all = append(all, c)
		if err := c.ask(health, nil); err != nil {
			return all, fmt.Errorf("idle connection %d: %w", len(all), err)
		}
	}
	return all, nil
}
