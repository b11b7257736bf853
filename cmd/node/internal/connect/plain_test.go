package connect_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/connect"
	"taskledger/internal/testcluster"
)

func TestAt_WarnsOfConnectionsToOtherMachinesWithoutTLS(t *testing.T) {
	t.Parallel()
	ca := connect.TLS{CA: testcluster.NewAuthority(t).File}
	ended, end := context.WithCancel(t.Context())
	end() // the refusal must come before any request
	for name, c := range map[string]struct {
		at   connect.Addresses
		want []string
	}{
		"loopback":       {connect.Addresses{Etcd: []string{"127.0.0.1:1", "localhost:1", "[::1]:1"}, NATS: []string{"nats://localhost:1"}}, nil},
		"TLS":            {connect.Addresses{Etcd: []string{"192.0.2.1:1"}, NATS: []string{"nats://192.0.2.2:1"}, EtcdTLS: ca, NATSTLS: ca}, nil},
		"TLS by address": {connect.Addresses{Etcd: []string{"https://192.0.2.1:1"}, NATS: []string{"tls://192.0.2.2:1"}}, nil},
		"none": {connect.Addresses{Etcd: []string{"192.0.2.1:1", "http://etcd.test:1"}, NATS: []string{"nats://u:hunter2@[2001:db8::1]:1"}},
			[]string{"server=etcd host=192.0.2.1\n", "server=etcd host=etcd.test\n", "server=nats host=2001:db8::1\n"}},
	} {
		var log bytes.Buffer
		c.at.Log = slog.New(slog.NewTextHandler(&log, nil))
		if link, err := connect.At(ended, c.at); err == nil {
			t.Errorf("%s: linked without servers: %v", name, link.Close())
		}
		if n := strings.Count(log.String(), "without TLS"); n != len(c.want) {
			t.Errorf("%s: %d warnings, want %d: %s", name, n, len(c.want), log.String())
		}
		for _, want := range c.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: no %q in %s", name, want, log.String())
			}
		}
	}
}
