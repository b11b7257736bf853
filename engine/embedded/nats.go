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
)

// startNATS returns when the server accepts clients that know the token.
func startNATS(port int, token string, log *slog.Logger) (*server.Server, error) {
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName:      "embedded",
		Host:            loopback,
		Port:            port,
		Authorization:   token,
		MaxPayload:      natsMaxPayload,
		NoSigs:          true,
		NoSystemAccount: true,
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
