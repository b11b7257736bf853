package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/cluster"
	"taskledger/cmd/node/internal/connect"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/internal/connection"
	"taskledger/natsbus"
)

var discard = slog.New(slog.DiscardHandler)

// servers is the NATS and etcd under measurement: NATS in this process, etcd too or in a child that ends with it.
type servers struct {
	embedded *embedded.Servers // beside a child its etcd is idle
	child    *child            // nil: etcd is in this process
	raw      *clientv3.Client  // of the kind that the engine uses
	shards   int               // of the cluster; 0 = the default
}

// startServers starts servers in this process, and etcd in a process of its own when self is not empty.
func startServers(ctx context.Context, self []string) (s *servers, err error) {
	s = &servers{}
	if s.embedded, err = embedded.StartServers(ctx, embedded.ServersConfig{Log: discard}); err != nil {
		return nil, err
	}
	if len(self) == 0 {
		s.raw = s.embedded.EtcdClient()
		return s, nil
	}
	if s.child, err = startChild(self); err != nil {
		return nil, errors.Join(fmt.Errorf("start etcd in a process of its own: %w", err), s.embedded.Close())
	}
	s.raw, err = etcdstore.NewClient(ctx, etcdstore.Config{Endpoints: []string{s.child.Etcd}})
	if err != nil {
		return nil, errors.Join(err, s.child.close(), s.embedded.Close())
	}
	return s, nil
}

// link opens one more store and bus.
func (s *servers) link(ctx context.Context) (*connect.Link, error) {
	if s.child == nil {
		return connect.On(ctx, s.embedded, "", s.shards, discard)
	}
	is, err := connection.Open(ctx, connection.Config{
		Etcd: etcdstore.Config{
			Endpoints: []string{s.child.Etcd},
			Shards:    s.shards,
			Log:       discard,
		},
		NATS: natsbus.Config{
			URLs:      []string{s.embedded.NATSURL()},
			InProcess: s.embedded.NATSInProcess(),
			NKey:      s.embedded.NATSNKey(),
			Log:       discard,
		},
		Archive: embedded.ArchiveConfig(),
		New:     true,
	})
	if err != nil {
		return nil, err
	}
	return &connect.Link{Cluster: &cluster.Cluster{
		Store:   is.Store,
		Bus:     is.Bus,
		Archive: is.Archive,
		Logs:    is.Logs,
	}}, nil
}

// applied returns the number of requests that write which etcd has applied so far.
func (s *servers) applied(ctx context.Context) (uint64, error) {
	endpoint := "" // a client in the process has none
	if s.child != nil {
		endpoint = s.raw.Endpoints()[0]
	}
	status, err := s.raw.Status(ctx, endpoint)
	if err != nil {
		return 0, fmt.Errorf("ask etcd for its status: %w", err)
	}
	return status.RaftAppliedIndex, nil
}

// cpu is the processor time used so far, by this process and by the servers'.
func (s *servers) cpu() (time.Duration, error) {
	used, err := processCPU()
	if err != nil || s.child == nil {
		return used, err
	}
	more, err := s.child.cpu()
	return used + more, err
}

func (s *servers) close() error {
	if s.child == nil {
		return s.embedded.Close()
	}
	return errors.Join(s.raw.Close(), s.child.close(), s.embedded.Close())
}

func processCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// greeting is the first message of a child.
type greeting struct{ Etcd string }

// child is a process of this program: etcd, or the generator of a load. It ends when its standard input does, so it
// never outlives this process.
type child struct {
	greeting
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func startChild(self []string) (*child, error) {
	c, err := spawn(self)
	if err != nil {
		return nil, err
	}
	line, err := c.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.greeting)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("greeting: %w", err), c.close())
	}
	return c, nil
}

// spawn starts a process that ends with its standard input.
func spawn(self []string) (*child, error) {
	c := &child{process: exec.Command(self[0], self[1:]...)}
	// A signal to the terminal's process group must not end the servers while nodes drain.
	c.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if c.in, err = c.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	return c, nil
}

// cpu asks the child for its processor time.
func (c *child) cpu() (time.Duration, error) {
	if _, err := io.WriteString(c.in, "cpu\n"); err != nil {
		return 0, fmt.Errorf("ask etcd for its processor time: %w", err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("ask etcd for its processor time: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return time.Duration(n), err
}

func (c *child) close() error { return errors.Join(c.in.Close(), c.process.Wait()) }

// Serve is the child: it runs etcd on temporary data, greets with its address, answers every line of in with the
// processor time used so far in nanoseconds, and ends with in.
func Serve(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	s, err := embedded.StartServers(context.WithoutCancel(ctx), embedded.ServersConfig{NoNATS: true, Log: discard})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := json.NewEncoder(out).Encode(greeting{s.EtcdEndpoint()}); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		used, err := processCPU()
		if err != nil {
			return err
		}
		fmt.Fprintln(out, used.Nanoseconds())
	}
	return nil
}
