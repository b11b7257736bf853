package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"taskledger/engine/embedded"
	"taskledger/task"
)

// runMain has this process, started again by a test, be the program, by its arguments.
const runMain = "RUN_UPDATES"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// scene is a directory that the program follows, and a publisher.
type scene struct {
	t         *testing.T
	ctx       context.Context
	dir, data string
	want      map[string]string // files by path
	program   *exec.Cmd
	js        jetstream.JetStream
}

// start starts the program and connects to its NATS.
func (s *scene) start() {
	s.t.Helper()
	s.program = exec.CommandContext(s.ctx, os.Args[0], "-data", s.data, s.dir)
	s.program.Env, s.program.Stderr = append(os.Environ(), runMain+"=1"), os.Stderr
	out, err := s.program.StdoutPipe()
	if err == nil {
		err = s.program.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	_, at, _ := strings.Cut(strings.TrimSpace(line), " at ")
	url, key, found := strings.Cut(at, ", with the nkey in ")
	if !found {
		s.t.Fatalf("printed %q", line)
	}
	sign, err := nats.NkeyOptionFromSeed(key)
	if err != nil {
		s.t.Fatal(err)
	}
	conn, err := nats.Connect(url, sign)
	if err == nil {
		s.t.Cleanup(conn.Close)
		s.js, err = jetstream.New(conn)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// end ends the program.
func (s *scene) end(how os.Signal) {
	s.t.Helper()
	if err := s.program.Process.Signal(how); err != nil {
		s.t.Fatal(err)
	}
	if err := s.program.Wait(); err != nil && how != os.Kill {
		s.t.Error(err)
	}
}

func (s *scene) publish(data []byte) {
	s.t.Helper()
	if _, err := s.js.Publish(s.ctx, "files.changed", data); err != nil {
		s.t.Fatal(err)
	}
}

// send publishes events in one message.
func (s *scene) send(all ...event) {
	s.t.Helper()
	data, err := json.Marshal(all)
	if err != nil {
		s.t.Fatal(err)
	}
	s.publish(data)
	for _, e := range all {
		if e.Op == "put" {
			s.want[e.Path] = string(e.Data)
		} else {
			delete(s.want, e.Path)
		}
	}
}

// work changes many files many times.
func (s *scene) work(round int) {
	s.t.Helper()
	for i := range 100 {
		name := fmt.Sprintf("d%d/f%d", i%3, i%20)
		s.send(event{Op: "put", Path: name, Data: fmt.Appendf(nil, "%d.%d", round, i)})
		switch i % 10 {
		case 3: // it is renamed
			s.send(event{Op: "remove", Path: name}, event{Op: "put", Path: name + "-moved", Data: []byte("moved")})
		case 7:
			s.send()
		}
	}
}

// differs tells the first difference of the directory from what it should be; "" = there is none.
func (s *scene) differs() string {
	found := 0
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		found++
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if want, ok := s.want[name]; err == nil && (!ok || want != string(data)) {
			err = fmt.Errorf("%s holds %q, want %q", name, data, want)
		}
		return err
	})
	switch {
	case err != nil:
		return err.Error()
	case found != len(s.want):
		return fmt.Sprintf("%d files, want %d", found, len(s.want))
	}
	return ""
}

// equal waits until the directory is as it should be.
func (s *scene) equal() {
	s.t.Helper()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for {
		differs := s.differs()
		if differs == "" {
			return
		}
		select {
		case <-every.C:
		case <-s.ctx.Done():
			s.t.Fatal(errors.Join(context.Cause(s.ctx), errors.New(differs)))
		}
	}
}

func TestUpdates_MakeTheDirectoryWhatTheEventsSayThoughTheProgramIsKilled(t *testing.T) {
	t.Parallel()
	data, err := os.MkdirTemp("", "up-") // a short path, for the socket of etcd
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data) })
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	s := &scene{
		t:    t,
		ctx:  ctx,
		dir:  t.TempDir(),
		data: data,
		want: map[string]string{},
	}
	s.start()
	s.work(1)
	s.publish([]byte("this is no event"))
	s.publish([]byte(`[{"op":"put","path":"../outside"}]`))
	s.equal()
	s.work(2)
	s.end(os.Kill)
	s.start()
	s.work(3)
	s.equal()
	s.end(os.Interrupt)
	s.parked()
}

// parked fails the test unless each of the two messages that are no events is parked as a suspended task.
func (s *scene) parked() {
	s.t.Helper()
	node, err := embedded.StartWith(s.ctx, embedded.Config{Dir: s.data, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	defer node.Close()
	parked := 0
	for is, err := range node.List(s.ctx, task.Filter{Behavior: "updates"}) {
		if err != nil {
			s.t.Fatal(err)
		}
		if is.ID != "updates" && is.Suspended {
			parked++
		}
	}
	if parked != 2 {
		s.t.Errorf("%d messages are parked, want the two that are no events", parked)
	}
}
