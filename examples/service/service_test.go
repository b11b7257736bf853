package service_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"taskledger/internal/testcluster"
)

const guide = "../../docs/own-servers.md"

// typed returns the commands of the guide: those that build and start the programs, and the URL that is asked. What
// stands for addresses and folders of the guide are those of a test.
func typed(t *testing.T, stand ...string) (build, worker, api, url string) {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	commands := regexp.MustCompile(`^(go build .*)\n(.*worker) &\n(.*api) &\ncurl -X POST (\S+) .*\n$`)
	found := commands.FindStringSubmatch(strings.NewReplacer(stand...).Replace(block))
	if found == nil {
		t.Fatalf("%s has other commands:\n%s", guide, block)
	}
	return found[1], found[2], found[3], found[4]
}

// start runs a command that sets variables, until the test ends.
func start(t *testing.T, command string) {
	t.Helper()
	cmd := exec.Command("env", strings.Fields(command)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	})
}

// freeAddress returns an address that nobody listens at. Its port is below those that the system gives to connections.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", address); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

func TestService_TheAPITakesAnOrderWhileNoWorkerRunsAndAnswersWithItsBillOnceOneDoes(t *testing.T) {
	etcd, _ := testcluster.StartEtcd(t)
	build, worker, api, url := typed(t, "etcd-1:2379", etcd, "nats://nats:4222", testcluster.StartNATS(t).URL,
		"127.0.0.1:8080", freeAddress(t), "bin/", t.TempDir()+"/")
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", build)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	start(t, api)
	order := func() (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	testcluster.Await(t, "an order is taken without a worker", func() bool {
		code, _ := order()
		return code == http.StatusAccepted
	})
	start(t, worker)
	testcluster.Await(t, "the worker makes the bill", func() bool {
		code, text := order()
		return code == http.StatusOK && text == "INV-7\n"
	})
}

// The lines of code of the three files, without packages, imports, comments and empty lines.
func TestService_HasAtMostFortyLines(t *testing.T) {
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	lines := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, code, _ := strings.Cut(string(text), "\n)\n") // behind the imports
		for line := range strings.Lines(code) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines++
			}
		}
	}
	if lines > 40 {
		t.Errorf("%d lines", lines)
	}
}
