// Package health asks a node of this machine whether it is ready, as the probe of a container does.
package health

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"taskledger/cluster"
	"taskledger/internal/advertised"
	"taskledger/store"
)

// Within bounds the time of an answer.
const Within = 3 * time.Second

// mostText bounds what is read of an answer.
const mostText = 4 << 10

// Node says where a node listens, in the words of the flags that start it.
type Node struct {
	Metrics         string // address, which is asked first; "" = none
	MetricsInsecure bool   // it has no certificate
	API             string // address, which is asked where there are no metrics; "" or "off" = none
	Cert            string // PEM file of the certificate of both; "" = none
	Dir             string // directory whose socket is asked where there is neither
}

// Ready returns nil if the node is ready, and wraps store.ErrUnavailable otherwise.
func (n *Node) Ready(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, Within)
	defer stop()
	url, transport, err := n.way()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask for %s: %w", url, err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(asked)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostText))
	return errors.Join(fmt.Errorf("%w: the node is not ready: %s: %s", store.ErrUnavailable, answer.Status, bytes.TrimSpace(text)), err)
}

// way returns what to ask, and how to get there.
func (n *Node) way() (url string, transport *http.Transport, err error) {
	switch {
	case n.Metrics != "":
		return n.listener(n.Metrics, "/readyz", n.Cert != "" && !n.MetricsInsecure && !onLoopback(n.Metrics))
	case n.API != "" && n.API != "off":
		return n.listener(n.API, "/v1/ready", n.Cert != "")
	}
	at, err := advertised.Read(n.Dir)
	if err == nil && at.Socket() == "" {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w on %s, and neither --metrics nor --api is given: %w", cluster.ErrNoNode, n.Dir, err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", at.Socket())
	}
	return "http://localhost/v1/ready", &http.Transport{DialContext: dial}, nil
}

// listener returns the way to an address at which a node of this machine listens.
func (n *Node) listener(address, path string, secure bool) (url string, transport *http.Transport, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, fmt.Errorf("address %s: %w", address, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	if port == "0" {
		return "", nil, fmt.Errorf("%w: port 0 of %s is another one at each start: name a port", store.ErrUnavailable, address)
	}
	at := net.JoinHostPort(host, port) + path
	if !secure {
		return "http://" + at, &http.Transport{}, nil
	}
	only, err := pinned(n.Cert)
	if err != nil {
		return "", nil, err
	}
	return "https://" + at, &http.Transport{TLSClientConfig: only}, nil
}

func onLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// pinned trusts a server that has the certificate of a file, by whatever name it was reached, and no other one.
func pinned(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("read the certificate: %s has none", file)
	}
	return &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // VerifyPeerCertificate compares the certificate itself
		VerifyPeerCertificate: func(shown [][]byte, _ [][]*x509.Certificate) error {
			if len(shown) == 0 || !bytes.Equal(shown[0], block.Bytes) {
				return fmt.Errorf("the listener has another certificate than %s", file)
			}
			return nil
		},
	}, nil
}
