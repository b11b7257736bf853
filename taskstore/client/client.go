// Package client asks the task stores of a cluster over its HTTP API.
//
// A [Client] implements taskstore.Backend: taskstore.Open makes a store from it, which repeats calls without an
// answer, and has a client id and keys. A Client sends each call once. It answers as an engine's client in this
// process would, except that a 503 of an update or a claim becomes task.ErrUnknown, whatever its reason.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"taskledger/api/problem"
	"taskledger/api/stores/form"
	"taskledger/item"
	"taskledger/store"
	"taskledger/taskstore"
)

// Options of New.
type Options struct {
	// URL is the address of the HTTP API: http://HOST:PORT, https://HOST:PORT, each with a path before that of the API
	// if there is one, or unix:PATH, the socket of a node on this machine.
	URL string
	// Root says that URL is the root of one store, as --store-listen has it. The name with which the store is
	// opened is that in errors then; a process opens one root under one name, or its calls are counted as if they
	// were those of two stores.
	Root bool
	// Token authenticates requests to the API; default: none is sent.
	Token string
	// HTTP sends the requests; default: a client of its own, which keeps up to 64 connections. It is not used with a
	// unix socket.
	HTTP *http.Client
}

// Client asks the API of a cluster. Its methods may be called by many at once.
type Client struct {
	base  string // without a slash at its end
	root  bool
	token string
	http  *http.Client
	idle  *http.Transport // its own
}

const (
	// answerWithin bounds the wait for one answer, beside the time that a claim waits. The API answers within 30 s.
	answerWithin = 35 * time.Second
	connections  = 64

	pageItems = 1_000
	pageBytes = 512 << 10
	// An item as JSON takes at most itemBytes: data of 256 KiB, each byte of which may be escaped as six, and a group.
	itemBytes = 6*item.MaxBytes + 4<<10
	// changeBytes bounds the answer to an update: the data are at most those of one item.
	changeBytes = itemBytes + item.MaxIDs*2<<10
	// errorBytes bounds that to a request which is refused: a text for each id.
	errorBytes = 1 << 20
)

// New returns a client. It asks nothing.
func New(o Options) (*Client, error) {
	bad := func(format string, args ...any) (*Client, error) {
		return nil, &store.InvalidError{Field: "url", Problem: fmt.Sprintf(format, args...)}
	}
	c := &Client{root: o.Root, token: o.Token, http: o.HTTP}
	if !inHeader(o.Token) {
		return nil, &store.InvalidError{Field: "token", Problem: "want printable ASCII, without a space at its ends"}
	}
	path, socket := strings.CutPrefix(o.URL, "unix:")
	at, err := url.Parse(o.URL)
	switch {
	case socket && path == "":
		return bad("%q: want unix:PATH", o.URL)
	case socket:
		path = strings.TrimPrefix(path, "//")
		c.base, c.http = "http://localhost", nil
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.RawQuery != "" || at.Fragment != "":
		return bad("%.200q: want http://HOST:PORT, https://HOST:PORT or unix:PATH", o.URL)
	default:
		c.base = strings.TrimRight(o.URL, "/")
	}
	if c.http == nil {
		c.idle = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			MaxIdleConnsPerHost: connections,
			IdleConnTimeout:     time.Minute,
			TLSHandshakeTimeout: 10 * time.Second,
		}
		dial := net.Dialer{Timeout: 10 * time.Second}
		c.idle.DialContext = dial.DialContext
		if socket {
			c.idle.Proxy = nil
			c.idle.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial.DialContext(ctx, "unix", path) }
		}
		c.http = &http.Client{
			Transport:     c.idle,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return c, nil
}

var _ taskstore.Backend = (*Client)(nil)

// Close closes the connections that are not in use, of a client that has not been given what asks.
func (c *Client) Close() {
	if c.idle != nil {
		c.idle.CloseIdleConnections()
	}
}

// Update implements taskstore.Backend.
func (c *Client) Update(ctx context.Context, name string, u *item.Update) ([]item.Item, error) {
	if err := u.Validate(); err != nil {
		return nil, err
	}
	var made form.Tasks
	q := request{
		name:    name,
		path:    "/update",
		key:     u.Key,
		age:     u.Age,
		counted: u.Within,
		body:    updateOf(u),
		most:    changeBytes,
		within:  answerWithin,
	}
	if err := c.change(ctx, &q, &made); err != nil {
		return nil, err
	}
	if want := len(u.Adds) + len(u.Changes); len(made.Tasks) != want {
		return nil, unknown(fmt.Errorf("%d tasks answered, want %d", len(made.Tasks), want))
	}
	all := make([]item.Item, len(made.Tasks))
	for i := range made.Tasks {
		all[i] = itemOf(&made.Tasks[i])
	}
	return all, nil
}

// Claim implements taskstore.Backend.
func (c *Client) Claim(ctx context.Context, name string, q *item.Claim) (*item.Item, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	body := form.Claim{
		ClientID: q.Client,
		Group:    form.Text(q.Group),
		Duration: q.Duration.Milliseconds(),
		Wait:     q.Wait.Milliseconds(),
		Depends:  q.Depends,
	}
	var claimed form.Tasks
	r := request{
		name:   name,
		path:   "/claim",
		key:    q.Key,
		age:    q.Age,
		body:   body,
		most:   itemBytes,
		within: answerWithin + q.Wait,
	}
	if err := c.change(ctx, &r, &claimed); err != nil {
		return nil, err
	}
	switch len(claimed.Tasks) {
	case 0:
		return nil, nil
	case 1:
		it := itemOf(&claimed.Tasks[0])
		return &it, nil
	}
	return nil, unknown(fmt.Errorf("%d tasks claimed, want one", len(claimed.Tasks)))
}

// idsAtOnce keeps the address of a request below 8 KiB.
const idsAtOnce = 400

// Items implements taskstore.Backend.
func (c *Client) Items(ctx context.Context, name string, ids []int64, linear bool) (all []*item.Item, err error) {
	for len(ids) > 0 {
		part := ids[:min(len(ids), idsAtOnce)]
		ids = ids[len(part):]
		texts := make([]string, len(part))
		for i, id := range part {
			texts[i] = strconv.FormatInt(id, 10)
		}
		var found []*form.Task
		r := request{
			name:   name,
			path:   "/tasks/" + strings.Join(texts, ","),
			query:  linearly(linear),
			most:   int64(len(part)) * itemBytes,
			within: answerWithin,
		}
		if err := c.read(ctx, &r, whole(&found)); err != nil {
			return nil, err
		}
		if len(found) != len(part) {
			return nil, unavailable(fmt.Errorf("%d tasks answered, want %d", len(found), len(part)))
		}
		for _, t := range found {
			if t == nil {
				all = append(all, nil)
				continue
			}
			it := itemOf(t)
			all = append(all, &it)
		}
	}
	return all, nil
}

// Group implements taskstore.Backend.
func (c *Client) Group(ctx context.Context, name string, p item.Page) (page []item.Item, more bool, err error) {
	if err := p.Validate(); err != nil {
		return nil, false, err
	}
	limit := pageItems
	if p.Limit > 0 {
		limit = min(limit, p.Limit)
	}
	query := linearly(p.Linear)
	query.Set("name", p.Group)
	query.Set("limit", strconv.Itoa(limit))
	if p.After > 0 {
		query.Set("after", strconv.FormatInt(p.After, 10))
	}
	if p.Owned {
		query.Set("owned", "1")
	}
	r := request{
		name:   name,
		path:   "/group",
		query:  query,
		most:   6*pageBytes + itemBytes + pageItems*2<<10,
		within: answerWithin,
	}
	err = c.read(ctx, &r, func(d *json.Decoder) error {
		page, more, err = readPage(d, limit)
		return err
	})
	return page, more, err
}

// readPage reads as many items as fit a page; the rest is asked for anew.
func readPage(d *json.Decoder, limit int) (page []item.Item, more bool, err error) {
	if at, err := d.Token(); err != nil || at != json.Delim('[') {
		return nil, false, fmt.Errorf("want an array, got %v: %w", at, orUnexpected(err))
	}
	for size := 0; d.More(); {
		if len(page) == limit || size > pageBytes {
			return page, true, nil
		}
		var t form.Task
		if err := d.Decode(&t); err != nil {
			return nil, false, err
		}
		page = append(page, itemOf(&t))
		size += len(page[len(page)-1].Data)
	}
	_, err = d.Token() // the end of the array: without it the rest was lost
	return page, len(page) == limit, orUnexpectedEnd(err)
}

// Groups implements taskstore.Backend.
func (c *Client) Groups(ctx context.Context, name string, linear bool) ([]item.Group, error) {
	var told []form.Group
	r := request{name: name, path: "/stats", query: linearly(linear), most: maxGroupsBytes, within: answerWithin}
	if err := c.read(ctx, &r, whole(&told)); err != nil {
		return nil, err
	}
	all := make([]item.Group, len(told))
	for i, g := range told {
		all[i] = item.Group{
			Name:      g.Group,
			Available: g.Available,
			Waiting:   g.Waiting,
			Claimed:   g.Claimed,
			Bytes:     g.Bytes,
			Oldest:    millis(g.Oldest),
		}
	}
	return all, nil
}

// maxGroupsBytes bounds an answer with 100,000 groups, each byte of whose names is escaped.
const maxGroupsBytes = 100_000 * (6*256 + 256)

func linearly(linear bool) url.Values {
	if linear {
		return url.Values{"linear": {"1"}}
	}
	return url.Values{}
}

func whole(into any) func(*json.Decoder) error {
	return func(d *json.Decoder) error { return d.Decode(into) }
}

func orUnexpectedEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func orUnexpected(err error) error {
	if err == nil {
		return problem.New(problem.Malformed, "the answer is none")
	}
	return orUnexpectedEnd(err)
}

func itemOf(t *form.Task) item.Item {
	it := item.Item{ID: t.ID, Group: t.Group, At: millis(t.Timespec), Owner: t.OwnerID, Claims: t.Claims, Data: t.Data64}
	if t.Data != nil && *t.Data != "" {
		it.Data = []byte(*t.Data)
	}
	return it
}

func updateOf(u *item.Update) *form.Update {
	is := &form.Update{ClientID: u.Client, Deletes: u.Deletes, Depends: u.Depends}
	for i := range u.Adds {
		a := &u.Adds[i]
		data, other := dataOf(a.Data)
		is.Adds = append(is.Adds, form.Add{Group: form.Text(a.Group), Data: data, Data64: other, Timespec: int64(a.At)})
	}
	for i := range u.Changes {
		c := &u.Changes[i]
		data, other := dataOf(c.Data)
		is.Updates = append(is.Updates, form.Change{ID: c.ID, Group: form.Text(c.Group), Data: data, Data64: other, Keep: c.Keep, Timespec: int64(c.At)})
	}
	return is
}

func encode(body any) (*bytes.Reader, error) {
	data, err := json.Marshal(body)
	return bytes.NewReader(data), err
}
