package enginetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// users holds what a user has in a module with three tests.
var users = map[string]string{
	"go.mod": "module example.org/user\n\ngo " + goVersion() + "\n",
	"user_test.go": `package user_test

import (
	"context"
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/behaviors"
	"taskledger/engine/enginetest"
	"taskledger/task"
)

// A user's golden files may have the flag that those of many have.
var update = flag.Bool("update", false, "write golden files")

var greet = behaviors.Define[string, string]("greet", nil)

func hello(_ context.Context, name string) (string, error) { return "hello " + name, nil }

func TestOne(t *testing.T) {
	n := enginetest.Memory(t, greet.Bind(hello))
	f, err := greet.Submit(t.Context(), n.Client, "ada")
	if err != nil {
		t.Fatal(err)
	}
	if done := n.Await(t, f.ID()); string(done.Result) != "\"hello ada\"" {
		t.Errorf("it is %s", done.Result)
	}
}

func TestTwo(t *testing.T) {
	n := enginetest.Memory(t, greet.Bind(hello))
	if _, err := greet.Submit(t.Context(), n.Client, "ada"); err != nil {
		t.Fatal(err)
	}
	n.RequireSubmitted(t, "greet")
}

func TestThree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := enginetest.Memory(t, greet.Bind(hello))
		o := task.SubmitOptions{ID: "later", Delay: time.Minute}
		if _, err := greet.SubmitWith(t.Context(), n.Client, "ada", o); err != nil {
			t.Fatal(err)
		}
		n.Advance(t, time.Minute)
		n.Await(t, "later")
	})
}
`,
}

func goVersion() string {
	version, _, _ := strings.Cut(strings.TrimPrefix(runtime.Version(), "go"), " ")
	return version
}

// The tests of a module that has nothing but this checkout beside it take a second at most, once they are built.
func TestModule_ThreeTestsOnMemoryTakeLessThanASecondAndLinkNoServer(t *testing.T) {
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{
		"go.work": "go " + goVersion() + "\n\nuse (\n\t.\n\t" + checkout + "\n)\n",
	}
	for name, text := range users {
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	goes := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "GOFLAGS=-mod=readonly -buildvcs=false -trimpath")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	goes("test", "-c", "-o", "tests", ".")
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "tests"), "-test.v")
	cmd.Dir = dir
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil || strings.Count(string(out), "--- PASS") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("the tests took %s", took)
	if most := 10 * time.Second; took > most { // on a busy machine
		t.Errorf("the tests took %s, want a second, and %s at most", took, most)
	}
	for dep := range strings.Lines(goes("list", "-deps", "-test", ".")) {
		for _, server := range []string{"go.etcd.io/", "github.com/nats-io/", "google.golang.org/grpc"} {
			if strings.HasPrefix(dep, server) {
				t.Errorf("they link %s", dep)
			}
		}
	}
}
