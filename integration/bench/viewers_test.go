package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// looking orders viewers to look for a while.
type looking struct {
	Network string
	Address string
	Paths   []string // the pages; each viewer begins with another one, or where it was at the end of the last order
	Once    []string // those of Paths that do not refresh themselves
	Viewers int
	Lasts   time.Duration
	Every   time.Duration // from one question of a viewer to its next one, at least
}

// seen tells how long pages took, by their paths.
type seen struct {
	Took map[string][]time.Duration
	Cut  int // pages that refresh themselves and lacked a part
	Err  string
}

// lookAtPages is the role of the process of the viewers.
func lookAtPages(ctx context.Context, in *json.Decoder, out *json.Encoder) error {
	runtime.GOMAXPROCS(1) // it does little, and leaves the other processors to what is measured
	at := map[int]int{}
	for {
		var o looking
		if err := in.Decode(&o); err != nil {
			return err
		}
		told, err := o.look(ctx, at)
		if err != nil {
			told.Err = err.Error()
		}
		if err := out.Encode(told); err != nil {
			return fmt.Errorf("tell what was seen: %w", err)
		}
	}
}

// look has each viewer ask for its page again and again, and when a page was asked for a few times go to the next one.
// at has the place of the page of each viewer who has looked before, and is set to where they are at the end.
func (o *looking) look(ctx context.Context, at map[int]int) (seen, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, o.Network, o.Address)
	}
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: o.Viewers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	told := seen{Took: map[string][]time.Duration{}}
	var mu sync.Mutex
	over := time.Now().Add(o.Lasts)
	g, ctx := errgroup.WithContext(ctx)
	for viewer := range o.Viewers {
		mu.Lock()
		page, before := at[viewer]
		mu.Unlock()
		if !before {
			page = viewer * len(o.Paths) / o.Viewers
		}
		g.Go(func() (err error) {
			for ; time.Now().Before(over) && err == nil; page++ {
				path := o.Paths[page%len(o.Paths)]
				err = o.visit(ctx, client, viewer, path, over, func(took time.Duration, whole bool) {
					mu.Lock()
					defer mu.Unlock()
					told.Took[path] = append(told.Took[path], took)
					if !whole && !slices.Contains(o.Once, path) {
						told.Cut++
					}
				})
			}
			mu.Lock()
			defer mu.Unlock()
			at[viewer] = page
			return err
		})
	}
	return told, g.Wait()
}

// visit has a viewer ask for a page a few times, or until it is over, and tells how long each answer took, and whether
// it was whole.
func (o *looking) visit(
	ctx context.Context, client *http.Client, viewer int, path string, over time.Time,
	tell func(took time.Duration, whole bool),
) error {
	times := refreshes
	if slices.Contains(o.Once, path) {
		times = 1
	}
	tag := "" // the browser has kept no answer yet
	for range times {
		began := time.Now()
		if began.After(over) {
			return nil
		}
		var whole bool
		var err error
		if tag, whole, err = askPage(ctx, client, viewer, path, tag); err != nil {
			return err
		}
		took := time.Since(began)
		tell(took, whole)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(o.Every-took, time.Until(over))):
		}
	}
	return nil
}

// refreshes counts the questions of a viewer for one page, of which all but the first are conditional.
const refreshes = 5

// askPage asks for a page as the browser of a viewer does. tag names the answer that the browser has kept, "" = none;
// the tag of the answer that it keeps now is returned, "" if the answer lacks a part, and whether it is whole.
func askPage(
	ctx context.Context, client *http.Client, viewer int, path, tag string,
) (kept string, whole bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return "", false, err
	}
	r.Header.Set("Authorization", "Bearer "+secretOf(viewer))
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", false, err
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", false, fmt.Errorf("page %s: %w", path, err)
	}
	switch answer.StatusCode {
	case http.StatusNotModified:
		return tag, true, nil
	case http.StatusOK:
		if bytes.Contains(page, []byte("This page is not whole")) {
			return "", false, nil
		}
		return answer.Header.Get("ETag"), true, nil
	}
	return "", false, fmt.Errorf("page %s: %s: %.200s", path, answer.Status, page)
}
