package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// roleVariable names the environment variable with the role of a process that a measurement has started.
const roleVariable = "TASKLEDGER_BENCH_ROLE"

// roles do in a process of their own what must not share that of the nodes. Each obeys its input, line by line, until
// it ends.
var roles = map[string]func(ctx context.Context, in *json.Decoder, out *json.Encoder) error{
	"etcd":      serveEtcd,
	"generator": generate,
	"caller":    askHTTP,
	"viewer":    lookAtPages,
}

func TestMain(m *testing.M) {
	role := roles[os.Getenv(roleVariable)]
	if role == nil {
		os.Exit(m.Run())
	}
	err := role(context.Background(), json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout))
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child is a process of this program in a role. It ends with its standard input, so it never outlives this process.
type child struct {
	process *exec.Cmd
	end     io.Closer
	in      *json.Encoder
	out     *json.Decoder
}

// spawn starts a process, which ends with the measurement at the latest.
func spawn(tb testing.TB, role string) *child {
	tb.Helper()
	c := &child{process: exec.Command(must(os.Executable())(tb))}
	c.process.Env = append(os.Environ(), roleVariable+"="+role)
	c.process.Stderr = os.Stderr
	// A signal to the terminal's process group must not end the servers while nodes drain.
	c.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in := must(c.process.StdinPipe())(tb)
	out := must(c.process.StdoutPipe())(tb)
	c.end, c.in, c.out = in, json.NewEncoder(in), json.NewDecoder(out)
	check(tb, c.process.Start())
	tb.Cleanup(func() {
		if err := c.close(); err != nil {
			tb.Errorf("the %s: %v", role, err)
		}
	})
	return c
}

// close ends the process. Calls after the first do nothing.
func (c *child) close() error {
	if c.end == nil {
		return nil
	}
	err := errors.Join(c.end.Close(), c.process.Wait())
	c.end = nil
	return err
}

// ask sends an order, and reads the first answer.
func (c *child) ask(order, answer any) error {
	if err := c.in.Encode(order); err != nil {
		return fmt.Errorf("order: %w", err)
	}
	return c.next(answer)
}

// next reads a further answer.
func (c *child) next(answer any) error {
	if err := c.out.Decode(answer); err != nil {
		return fmt.Errorf("hear of an order: %w", err)
	}
	return nil
}
