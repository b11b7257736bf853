// Package client is a task store over HTTP: what package taskstore does, for a process that is no member of the cluster.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"taskledger/api/stores/form"
	"taskledger/item"
	"taskledger/store"
	"taskledger/taskstore"
)

const (
	// underWay bounds the calls of a client that change something: the store remembers as many keys of each.
	underWay = 64
	// maxAnswer bounds an answer: the largest update, in JSON that escapes every byte.
	maxAnswer = 8 << 20
	// minPause and maxPause are between repeats of a call.
	minPause = 20 * time.Millisecond
	maxPause = 2 * time.Second
)

// Config says where the store is.
type Config struct {
	URL    string       // of the store: "http://127.0.0.1:7400/store/NAME", or the root of a listener of its own
	Token  string       // of role submitter, or viewer for reads; "" = none
	Client int64        // who uses the store, 1 to 2^53; 0 draws one at random, which no other process has
	HTTP   *http.Client // default: http.DefaultClient
}

// Store is a store as one client of it uses it. Its methods may be called concurrently. Until its context ends a call is repeated after a lost
// connection, an overload and whatever else leaves its outcome open: each that changes something has a key, by which the store answers it as
// before. At most 64 of those are under way at once; others wait. Errors are those of package taskstore.
type Store struct {
	cfg    Config
	places chan struct{} // one for each call under way
	linear bool
}

// New returns the store at a URL. It asks nothing.
func New(cfg Config) (*Store, error) {
	at, err := url.Parse(cfg.URL)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.RawQuery != "" || at.Fragment != "" {
		return nil, &store.InvalidError{Field: "url", Problem: fmt.Sprintf("%q: want http:// or https://, a host, and the path of a store", cfg.URL)}
	}
	if cfg.Client == 0 {
		cfg.Client = taskstore.DrawClient()
	}
	if err := item.ValidateClient(cfg.Client); err != nil {
		return nil, err
	}
	if cfg.HTTP == nil {
		cfg.HTTP = http.DefaultClient
	}
	cfg.URL = strings.TrimSuffix(cfg.URL, "/")
	return &Store{cfg: cfg, places: make(chan struct{}, underWay)}, nil
}

// Client returns who uses the store.
func (s *Store) Client() int64 { return s.cfg.Client }

// Linear returns the store with reads that prove that they are of its owner.
func (s *Store) Linear() *Store {
	is := *s
	is.linear = true
	return &is
}

// Groups returns the names of the groups that have tasks, sorted.
func (s *Store) Groups(ctx context.Context) (names []string, err error) {
	return names, s.get(ctx, "/groups", nil, &names)
}

// Task returns a task by its id, nil if there is none.
func (s *Store) Task(ctx context.Context, id int64) (*item.Item, error) {
	all, err := s.Tasks(ctx, id)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// Tasks returns up to 1,000 tasks by their ids, in the order of these; nil stands for one that is not there.
func (s *Store) Tasks(ctx context.Context, ids ...int64) ([]*item.Item, error) {
	if len(ids) == 0 {
		return nil, &store.InvalidError{Field: "ids", Problem: "want one at least"}
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	var got []*form.Task
	if err := s.get(ctx, "/tasks/"+strings.Join(texts, ","), nil, &got); err != nil {
		return nil, err
	}
	if len(got) != len(ids) {
		return nil, fmt.Errorf("%d tasks were answered, %d asked for", len(got), len(ids))
	}
	all := make([]*item.Item, len(got))
	for i, t := range got {
		if t != nil {
			is := itemOf(t)
			all[i] = &is
		}
	}
	return all, nil
}

// Group yields the tasks of a group by their ids, those of p.Owned also if they are not available, p.Limit at most. It ends with the first error.
func (s *Store) Group(ctx context.Context, name string, p item.Page) iter.Seq2[item.Item, error] {
	return func(yield func(item.Item, error) bool) {
		query := url.Values{"name": {name}}
		if p.Owned {
			query.Set("owned", "1")
		}
		if p.Limit > 0 {
			query.Set("limit", strconv.Itoa(p.Limit))
		}
		answer, err := s.ask(ctx, func(ctx context.Context) (*http.Request, error) {
			return s.request(ctx, http.MethodGet, "/group", query, nil)
		})
		if err != nil {
			yield(item.Item{}, err)
			return
		}
		defer answer.Body.Close()
		in := json.NewDecoder(answer.Body)
		if _, err := in.Token(); err != nil {
			yield(item.Item{}, fmt.Errorf("read group %q: %w", name, err))
			return
		}
		for in.More() {
			var t form.Task
			if err := in.Decode(&t); err != nil {
				yield(item.Item{}, fmt.Errorf("read group %q: %w", name, err))
				return
			}
			if !yield(itemOf(&t), nil) {
				return
			}
		}
		if _, err := in.Token(); err != nil {
			yield(item.Item{}, fmt.Errorf("read group %q: %w", name, err))
		}
	}
}

// Update changes tasks, all or nothing, and returns those that were added, then those that were changed, each with its new id. The data of a
// change with Keep are not among what is returned. Client and Key are those of the Store unless u has them.
func (s *Store) Update(ctx context.Context, u *item.Update) ([]item.Item, error) {
	body := form.Update{ClientID: cmp.Or(u.Client, s.cfg.Client), Deletes: u.Deletes, Depends: u.Depends}
	for i := range u.Adds {
		a := &u.Adds[i]
		data := form.Bytes(orEmpty(a.Data))
		body.Adds = append(body.Adds, form.Add{Group: form.Text(a.Group), Data64: &data, Timespec: int64(a.At)})
	}
	for i := range u.Changes {
		c := &u.Changes[i]
		change := form.Change{ID: c.ID, Group: form.Text(c.Group), Keep: c.Keep, Timespec: int64(c.At)}
		if !c.Keep {
			data := form.Bytes(orEmpty(c.Data))
			change.Data64 = &data
		}
		body.Updates = append(body.Updates, change)
	}
	return s.change(ctx, "/update", u.Key, body)
}

// Claim takes a task of a group, nil if there is none after c.Wait. Client and Key are those of the Store unless c has them.
func (s *Store) Claim(ctx context.Context, c *item.Claim) (*item.Item, error) {
	all, err := s.change(ctx, "/claim", c.Key, form.Claim{ClientID: cmp.Or(c.Client, s.cfg.Client), Group: form.Text(c.Group),
		Duration: c.Duration.Milliseconds(), Wait: c.Wait.Milliseconds(), Depends: c.Depends})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

func orEmpty(data []byte) []byte { return append([]byte{}, data...) }

// change sends a request that changes something until it is answered.
func (s *Store) change(ctx context.Context, path, key string, body any) ([]item.Item, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if key == "" {
		key = rand.Text()
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %d calls are under way: %w", store.ErrUnavailable, underWay, ctx.Err())
	}
	answer, err := s.ask(ctx, func(ctx context.Context) (*http.Request, error) {
		r, err := s.request(ctx, http.MethodPost, path, nil, text)
		if err == nil {
			r.Header.Set("Idempotency-Key", key)
		}
		return r, err
	})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var got form.Tasks
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&got); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	all := make([]item.Item, len(got.Tasks))
	for i := range got.Tasks {
		all[i] = itemOf(&got.Tasks[i])
	}
	return all, nil
}

// get reads what a path answers.
func (s *Store) get(ctx context.Context, path string, query url.Values, into any) error {
	answer, err := s.ask(ctx, func(ctx context.Context) (*http.Request, error) {
		return s.request(ctx, http.MethodGet, path, query, nil)
	})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

func (s *Store) request(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Request, error) {
	if s.linear && method == http.MethodGet {
		if query == nil {
			query = url.Values{}
		}
		query.Set("linear", "1")
	}
	to := s.cfg.URL + path
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.cfg.Token != "" {
		r.Header.Set("Authorization", "Bearer "+s.cfg.Token)
	}
	return r, nil
}

// ask sends a request until it has an answer that stands, which is 200, or ctx ends.
func (s *Store) ask(ctx context.Context, request func(context.Context) (*http.Request, error)) (*http.Response, error) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		answer, again, err := s.once(ctx, request)
		if err == nil || !again {
			return answer, err
		}
		var overload *taskstore.OverloadError
		if errors.As(err, &overload) {
			pause = max(pause, min(overload.RetryAfter, maxPause))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%w: %w; last answer: %w", taskstore.ErrUnknown, ctx.Err(), err)
		}
	}
}

// once sends a request. again says that another copy of it may be answered otherwise.
func (s *Store) once(ctx context.Context, request func(context.Context) (*http.Request, error)) (answer *http.Response, again bool, err error) {
	r, err := request(ctx)
	if err != nil {
		return nil, false, err
	}
	answer, err = s.cfg.HTTP.Do(r)
	if err != nil {
		return nil, true, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer, false, nil
	}
	defer answer.Body.Close()
	return nil, repeatable(answer.StatusCode), errorOf(answer)
}

func repeatable(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500
}

func itemOf(t *form.Task) item.Item {
	is := item.Item{ID: t.ID, Group: t.Group, At: taskstore.Millis(t.Timespec), Owner: t.OwnerID, Data: t.Data64}
	if t.Data != nil {
		is.Data = []byte(*t.Data)
	}
	return is
}
