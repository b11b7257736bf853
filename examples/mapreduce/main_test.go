package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func build(t *testing.T, dir, pkg string) string {
	t.Helper()
	program := filepath.Join(dir, filepath.Base(pkg))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return program
}

// owner is a node that can be killed and started again where it was.
type owner struct {
	t            *testing.T
	program, dir string
	api, at      string
	cmd          *exec.Cmd
	errs         bytes.Buffer
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (o *owner) start() {
	o.t.Helper()
	o.cmd = exec.CommandContext(context.WithoutCancel(o.t.Context()), o.program, "serve", "--data", o.dir, "--api", o.api, "--store-listen", o.at, "--ttl", "3s", "--archive", "keep")
	o.cmd.Stderr = &o.errs
	out, err := o.cmd.StdoutPipe()
	if err == nil {
		err = o.cmd.Start()
	}
	if err != nil {
		o.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "store") {
	}
	go func() {
		for lines.Scan() {
		}
	}()
}

func (o *owner) kill() {
	o.t.Helper()
	if err := o.cmd.Process.Kill(); err != nil {
		o.t.Fatal(err)
	}
	_ = o.cmd.Wait() // it was killed
}

// The counts are those of a direct count, though a worker dies with a claim, and then the owner of the store.
func TestMapReduce_CountsEachWordOnceThoughAWorkerAndTheOwnerAreKilled(t *testing.T) {
	texts := filepath.Join(t.TempDir(), "texts")
	writeTexts(t, texts)
	want := map[string]int{}
	if err := filepath.WalkDir(texts, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		count(string(text), want)
		return err
	}); err != nil {
		t.Fatal(err)
	}

	bin := t.TempDir()
	program := build(t, bin, "taskledger/examples/mapreduce")
	o := &owner{t: t, program: build(t, bin, "taskledger/cmd/node"), dir: filepath.Join(bin, "data"), api: freeAddress(t), at: freeAddress(t)}
	o.start()
	defer func() { o.kill() }()
	made, err := exec.CommandContext(t.Context(), o.program, "token", "new", "mapreduce", "--role", "submitter", "--prefix", "store:default", "--data", o.dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(tokensWithin)
	secret := strings.TrimSpace(string(made))
	s, err := newStore("http://"+o.at, secret)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	run := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		t.Helper()
		var out bytes.Buffer
		c := exec.CommandContext(ctx, program, append(append([]string{"-url", s.url}, args...), texts)...)
		c.Env = append(os.Environ(), "MAPREDUCE_TOKEN="+secret)
		c.Stdout, c.Stderr = &out, os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c, &out
	}
	leader, out := run("-workers", "0", "-top", "0")
	for left := 0; left == 0; { // until one was killed that held a task
		w, _ := run("-work")
		held(ctx, t, s)
		if err := w.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = w.Wait()
		left = claimed(ctx, t, s)
	}
	for range 2 {
		w, _ := run("-work")
		defer func() {
			_ = w.Process.Kill()
			_ = w.Wait()
		}()
	}
	o.kill()
	o.start()
	if err := leader.Wait(); err != nil {
		t.Fatalf("%v; the node says: %s", err, o.errs.String())
	}
	var expected bytes.Buffer
	if err := show(&expected, want, 0); err != nil {
		t.Fatal(err)
	}
	if out.String() != expected.String() {
		t.Errorf("%d bytes of counts, want %d; they begin with %.100s, want %.100s", out.Len(), expected.Len(), out.String(), expected.String())
	}
	if groups := leftOver(ctx, t, s); groups != "[result]" {
		t.Errorf("groups left: %s", groups)
	}
}

// writeTexts writes files of some pieces each, one of words without end, and one whose name has colons.
func writeTexts(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		var text strings.Builder
		for n := range 20_000 {
			fmt.Fprintf(&text, "w%d né%d, ", n%(i+3), n*n%977)
		}
		if err := os.WriteFile(filepath.Join(dir, "below", fmt.Sprintf("a:%d:7", i)), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "long"), []byte(strings.Repeat("x", 3*pieceBytes)+" \xff\xfex y"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// claimed is how many pieces are claimed.
func claimed(ctx context.Context, t *testing.T, s *store) (n int) {
	t.Helper()
	all, err := s.list(ctx, mapGroup, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, is := range all {
		if is.Timespec > time.Now().UnixMilli() {
			n++
		}
	}
	return n
}

// held waits until a worker holds a piece.
func held(ctx context.Context, t *testing.T, s *store) {
	t.Helper()
	for claimed(ctx, t, s) == 0 {
		if ctx.Err() != nil {
			t.Fatal("no worker has claimed anything")
		}
	}
}

func leftOver(ctx context.Context, t *testing.T, s *store) string {
	t.Helper()
	var names []string
	if err := s.ask(ctx, "GET", "/groups?linear=1", nil, &names); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(names)
}

func TestPiece_OfAnyPathIsReadAsItWasWritten(t *testing.T) {
	for _, p := range []piece{{"a", 0, 1}, {"a:b/c:1:2", 65536, 131072}, {"", 0, 0}} {
		if got, err := parsePiece(p.String()); err != nil || got != p {
			t.Errorf("%q: %+v, %v", p.String(), got, err)
		}
	}
	for _, text := range []string{"", "a", "a:1", "a:x:1", "a:1:x"} {
		if p, err := parsePiece(text); err == nil {
			t.Errorf("%q is taken for %+v", text, p)
		}
	}
}
