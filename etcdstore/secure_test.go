package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

const (
	user     = "node"
	password = "hunter2-node"
)

// startSecure starts an etcd with TLS and a user who may use the cluster and nothing else.
func startSecure(t *testing.T, ca *testcluster.Authority, s testcluster.Security) *testcluster.SecureEtcd {
	t.Helper()
	s.Authority, s.RootPassword = ca, "hunter2-root"
	e := testcluster.StartSecureEtcd(t, s)
	if s.ClientCerts {
		e.AddUser(user, "")
	} else {
		e.AddUser(user, password)
	}
	e.Permit(user, cluster)
	return e
}

func TestStore_KeepsTheContractWithTLSAndAPassword(t *testing.T) {
	t.Parallel()
	ca := testcluster.NewAuthority(t)
	e := startSecure(t, ca, testcluster.Security{})
	permitConform(e)
	cfg := etcdstore.Config{Endpoints: []string{e.Endpoint}, TLS: ca.Client(), Username: user, Password: password}
	conformToSome(t, 1, e.Root, cfg) // half with -short
}

func TestStore_KeepsTheContractWithAClientCertificateForAUser(t *testing.T) {
	t.Parallel()
	ca := testcluster.NewAuthority(t)
	e := startSecure(t, ca, testcluster.Security{ClientCerts: true})
	permitConform(e)
	cfg := etcdstore.Config{Endpoints: []string{e.Endpoint}, TLS: ca.Client(ca.Issue(user))}
	conformToSome(t, 3, e.Root, cfg)
}

// permitConform lets the user use the clusters of conform.
func permitConform(e *testcluster.SecureEtcd) {
	for n := range 200 {
		e.Permit(user, fmt.Sprint("c", n+1))
	}
}

func TestOpen_SaysAtOnceWhatIsWrongWithPasswordAndCertificates(t *testing.T) {
	t.Parallel()
	ca, other := testcluster.NewAuthority(t), testcluster.NewAuthority(t)
	byPassword := startSecure(t, ca, testcluster.Security{})
	byCert := startSecure(t, ca, testcluster.Security{ClientCerts: true})
	for name, c := range map[string]struct {
		etcd *testcluster.SecureEtcd
		cfg  etcdstore.Config
		is   error
		want string
	}{
		"wrong password": {byPassword, etcdstore.Config{TLS: ca.Client(), Username: user, Password: "hunter2-wrong"},
			etcdstore.ErrDenied, `denies access to user "node": etcdserver: authentication failed`},
		"unknown user": {byPassword, etcdstore.Config{TLS: ca.Client(), Username: "nobody", Password: password},
			etcdstore.ErrDenied, `user "nobody"`},
		"no user": {byPassword, etcdstore.Config{TLS: ca.Client()},
			etcdstore.ErrDenied, "a client without user"},
		"another cluster": {byPassword, etcdstore.Config{TLS: ca.Client(), Username: user, Password: password, Cluster: "other"},
			etcdstore.ErrDenied, `open cluster "other": etcd denies access to user "node": read meta: etcdserver: permission denied`},
		"wrong authority": {byPassword, etcdstore.Config{TLS: other.Client(), Username: user, Password: password},
			store.ErrUnavailable, "certificate signed by unknown authority"},
		"wrong authority, no user": {byPassword, etcdstore.Config{TLS: other.Client()},
			store.ErrUnavailable, "certificate signed by unknown authority"},
		"the system's authorities": {byPassword, etcdstore.Config{Username: user, Password: password},
			store.ErrUnavailable, "certificate signed by unknown authority"},
		"no client certificate": {byCert, etcdstore.Config{TLS: ca.Client()},
			store.ErrUnavailable, "certificate required"},
		"client certificate of another authority": {byCert, etcdstore.Config{TLS: ca.Client(other.Issue(user))},
			store.ErrUnavailable, "unknown certificate authority"},
		"client certificate of nobody": {byCert, etcdstore.Config{TLS: ca.Client(ca.Issue("nobody"))},
			etcdstore.ErrDenied, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.cfg.Endpoints = []string{c.etcd.Endpoint}
			if c.cfg.Cluster == "" {
				c.cfg.Cluster = cluster
			}
			c.cfg.RequestTimeout = timeout
			_, err := etcdstore.Open(t.Context(), c.cfg)
			wantError(t, err, c.want)
			if !errors.Is(err, c.is) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error is %v, want one that wraps %v, before the request's time is over", err, c.is)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error shows a password: %v", err)
			}
		})
	}
}

func TestOpen_WithoutAServerEndsWithItsContextAndSaysWhy(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]etcdstore.Config{
		"no user": {Endpoints: []string{"127.0.0.1:1"}},
		"a user":  {Endpoints: []string{"127.0.0.1:1"}, Username: user, Password: password},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			cfg.RequestTimeout = time.Hour
			_, err := etcdstore.Open(ctx, cfg)
			wantError(t, err, "connection refused")
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("error is %v, want one that wraps %v", err, store.ErrUnavailable)
			}
		})
	}
}

func TestOpen_RefusesWhatWouldSendAPasswordInTheClear(t *testing.T) {
	t.Parallel()
	ca := testcluster.NewAuthority(t)
	for want, cfg := range map[string]etcdstore.Config{
		"want https:// with TLS":  {Endpoints: []string{"http://127.0.0.1:1"}, TLS: ca.Client()},
		"want TLS at all or none": {Endpoints: []string{"127.0.0.1:1", "https://127.0.0.1:2"}},
		"want user and password":  {Endpoints: []string{"https://127.0.0.1:1"}, Username: user},
		"user and password, or":   {Endpoints: []string{"https://127.0.0.1:1"}, Password: password},
		"endpoint holds a user":   {Endpoints: []string{"https://node:" + password + "@127.0.0.1:1"}},
	} {
		_, err := etcdstore.Open(t.Context(), cfg)
		wantError(t, err, want)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error shows a password: %v", err)
		}
	}
}

// A watch stream keeps the log-in with which it was opened, and a new watch joins it as long as an older one is there.
func TestFollow_WatchesAgainWhenEtcdHasForgottenTheLogIn(t *testing.T) {
	t.Parallel()
	ca := testcluster.NewAuthority(t)
	e := startSecure(t, ca, testcluster.Security{})
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	broken := make(brokenWatches, 100)
	s := openStore(t, etcdstore.Config{Cluster: cluster, Endpoints: []string{e.Endpoint}, TLS: ca.Client(), Username: user, Password: password,
		Log: slog.New(broken)})
	f := &fixture{T: t, ctx: ctx, faulty: s}
	older, stop := iter.Pull2(s.Follow(ctx, 0, 1))
	defer stop()
	o := f.own()
	head := f.append(o, store.Head{}, "one")
	f.wantNext(older, "one")
	head = f.append(o, head, "two")
	f.wantNext(older, "two") // from its watch, which stays
	e.LogOut(user, password)
	newer, stopNewer := iter.Pull2(s.Follow(ctx, 0, 1))
	defer stopNewer()
	f.wantNext(newer, "one")
	f.wantNext(newer, "two")
	for _, entry := range []string{"three", "four", "five"} {
		head = f.append(o, head, entry)
		f.wantNext(newer, entry)
		f.wantNext(older, entry)
	}
	if n := len(broken); n > 1 {
		t.Errorf("%d watches broke, want only the one that used the forgotten log-in", n)
	}
}

// brokenWatches is a log that counts watches that broke.
type brokenWatches chan struct{}

func (b brokenWatches) Enabled(context.Context, slog.Level) bool { return true }
func (b brokenWatches) WithAttrs([]slog.Attr) slog.Handler       { return b }
func (b brokenWatches) WithGroup(string) slog.Handler            { return b }

func (b brokenWatches) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "reading again" {
		b <- struct{}{}
	}
	return nil
}

func TestCompact_WithoutPermissionIsRefused(t *testing.T) {
	t.Parallel()
	ca := testcluster.NewAuthority(t)
	e := startSecure(t, ca, testcluster.Security{})
	s := openStore(t, etcdstore.Config{Cluster: cluster, Endpoints: []string{e.Endpoint}, TLS: ca.Client(), Username: user, Password: password})
	if err := s.Compact(t.Context(), 1); !errors.Is(err, store.ErrRefused) {
		t.Errorf("compact: %v, want %v", err, store.ErrRefused)
	}
	if u, err := s.Usage(t.Context()); err != nil || u.InUse == 0 {
		t.Errorf("usage is %+v, %v", u, err)
	}
}
