// Package client reaches a task store over HTTP: the Store of package taskstore, by the address of a node.
//
// Each update and each claim has a key, so that a call whose answer was lost is repeated until its outcome is known or its context ends, and is
// applied once. So is a call that the server has no room for at the moment.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"taskledger/api/stores/form"
	"taskledger/taskstore"
)

// Config says where a store is.
type Config struct {
	// URL is that of a node's API, with Store; without it, where the URLs of the Task Store document hold, as --store-listen has them.
	URL   string
	Store string // its name
	// Token is sent with each request, unless it is "".
	Token string
	// HTTP sends requests. It must have no timeout below 70 s, as claims wait for up to a minute. Default: one with a transport of its own,
	// whose idle connections end after 30 s.
	HTTP *http.Client
	// Client owns what is claimed, 1 to 2^53. Default: random, of 53 bits.
	Client int64
}

const (
	// defaultName is that of a store whose name the URL alone knows.
	defaultName = "default"
	// maxAnswer takes the largest answer to an update or a claim, whose data JSON writes in six bytes each at most.
	maxAnswer = 4 << 20
	// maxRefusal is how much of an error is read.
	maxRefusal = 1 << 20
)

// Open returns the store at an address. It asks nobody.
func Open(cfg Config) (*taskstore.Store, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, &taskstore.InvalidError{Field: "url", Problem: err.Error()}
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, &taskstore.InvalidError{Field: "url", Problem: fmt.Sprintf("%q: want http:// or https://, a host, and no query", cfg.URL)}
	}
	r := &remote{root: strings.TrimSuffix(base.String(), "/"), token: cfg.Token, http: cfg.HTTP}
	if cfg.Store == "" {
		cfg.Store = defaultName
	} else {
		r.root += "/store/" + url.PathEscape(cfg.Store)
	}
	if r.http == nil {
		r.http = &http.Client{Transport: transport()}
	}
	return taskstore.Open(r, cfg.Store, taskstore.Options{Client: cfg.Client, Repeat: true})
}

// remote is a store at an address.
type remote struct {
	root, token string
	http        *http.Client
}

// send sends a request. What it returns has to be closed.
func (r *remote) send(ctx context.Context, method, path, key string, body any) (*http.Response, error) {
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		in = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.root+path, in)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, lost(method, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		return nil, lost(method, err)
	}
	return nil, refused(method, resp, text)
}

// lost is why an answer has not come.
func lost(method string, err error) error {
	if method == http.MethodGet {
		return fmt.Errorf("%w: %w", taskstore.ErrUnavailable, err)
	}
	return fmt.Errorf("%w: %w", taskstore.ErrUnknown, err)
}

// answer sends a request, and reads an answer of bounded length.
func (r *remote) answer(ctx context.Context, method, path, key string, body, into any) error {
	resp, err := r.send(ctx, method, path, key, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return lost(method, err)
	case len(data) > maxAnswer:
		return fmt.Errorf("%s %s: answer of more than %d bytes", method, path, maxAnswer)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s %s: answer: %w", method, path, err)
	}
	return nil
}

// UpdateItems implements taskstore.Items.
func (r *remote) UpdateItems(ctx context.Context, _ string, u *taskstore.Update) ([]taskstore.Item, error) {
	var got form.Tasks
	if err := r.answer(ctx, http.MethodPost, "/update", u.Key, updateOf(u), &got); err != nil {
		return nil, r.named(err)
	}
	if want := len(u.Adds) + len(u.Changes); len(got.Tasks) != want {
		return nil, fmt.Errorf("update: answer of %d tasks, want %d", len(got.Tasks), want)
	}
	all := make([]taskstore.Item, len(got.Tasks))
	for i := range got.Tasks {
		all[i] = itemOf(&got.Tasks[i])
	}
	return all, nil
}

// ClaimItem implements taskstore.Items.
func (r *remote) ClaimItem(ctx context.Context, _ string, c *taskstore.Claim) (*taskstore.Item, error) {
	var got form.Tasks
	body := &form.Claim{ClientID: c.Client, Group: form.Text(c.Group), Duration: c.Duration.Milliseconds(), Wait: c.Wait.Milliseconds(), Depends: c.Depends}
	if err := r.answer(ctx, http.MethodPost, "/claim", c.Key, body, &got); err != nil {
		return nil, r.named(err)
	}
	switch len(got.Tasks) {
	case 0:
		return nil, nil
	case 1:
		it := itemOf(&got.Tasks[0])
		return &it, nil
	}
	return nil, fmt.Errorf("claim: answer of %d tasks", len(got.Tasks))
}

// named gives an error the name by which a caller knows the store.
func (r *remote) named(err error) error {
	if refused, is := errors.AsType[*taskstore.ConflictError](err); is {
		refused.Store = r.root
		return err
	}
	return fmt.Errorf("store %s: %w", r.root, err)
}
