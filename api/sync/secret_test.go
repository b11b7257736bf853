package sync_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/sync"
)

// Below the API the two headers have the secret; on a listener of its own the parameter token has it as well.
func TestSecrets_StandWhereClientsOfEventNativePutThem(t *testing.T) {
	everybody["t&l +%"] = everybody["viewer"] // a secret that a query escapes
	defer delete(everybody, "t&l +%")
	s := serve(t, newWorld())
	s.want(s.ask("", "GET", "/schedules", "X-Admin-Token", "viewer"), 200, "")
	s.want(s.ask("", "GET", "/schedules", "X-Admin-Token", "nobody"), 401, "Authorization: Bearer, or X-Admin-Token, and")
	s.want(s.ask("nobody", "GET", "/schedules", "X-Admin-Token", "viewer"), 401, "")
	s.want(s.ask("", "GET", "/schedules?token=viewer"), 401, "")
	s.want(s.ask("viewer", "GET", "/schedules?token=viewer"), 400, `"field":"token"`)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.api.Serve(ctx, api.Below(l, sync.Root)) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, c := range []struct {
		path   string
		header string
		status int
	}{
		{"/schedules?token=viewer", "", 200},
		{"/schedules/?token=viewer", "", 200},
		{"/schedules?token=t%26l%20%2B%25", "", 200},
		{all + "&token=viewer&limit=1", "", 200},
		{"/schedules", "viewer", 200},
		{"/schedules?token=nobody", "viewer", 200}, // the header is there
		{"/schedules?token=nobody", "", 401},
		{"/schedules?token=", "", 401},
		{"/schedules?token=viewer&token=viewer", "", 401},
		{"/schedules?token=viewer&x=1", "", 400},
		{"/sync/schedules?token=viewer", "", 404},
		{"/v1/nodes?token=viewer", "", 404},
		{"/nothing?token=viewer", "", 404},
	} {
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+l.Addr().String()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.header != "" {
			r.Header.Set("X-Admin-Token", c.header)
		}
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if a.StatusCode != c.status || c.status != 200 && !strings.Contains(string(text), `"message":"`) {
			t.Errorf("%s with %q: %d %s", c.path, c.header, a.StatusCode, text)
		}
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	for secret := range everybody {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log tells %s: %s", secret, s.log)
		}
	}
}
