//go:build unix

package cluster

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/internal/advertised"
	"taskledger/internal/connection"
)

func TestDial_PrivateRefusesServersOfAnotherUser(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "") // a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "etcd")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	text, err := json.Marshal(advertised.Servers{Data: "d", Etcd: []string{"unix:" + socket}})
	if err == nil {
		err = os.WriteFile(advertised.Path(dir), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []directory{{path: dir, data: "d", private: true, user: me()}, {path: dir, data: "d", user: me() + 1}} {
		conn, err := d.dialEtcd(t.Context())
		if err != nil {
			t.Fatalf("private %t: %v", d.private, err)
		}
		conn.Close()
	}
	other := directory{path: dir, data: "d", private: true, user: me() + 1}
	conn, err := other.dialEtcd(t.Context())
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, connection.ErrNotPrivate) || !strings.Contains(err.Error(), dir+" is of user ") {
		t.Errorf("dialed the servers of another user: %v", err)
	}
}
