package connection_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"taskledger/etcdstore"
	"taskledger/internal/connection"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOpen_RefusesABusOfAnotherName(t *testing.T) {
	t.Parallel()
	_, etcd := testcluster.StartEtcd(t)
	_, err := connection.Open(t.Context(), connection.Config{
		Etcd: etcdstore.Config{Cluster: "blue", Client: etcd},
		NATS: natsbus.Config{URLs: []string{testcluster.StartNATS(t).URL}},
	})
	if wrong, ok := errors.AsType[*store.InvalidError](err); !ok || wrong.Field != "name" {
		t.Errorf("a store and a bus of two clusters are one: %v", err)
	}
}
