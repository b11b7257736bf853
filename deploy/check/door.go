package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
)

// door sends requests with a token to one port of a node.
type door struct {
	url    string
	token  string
	client *http.Client
}

// door opens a port of a process under the name by which clients know it, and which its certificate has to have.
func (w *world) door(p *process, host, port string) (*door, error) {
	authority, err := os.ReadFile(filepath.Join(w.secrets(), "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("ca.crt has no certificate")
	}
	at, err := w.addresses.at(p.name, port)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, at)
	}
	return &door{
		url:    "https://" + net.JoinHostPort(host, port),
		token:  w.token,
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DialContext: dial}},
	}, nil
}

func (d *door) close() { d.client.CloseIdleConnections() }

// submit returns when the node has taken a task of one request.
func (d *door) submit(ctx context.Context, behavior, id, params string) error {
	body := fmt.Appendf(nil, `{"behavior":%q,"id":%q,"params":%s}`, behavior, id, params)
	_, err := d.call(ctx, http.MethodPost, "/v1/tasks", body)
	return err
}

// awaitSuccess returns when the task has ended.
func (d *door) awaitSuccess(ctx context.Context, id string) error {
	text, err := d.call(ctx, http.MethodGet, "/v1/tasks/"+id+"?wait=60s", nil)
	if err != nil {
		return err
	}
	var is struct{ Status string }
	if err := json.Unmarshal(text, &is); err != nil || is.Status != "SUCCESS" {
		return fmt.Errorf("task %s is no SUCCESS: %s", id, text)
	}
	return nil
}

func (d *door) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+d.token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := d.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return text, err
}
