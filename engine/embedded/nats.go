package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"taskledger/internal/advertised"
)

const (
	// seedFile holds the seed of the nkey by which members prove themselves to NATS. It is made once for a directory.
	seedFile = "nats.nk"
	// portFile holds the port of NATS, so that whoever subscribes finds it again after a restart.
	portFile = "nats-port"
	// natsMaxPayload bounds a message of NATS. The engine cuts its messages to fit.
	natsMaxPayload = 1 << 20
	// natsMemory bounds what JetStream keeps in memory: the archive lies in files, only what reads it is there.
	natsMemory = 64 << 20
	// natsConnections is the default number of connections that NATS takes at once.
	natsConnections = 1024
	// natsFiles bounds what JetStream keeps on disk: by default it would be a share of what is free at the start.
	natsFiles = 1 << 60
)

// startNATS returns when the server accepts clients that prove to have the key. It keeps its streams in dir, and
// acknowledges what is on disk.
func startNATS(dir string, port, connections int, member string, log *slog.Logger) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		ServerName:         "embedded",
		Host:               loopback,
		Port:               port,
		Nkeys:              []*server.NkeyUser{{Nkey: member}},
		MaxConn:            connections,
		MaxPayload:         natsMaxPayload,
		NoSigs:             true,
		JetStream:          true,
		StoreDir:           dir,
		SyncAlways:         true,
		JetStreamMaxMemory: natsMemory,
		JetStreamMaxStore:  natsFiles,
	})
	if err != nil {
		return nil, err
	}
	errs := &natsLog{log: log}
	s.SetLogger(errs, false, false)
	s.Start() // listens when it returns, or has told why not
	if err := errs.fatal(); err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, err
	}
	return s, nil
}

// natsPort returns the port that was used on the directory before, if it is free, or any.
func natsPort(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, portFile))
	if err != nil {
		return server.RANDOM_PORT
	}
	port, err := strconv.Atoi(string(text))
	if err != nil || port < 1 || port > math.MaxUint16 {
		return server.RANDOM_PORT
	}
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
	if err != nil {
		return server.RANDOM_PORT // somebody else's by now
	}
	if err := l.Close(); err != nil {
		return server.RANDOM_PORT
	}
	return port
}

// rememberPort keeps the port for the next start.
func rememberPort(dir string, port int) error {
	if err := advertised.Replace(filepath.Join(dir, portFile), []byte(strconv.Itoa(port))); err != nil {
		return fmt.Errorf("remember the port of NATS: %w", err)
	}
	return nil
}

// readSeed returns the public part of the key whose seed is in the file, which it makes if there is none.
func readSeed(path string) (public string, err error) {
	seed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		seed, err = makeSeed(path)
	}
	if err != nil {
		return "", fmt.Errorf("nkey of NATS: %w", err)
	}
	key, err := nkeys.ParseDecoratedNKey(seed)
	if err == nil {
		public, err = key.PublicKey()
	}
	if err != nil {
		return "", fmt.Errorf("nkey of NATS in %s: %w", path, err)
	}
	return public, nil
}

func makeSeed(path string) (seed []byte, err error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	if seed, err = key.Seed(); err != nil {
		return nil, err
	}
	return seed, advertised.Replace(path, seed)
}
