package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// tokenFile holds the NATS token of a directory: it stays the same, so that members find their way back after a
	// restart on a fixed port.
	tokenFile = "nats-token"
	// natsMaxPayload is what the engine's messages are cut to fit.
	natsMaxPayload = 1 << 20
	// natsMemory bounds what JetStream keeps in memory: the archive lies in files, only what reads it is there.
	natsMemory = 64 << 20
	// natsFiles bounds what JetStream keeps on disk: by default it would be a share of what is free at the start.
	natsFiles = 1 << 60
)

// startNATS returns when the server accepts clients that know the token. It keeps its streams in dir, and acknowledges
// what is on disk.
func startNATS(dir string, port int, token string, log *slog.Logger) (*server.Server, error) {
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName:         "embedded",
		Host:               loopback,
		Port:               port,
		Authorization:      token,
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

func natsURL(token string, addr net.Addr) string {
	return (&url.URL{Scheme: "nats", User: url.User(token), Host: addr.String()}).String()
}

// readToken returns the token in the file, which it makes if there is none.
func readToken(path string) (string, error) {
	token, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		token = []byte(rand.Text())
		err = replaceFile(path, token)
	}
	if err != nil {
		return "", fmt.Errorf("NATS token: %w", err)
	}
	return string(token), nil
}
