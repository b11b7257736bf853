package overstore

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/stores"
	"taskledger/api/token"
	"taskledger/cmd/node/internal/bench"
)

const (
	connections = 32
	secret      = "of the benchmark"
)

// HTTPResult holds the cost of cycles over HTTP, from windows that alternate with windows of as many workers in the
// process.
type HTTPResult struct {
	CyclesPerS    float64 `json:"cycles_per_s"`
	InProcessPerS float64 `json:"in_process_cycles_per_s"`
	Ratio         float64 `json:"ratio"`            // median over pairs of neighbouring windows
	CPUUs         float64 `json:"cpu_us_per_cycle"` // of this process: nodes, servers and API, and not who asks
	InProcessUs   float64 `json:"in_process_cpu_us_per_cycle"`
	Depth         int     `json:"depth"`
}

// RunHTTP measures a store over HTTP; asker is the command line of the process that runs Ask.
func RunHTTP(ctx context.Context, cfg Config, asker []string) (r HTTPResult, err error) {
	pair, err := bench.StartPair(ctx, connections)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	cfg.Workers, r.Depth = connections, cfg.Depth
	m := measurement{pair: pair, cfg: cfg, data: make([]byte, payload)}
	if err := m.begin(ctx); err != nil {
		return r, err
	}
	of := operations.Direct{Client: pair.Client}
	served, err := api.New(api.Config{
		Client:       of,
		Tokens:       onlyToken{},
		Routes:       stores.Routes(of.Stores()),
		ErrorFormats: []api.ErrorFormat{stores.ErrorFormat()},
		Limits:       api.Limits{PerSecond: 1e6, Burst: 1e6, InFlight: 1e6},
	})
	if err != nil {
		return r, err
	}
	network, address := "tcp", "127.0.0.1:0"
	if cfg.Unix {
		dir, err := os.MkdirTemp("", "taskledger-bench-")
		if err != nil {
			return r, err
		}
		defer os.RemoveAll(dir)
		network, address = "unix", filepath.Join(dir, "api")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return r, err
	}
	serving, stop := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return served.Serve(serving, l) })
	defer func() { stop(); err = errors.Join(err, g.Wait()) }()
	child, err := bench.Spawn(asker)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, child.Close()) }()
	window := max(2*time.Second, cfg.Duration/8)
	var over, here counted
	var ratios []float64
	for range max(2, int(cfg.Duration/(2*window))) {
		a, err := order(child, asking{network, l.Addr().String(), m.store, window}, &over)
		if err != nil {
			return r, err
		}
		b, err := m.count(ctx, window, m.cycle, &here)
		if err != nil {
			return r, err
		}
		ratios = append(ratios, a/b)
	}
	return HTTPResult{over.perSecond(), here.perSecond(), bench.Median(ratios), over.perOne(), here.perOne(), cfg.Depth}, nil
}

type onlyToken struct{}

// Find implements api.Tokens.
func (onlyToken) Find(text string) *token.Token {
	if text != secret {
		return nil
	}
	return &token.Token{Name: "asker", Role: token.Submitter}
}

// asking is a window of cycles, as this process orders it, and asked what came of it.
type asking struct {
	Network string
	Address string
	Store   string
	Window  time.Duration
}

type asked struct {
	Count int
	Took  time.Duration
	Err   string
}

// order has a process ask, and returns how often a second.
func order(to bench.Child, o asking, c *counted) (float64, error) {
	before, err := bench.CPU()
	if err != nil {
		return 0, err
	}
	if err := json.NewEncoder(to.In).Encode(o); err != nil {
		return 0, fmt.Errorf("order cycles: %w", err)
	}
	var got asked
	line, err := to.Out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &got)
	}
	if err == nil && got.Err != "" {
		err = errors.New(got.Err)
	}
	if err != nil {
		return 0, fmt.Errorf("who asks over HTTP: %w", err)
	}
	after, err := bench.CPU()
	c.n, c.took, c.cpu = c.n+got.Count, c.took+got.Took, c.cpu+after-before
	return float64(got.Count) / got.Took.Seconds(), err
}

// Ask is the process that asks over HTTP: it obeys every line of in, and ends with in.
func Ask(ctx context.Context, in io.Reader, out io.Writer) error {
	runtime.GOMAXPROCS(1) // it does little, and leaves the other processors to what is measured
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var o asking
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		got, err := ask(ctx, o)
		if err != nil {
			got.Err = err.Error()
		}
		if err := json.NewEncoder(out).Encode(got); err != nil {
			return err
		}
	}
	return nil
}

// ask makes a window of cycles.
func ask(ctx context.Context, o asking) (got asked, err error) {
	conns := make([]*connection, connections)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	for i := range conns {
		c, err := (&net.Dialer{}).DialContext(ctx, o.Network, o.Address)
		if err != nil {
			return got, err
		}
		conns[i] = &connection{Conn: c, in: bufio.NewReader(c), store: o.Store}
	}
	got.Count, got.Took, _, err = bench.Loop(ctx, connections, o.Window, func(_ context.Context, worker int) error { return conns[worker].cycle(worker + 1) })
	return got, err
}

// connection is kept alive. It reads no more of HTTP than the node writes: a general client would share the processors
// with what is measured for longer.
type connection struct {
	net.Conn
	in        *bufio.Reader
	store     string
	out, text []byte // of the latest request and answer
}

var data = fmt.Sprintf("%0*d", payload, 0)

func (c *connection) cycle(client int) error {
	text, err := c.post("claim", fmt.Appendf(nil, `{"clientid":%d,"group":%q,"duration":%d}`, client, group, held.Milliseconds()))
	if err != nil {
		return err
	}
	var got struct{ Tasks []struct{ ID int64 } }
	if err := json.Unmarshal(text, &got); err != nil {
		return err
	}
	if len(got.Tasks) == 0 {
		return errors.New("there was nothing to be claimed")
	}
	_, err = c.post("update", fmt.Appendf(nil, `{"clientid":%d,"deletes":[%d],"adds":[{"group":%q,"data":%q}]}`, client, got.Tasks[0].ID, group, data))
	return err
}

// post sends a request and returns its answer, which must be 200, until the next one.
func (c *connection) post(what string, body []byte) ([]byte, error) {
	c.out = fmt.Appendf(c.out[:0], "POST /store/%s/%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		c.store, what, secret, len(body), body)
	if _, err := c.Write(c.out); err != nil {
		return nil, err
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
		return nil, err
	}
	c.text = slices.Grow(c.text[:0], length)[:length]
	if _, err := io.ReadFull(c.in, c.text); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(status, "HTTP/1.1 200 ") {
		return nil, fmt.Errorf("%s: %s: %s", what, strings.TrimSpace(status), c.text)
	}
	return c.text, nil
}
