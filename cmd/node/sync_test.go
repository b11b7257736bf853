package main_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestSync_IsServedAtTheRootOfItsListener(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--api", "127.0.0.1:0", "--sync-listen", "127.0.0.1:0")
	root := ""
	for _, line := range n.printed {
		if at, is := strings.CutPrefix(strings.TrimSpace(line), "sync "); is {
			root = strings.TrimSpace(at)
		}
	}
	if root == "" {
		t.Fatalf("printed %q", n.printed)
	}
	at := advertised(t, dir)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for _, c := range []struct {
		method, path, secret string
		status               int
		part                 string
	}{
		{"GET", "/schedules", at.Token, 200, `{"schedules":[]}`},
		{"GET", "/schedules/?token=" + at.Token, "", 200, `{"schedules":[]}`},
		{"GET", "/schedules?token=nobody", "", 401, `"message":"`},
		{"POST", "/tasks/?source=shop&collection=orders", at.Token, 400, `"field":"source"`},
		{"GET", "/tasks/shop_orders_7a5f6f5c-2f27-5d3e-9d55-0b8f8a3c1e01", at.Token, 404, `"error":"`},
		{"GET", "/v1/nodes", at.Token, 404, `"message":"`},
	} {
		status, text := call(t, client, c.method, root+c.path, c.secret, "")
		if status != c.status || !strings.Contains(text, c.part) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, text)
		}
	}
	if status, text := call(t, client, "GET", at.URL+"/sync/schedules?token="+at.Token, "", ""); status != 401 {
		t.Errorf("the API takes a secret from a query: %d %s", status, text)
	}
}
