package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// store asks a task store over HTTP, as anybody would who has its document. What was not answered is asked again, under
// the same key.
type store struct {
	url, token string
	client     int64 // who asks: a random number
}

// task is a task of the store.
type task struct {
	ID       int64   `json:"id,omitempty"`
	Group    string  `json:"group,omitempty"`
	Data     *string `json:"data,omitempty"`
	Keep     bool    `json:"keep,omitempty"`     // of an update: the data stay
	Timespec int64   `json:"timespec,omitempty"` // when it is available, in milliseconds; negative: so long from now
}

// update changes tasks, all of it or nothing.
type update struct {
	ClientID int64   `json:"clientid"`
	Adds     []task  `json:"adds,omitempty"`
	Updates  []task  `json:"updates,omitempty"`
	Deletes  []int64 `json:"deletes,omitempty"`
}

// claim asks for a task.
type claim struct {
	ClientID int64  `json:"clientid"`
	Group    string `json:"group"`
	Duration int64  `json:"duration"` // in milliseconds, as Wait
	Wait     int64  `json:"wait"`
}

// errConflict refuses an update that names a task which another has taken, as its time was over.
var errConflict = errors.New("the task is another's by now")

const (
	holds    = 10 * time.Second // a claim
	waits    = time.Second      // for a task to claim
	tryAgain = 100 * time.Millisecond
	answers  = 30 * time.Second // one request
)

func newStore(at, token string) (*store, error) {
	if u, err := url.Parse(at); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf(
			"-url %q: want http://HOST:PORT or https://HOST:PORT, and a path if the store is not at the root",
			at,
		)
	}
	n, err := rand.Int(rand.Reader, big.NewInt(1<<53))
	if err != nil {
		return nil, err
	}
	return &store{strings.TrimSuffix(at, "/"), token, n.Int64() + 1}, nil
}

// update returns the tasks that it makes.
func (s *store) update(ctx context.Context, u update) ([]task, error) {
	u.ClientID = s.client
	var made struct{ Tasks []task }
	err := s.ask(ctx, http.MethodPost, "/update", u, &made)
	return made.Tasks, err
}

// claim returns a task of a group, nil where none came in time.
func (s *store) claim(ctx context.Context, group string, wait time.Duration) (*task, error) {
	var claimed struct{ Tasks []task }
	err := s.ask(ctx, http.MethodPost, "/claim",
		claim{s.client, group, holds.Milliseconds(), wait.Milliseconds()}, &claimed)
	if errors.Is(err, errConflict) { // the answer was lost, and the task by now, too
		return nil, nil
	}
	if err != nil || len(claimed.Tasks) == 0 {
		return nil, err
	}
	return &claimed.Tasks[0], nil
}

// list returns the tasks of a group, those that are claimed among them, as of now: an owner that was replaced cannot
// answer.
func (s *store) list(ctx context.Context, group string, limit int) (all []task, err error) {
	err = s.ask(ctx,
		http.MethodGet, fmt.Sprintf("/group/%s?owned=yes&linear=1&limit=%d", url.PathEscape(group), limit), nil, &all)
	return all, err
}

// groups returns the names of the groups that have tasks, as of now.
func (s *store) groups(ctx context.Context) (names []string, err error) {
	err = s.ask(ctx, http.MethodGet, "/groups?linear=1", nil, &names)
	return names, err
}

// ask asks until there is an answer, or ctx ends.
func (s *store) ask(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	key := rand.Text()
	for {
		again, err := s.try(ctx, method, path, key, text, into)
		if !again {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(tryAgain):
		}
	}
}

// try asks once. again says that the request may be repeated.
func (s *store) try(ctx context.Context, method, path, key string, body []byte, into any) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	var reader io.Reader
	if method == http.MethodPost {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, reader)
	if err != nil {
		return false, err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return true, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return true, err
	case resp.StatusCode == http.StatusOK:
		return false, json.Unmarshal(text, into)
	case resp.StatusCode == http.StatusConflict:
		return false, fmt.Errorf("%w: %s", errConflict, text)
	case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests:
		return true, fmt.Errorf("%s: %s", resp.Status, text)
	}
	return false, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
}
