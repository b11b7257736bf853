package etcdstore_test

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
)

func TestVersion_EveryMinorLineHasItsFloor(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"2.3.8": false, "3.4.99": false,
		"3.5.32": false, "3.5.33": true, "3.5.100": true,
		"3.6.13": false, "3.6.14": true,
		"3.7.0": false, "3.7.0-rc.1": false, "3.7.1": true, "3.7.3": true,
		"3.8.0": true, "3.8.0-alpha.0": true, "4.0.0": true,
		"": false, "3.7": false, "3.7.x": false, "3.7.1.1": false,
	} {
		if err := etcdstore.CheckVersion(version); (err == nil) != ok {
			t.Errorf("version %q: %v, want accepted = %v", version, err, ok)
		}
	}
}

// claims makes a server claim to be of another version, or not to be there.
type claims struct {
	clientv3.Maintenance
	versions map[string]string // by endpoint
}

func (c claims) Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	version, ok := c.versions[endpoint]
	if !ok {
		return nil, errors.New("no route to host")
	}
	return &clientv3.StatusResponse{Version: version}, nil
}

func TestOpen_RefusesServersThatAreTooOld(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	client := dial(t, endpoint)
	down := "127.0.0.1:1"
	client.SetEndpoints(endpoint, down)
	genuine := client.Maintenance
	open := func(versions map[string]string) error {
		client.Maintenance = claims{genuine, versions}
		_, err := etcdstore.Open(t.Context(), etcdstore.Config{Client: client})
		return err
	}
	wantError(t, open(map[string]string{endpoint: "3.7.3", down: "3.6.13"}), "endpoint "+down+": etcd version 3.6.13 is too old: want at least 3.5.33, 3.6.14 or 3.7.1")
	wantError(t, open(map[string]string{}), "no route to host")
	if err := open(map[string]string{endpoint: "3.7.3"}); err != nil {
		t.Errorf("one member down: %v, want none", err)
	}
}
