package connect_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"taskledger/cluster"
	"taskledger/cmd/node/internal/connect"
	"taskledger/filestore"
	"taskledger/internal/advertised"
	"taskledger/store"
)

func TestToFiles_LinksByTheAPIAloneAndNamesWhatKeepsItFromThat(t *testing.T) {
	const page = `{"cluster":"here","shards":1,"begins":1,"revision":1,"entries":[]}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer own" {
			t.Errorf("headers %v", r.Header)
		}
		_, _ = io.WriteString(w, page)
	}))
	defer s.Close()
	up := advertised.API{Addresses: []string{s.URL}, URL: s.URL, Token: "own"}
	gone := advertised.API{Addresses: []string{"unix:" + filepath.Join(t.TempDir(), "none")}, Token: "own"}
	invalid := func(err error) bool { _, is := errors.AsType[*store.InvalidError](err); return is }
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for what, c := range map[string]struct {
		at     advertised.Servers
		asks   connect.Addresses
		linked bool
		fails  func(error) bool // nil = it does not
	}{
		"a node that runs":    {advertised.Servers{Store: advertised.InFiles, API: up}, connect.Addresses{}, true, nil},
		"the one expected":    {advertised.Servers{Store: advertised.InFiles, API: up}, connect.Addresses{ID: "here"}, true, nil},
		"another one":         {advertised.Servers{Store: advertised.InFiles, API: up}, connect.Addresses{ID: "there"}, false, is(filestore.ErrOtherCluster)},
		"a name":              {advertised.Servers{Store: advertised.InFiles, API: up}, connect.Addresses{Cluster: "a"}, false, invalid},
		"a node that is gone": {advertised.Servers{Store: advertised.InFiles, API: gone}, connect.Addresses{}, false, is(cluster.ErrNoNode)},
		"no API":              {advertised.Servers{Store: advertised.InFiles}, connect.Addresses{}, false, is(store.ErrUnavailable)},
		"a store in etcd":     {advertised.Servers{API: up}, connect.Addresses{}, false, nil},
	} {
		dir := t.TempDir()
		if err := advertised.Write(dir, c.at); err != nil {
			t.Fatal(err)
		}
		link, err := connect.ToFiles(t.Context(), dir, c.asks)
		if (link != nil) != c.linked || (err != nil) != (c.fails != nil) || err != nil && !c.fails(err) {
			t.Errorf("%s: linked %v, %v", what, link != nil, err)
		}
		if link != nil {
			if err := link.Close(); err != nil || link.API == nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if link, err := connect.ToFiles(t.Context(), t.TempDir(), connect.Addresses{}); link != nil || err != nil {
		t.Errorf("of a directory of nothing: %v, %v", link, err)
	}
}
