package local_test

import (
	"os/exec"
	"strings"
	"testing"
)

// A user's program of one process links neither a server nor a client of one.
func TestLocal_LinksNeitherEtcdNorNATS(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	for _, dep := range deps {
		for _, foreign := range []string{"go.etcd.io/", "github.com/nats-io/", "google.golang.org/grpc", "net/http"} {
			if strings.HasPrefix(dep, foreign) {
				t.Errorf("it links %s", dep)
			}
		}
	}
	if len(deps) < 50 {
		t.Errorf("the list is of something else: %v", deps)
	}
}
