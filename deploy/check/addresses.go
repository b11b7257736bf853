package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
)

// addresses are the ones of loopback that stand for those of the files, since all processes share one network.
type addresses struct {
	of map[string]string // HOST:PORT of a file, and what stands for it
}

// hosts maps each name that the files give to a server to its service in the compose file.
var hosts = map[string]string{
	"etcd-1": "etcd-1", "etcd-2": "etcd-2", "etcd-3": "etcd-3", "nats-1": "nats-1", "nats-2": "nats-2", "nats-3": "nats-3",
	"etcd-0.etcd": "etcd-1", "etcd-1.etcd": "etcd-2", "etcd-2.etcd": "etcd-3", "nats": "nats-1",
}

var hostAndPort = regexp.MustCompile(`[a-z0-9.-]+:[0-9]{4,5}\b`)

const everywhere = "0.0.0.0"

// replaced is a text of the process that is called host, with its addresses replaced.
func (a *addresses) replaced(host, text string) (string, error) {
	var failed error
	text = hostAndPort.ReplaceAllStringFunc(text, func(found string) string {
		name, port, _ := strings.Cut(found, ":")
		named := hosts[name]
		if name == everywhere || name == "localhost" {
			named = host
		}
		if named == "" {
			return found
		}
		at, err := a.at(named, port)
		if err != nil {
			failed = err
		}
		if name == everywhere { // it listens on all addresses here, too: a node asks for more there than at loopback
			_, port, _ := net.SplitHostPort(at)
			return net.JoinHostPort(everywhere, port)
		}
		return at
	})
	return text, failed
}

// lowestPort and highestPort bound the ports that are chosen: the system gives none below 32768 to a connection that
// goes out, so a port stays free while the server that listens on it is started again.
const lowestPort, highestPort = 20_000, 32_767

// at returns what stands for a port of a host: one that is free when it is first asked for.
func (a *addresses) at(host, port string) (string, error) {
	named := host + ":" + port
	if a.of[named] != "" {
		return a.of[named], nil
	}
	var failed error
	for range 1_000 {
		chosen := fmt.Sprintf("127.0.0.1:%d", lowestPort+rand.IntN(highestPort-lowestPort+1))
		if slices.Contains(slices.Collect(maps.Values(a.of)), chosen) {
			continue
		}
		var l net.Listener
		if l, failed = net.Listen("tcp", chosen); failed != nil {
			continue
		}
		a.of[named] = chosen
		return chosen, l.Close()
	}
	return "", fmt.Errorf("find a free port for %s: %w", named, failed)
}
