package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"taskledger/api/stores/form"
	"taskledger/item"
)

// idsAtOnce is how many items one request asks for: their ids fit a URL.
const idsAtOnce = 100

// ItemGroups implements taskstore.Items.
func (r *remote) ItemGroups(ctx context.Context, _ string, linear bool) (names []string, err error) {
	q := url.Values{}
	prove(q, linear)
	err = r.each(ctx, "/groups", q, func(d *json.Decoder) (bool, error) {
		var name string
		err := d.Decode(&name)
		names = append(names, name)
		return true, err
	})
	return names, err
}

// Items implements taskstore.Items.
func (r *remote) Items(ctx context.Context, _ string, ids []int64, linear bool) ([]*item.Item, error) {
	all := make([]*item.Item, 0, len(ids))
	q := url.Values{}
	prove(q, linear)
	for len(ids) > 0 {
		part := ids[:min(len(ids), idsAtOnce)]
		ids = ids[len(part):]
		var path strings.Builder
		path.WriteString("/tasks/")
		for i, id := range part {
			if i > 0 {
				path.WriteByte(',')
			}
			path.WriteString(strconv.FormatInt(id, 10))
		}
		before := len(all)
		err := r.each(ctx, path.String(), q, func(d *json.Decoder) (bool, error) {
			var t *form.Task
			if err := d.Decode(&t); err != nil {
				return false, err
			}
			if t == nil {
				all = append(all, nil)
				return true, nil
			}
			it := itemOf(t)
			all = append(all, &it)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
		if got := len(all) - before; got != len(part) {
			return nil, fmt.Errorf("tasks: answer of %d, want %d", got, len(part))
		}
	}
	return all, nil
}

// StreamGroup returns a group as the server lists it: the whole of it, as there are no pages. Those that come before the page are passed over.
func (r *remote) StreamGroup(ctx context.Context, _ string, p item.Page) iter.Seq2[item.Item, error] {
	return func(yield func(item.Item, error) bool) {
		q := url.Values{"name": {p.Group}}
		prove(q, p.Linear)
		if p.Owned {
			q.Set("owned", "yes")
		}
		if p.Limit > 0 && p.After == 0 {
			q.Set("limit", strconv.Itoa(p.Limit))
		}
		left := p.Limit
		err := r.each(ctx, "/group", q, func(d *json.Decoder) (bool, error) {
			var t form.Task
			if err := d.Decode(&t); err != nil {
				return false, err
			}
			if t.ID <= p.After {
				return true, nil
			}
			left--
			return yield(itemOf(&t), nil) && left != 0, nil
		})
		if err != nil {
			yield(item.Item{}, err)
		}
	}
}

// ItemGroup implements taskstore.Items. A Store lists a group by StreamGroup.
func (r *remote) ItemGroup(ctx context.Context, store string, p item.Page) (items []item.Item, more bool, err error) {
	if p.Limit == 0 || p.Limit > item.MaxIDs {
		p.Limit = item.MaxIDs
	}
	for it, err := range r.StreamGroup(ctx, store, p) {
		if err != nil {
			return nil, false, err
		}
		items = append(items, it)
	}
	return items, len(items) == p.Limit, nil
}

func prove(q url.Values, linear bool) {
	if linear {
		q.Set("linear", "1")
	}
}

// each reads an array, one element after the other, each of bounded length, while take says so.
func (r *remote) each(ctx context.Context, path string, q url.Values, take func(*json.Decoder) (bool, error)) error {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := r.send(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return r.named(err)
	}
	defer resp.Body.Close()
	in := &bounded{from: resp.Body, left: maxAnswer}
	d := json.NewDecoder(in)
	broken := func(err error) error { return r.named(lost(http.MethodGet, fmt.Errorf("answer: %w", err))) }
	open, err := d.Token()
	if err != nil {
		return broken(err)
	}
	if open != json.Delim('[') {
		return r.named(fmt.Errorf("GET %s: answer is no list", path))
	}
	for d.More() {
		in.left = maxAnswer
		more, err := take(d)
		if err != nil {
			return broken(err)
		}
		if !more {
			return nil
		}
	}
	if _, err := d.Token(); err != nil {
		return broken(err)
	}
	_, _ = io.CopyN(io.Discard, in, 1) // to the end, so that the connection can be used again
	return nil
}

// bounded reads so many bytes.
type bounded struct {
	from io.Reader
	left int
}

// Read implements io.Reader.
func (b *bounded) Read(into []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("more than %d bytes without an end", maxAnswer)
	}
	n, err := b.from.Read(into[:min(len(into), b.left)])
	b.left -= n
	return n, err
}
