package overui

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// looking orders viewers to look for a while.
type looking struct {
	Network string
	Address string
	Paths   []string // the pages; each viewer begins with another one
	Viewers int
	Micros  int64 // so long
	Every   int64 // microseconds from one question of a viewer to its next one, at least
}

// seen tells how long pages took, by their paths.
type seen struct {
	Micros map[string][]int64
	Err    string
}

// Look is the process of the viewers: it obeys every line of in, and ends with in.
func Look(ctx context.Context, in io.Reader, out io.Writer) error {
	runtime.GOMAXPROCS(1) // it does little, and leaves the other processors to what is measured
	encode := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var o looking
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("read an order: %w", err)
		}
		told, err := o.look(ctx)
		if err != nil {
			told.Err = err.Error()
		}
		if err := encode.Encode(told); err != nil {
			return fmt.Errorf("tell what was seen: %w", err)
		}
	}
	return lines.Err()
}

// look has each viewer ask for its page again and again, and when a page was asked for a few times go to the next one.
func (o *looking) look(ctx context.Context) (seen, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, o.Network, o.Address)
	}
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: o.Viewers}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	told := seen{Micros: map[string][]int64{}}
	var mu sync.Mutex
	over := time.Now().Add(time.Duration(o.Micros) * time.Microsecond)
	every := time.Duration(o.Every) * time.Microsecond
	g, ctx := errgroup.WithContext(ctx)
	for viewer := range o.Viewers {
		g.Go(func() error {
			tag := ""
			for asked := 0; ; asked++ {
				path := o.Paths[(viewer+asked/refreshes)%len(o.Paths)]
				if asked%refreshes == 0 {
					tag = "" // a page that was not seen yet
				}
				began := time.Now()
				if began.After(over) {
					return nil
				}
				var err error
				if tag, err = ask(ctx, client, path, tag); err != nil {
					return err
				}
				took := time.Since(began)
				mu.Lock()
				told.Micros[path] = append(told.Micros[path], took.Microseconds())
				mu.Unlock()
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(min(every-took, time.Until(over))):
				}
			}
		})
	}
	return told, g.Wait()
}

// refreshes counts the questions of a viewer for one page, of which all but the first are conditional.
const refreshes = 5

// ask asks for a page, as a browser does that has one with a tag, "" for none, and returns the tag of what it has then.
func ask(ctx context.Context, client *http.Client, path, tag string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", fmt.Errorf("page %s: %w", path, err)
	}
	switch answer.StatusCode {
	case http.StatusNotModified:
		return tag, nil
	case http.StatusOK:
		return answer.Header.Get("ETag"), nil
	}
	return "", fmt.Errorf("page %s: %s: %.200s", path, answer.Status, page)
}
