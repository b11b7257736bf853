package service_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/internal/testcluster"
)

// start builds a program of this example, and runs it until the test ends.
func start(t *testing.T, name string, env ...string) io.Reader {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return out
}

func TestService_TheAPITakesAnOrderWhileNoWorkerRunsAndAnswersWithItsBillOnceOneDoes(t *testing.T) {
	etcd, _ := testcluster.StartEtcd(t)
	env := []string{"ETCD=" + etcd, "NATS=" + testcluster.StartNATS(t).URL, "LISTEN=127.0.0.1:0"}
	address, err := bufio.NewReader(start(t, "api", env...)).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	order := func() (int, string) {
		t.Helper()
		url := "http://" + strings.TrimSpace(address) + "/bills/7"
		var answer *http.Response
		testcluster.Await(t, "an order is taken", func() bool {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if answer, err = http.DefaultClient.Do(r); err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode != http.StatusServiceUnavailable {
				return true
			}
			return answer.Body.Close() != nil
		})
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	if code, text := order(); code != http.StatusAccepted {
		t.Errorf("without a worker: %d, %q", code, text)
	}
	start(t, "worker", env...)
	testcluster.Await(t, "the worker makes the bill", func() bool {
		code, text := order()
		return code == http.StatusOK && text == "INV-7\n"
	})
}
