package guides_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"taskledger/engine/local"
	"taskledger/taskstore"
)

// site answers with the pages that a page names.
type site struct {
	pages map[string][]string
	mu    sync.Mutex
	seen  []string
}

func (s *site) fetch(_ context.Context, url string) ([]taskstore.Add, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, url)
	var links []taskstore.Add
	for _, page := range s.pages[url] {
		links = append(links, taskstore.Add{Group: "fetch", Data: []byte(page)})
	}
	return links, nil
}

// crawl works on the group "fetch" of a store until ctx ends. The backend is a node's or client's Stores, or
// taskstore/client.New over HTTP.
func crawl(ctx context.Context, b taskstore.Backend, fetch func(context.Context, string) ([]taskstore.Add, error)) error {
	s, err := taskstore.Open(b, "crawl", taskstore.Options{})
	if err != nil {
		return err
	}
	w, err := taskstore.NewWorker(s, "fetch", func(ctx context.Context, it *taskstore.Item) (taskstore.Update, error) {
		links, err := fetch(ctx, string(it.Data))
		return taskstore.Update{Adds: links}, err // the item is deleted by the same update
	}, taskstore.WorkerOptions{Slots: 8, RetryAfter: time.Minute})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}

func TestTaskStore_TheGuideFetchesEveryPageOnce(t *testing.T) {
	node, err := local.Memory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	s, err := taskstore.Open(node.Stores(), "crawl", taskstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), taskstore.Update{Adds: []taskstore.Add{{Group: "fetch", Data: []byte("/")}}}); err != nil {
		t.Fatal(err)
	}
	web := &site{pages: map[string][]string{"/": {"/a", "/b"}, "/a": {"/c"}}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- crawl(ctx, node.Stores(), web.fetch) }()
	for {
		groups, err := s.Linear().Groups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(groups) == 0 {
			break
		}
	}
	stop()
	<-ended
	slices.Sort(web.seen)
	if want := []string{"/", "/a", "/b", "/c"}; !slices.Equal(web.seen, want) {
		t.Errorf("fetched %v, want %v", web.seen, want)
	}
}
