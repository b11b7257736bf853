package testcluster

import (
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// Security says how an etcd authenticates its clients.
type Security struct {
	Authority    *Authority // TLS, with a certificate of this authority; nil = no TLS
	ClientCerts  bool       // and one from every client
	RootPassword string     // of user root; "" = no users
}

// SecureEtcd is a one-member etcd that asks clients who they are.
type SecureEtcd struct {
	Endpoint string           // URL
	Root     *clientv3.Client // may do everything

	t testing.TB
}

// StartSecureEtcd starts an etcd that lives as long as the test.
func StartSecureEtcd(t testing.TB, s Security) *SecureEtcd {
	t.Helper()
	root := clientv3.Config{DialTimeout: startTimeout}
	e := startEtcd(t, func(cfg *embed.Config) {
		cfg.EnableGRPCGateway = false // it would be a client without a certificate
		cfg.BcryptCost = 4            // the least: every store that is opened waits for it
		if s.Authority == nil {
			return
		}
		cert := s.Authority.Issue("etcd")
		root.TLS = s.Authority.Client(cert)
		cfg.ClientTLSInfo = transport.TLSInfo{CertFile: cert.CertFile, KeyFile: cert.KeyFile}
		if s.ClientCerts {
			cfg.ClientTLSInfo.TrustedCAFile, cfg.ClientTLSInfo.ClientCertAuth = s.Authority.File, true
		}
		cfg.ListenClientUrls[0].Scheme = "https"
	})
	secure := &SecureEtcd{Endpoint: e.Config().ListenClientUrls[0].Scheme + "://" + e.Clients[0].Addr().String(), t: t}
	root.Endpoints = []string{secure.Endpoint}
	if s.RootPassword != "" {
		setUp := dialEtcd(t, root)
		_, err := setUp.UserAdd(t.Context(), "root", s.RootPassword)
		secure.must(err)
		_, err = setUp.UserGrantRole(t.Context(), "root", "root")
		secure.must(err)
		_, err = setUp.AuthEnable(t.Context())
		secure.must(err)
		root.Username, root.Password = "root", s.RootPassword
	}
	secure.Root = dialEtcd(t, root)
	return secure
}

// AddUser adds a user who may do nothing yet. One without password logs in with a certificate of that common name.
func (e *SecureEtcd) AddUser(name, password string) {
	e.t.Helper()
	_, err := e.Root.RoleAdd(e.t.Context(), name)
	e.must(err)
	_, err = e.Root.UserAddWithOptions(e.t.Context(), name, password, &clientv3.UserAddOptions{NoPassword: password == ""})
	e.must(err)
	_, err = e.Root.UserGrantRole(e.t.Context(), name, name)
	e.must(err)
}

// Permit lets the user read and write the keys of the cluster, and nothing else. It may be called concurrently.
func (e *SecureEtcd) Permit(user, cluster string) {
	e.t.Helper()
	from := cluster + "/"
	_, err := e.Root.RoleGrantPermission(e.t.Context(), user, from, clientv3.GetPrefixRangeEnd(from),
		clientv3.PermissionType(clientv3.PermReadWrite))
	e.must(err)
}

// LogOut makes etcd forget every log-in of the user, whose password stays as given.
func (e *SecureEtcd) LogOut(user, password string) {
	e.t.Helper()
	_, err := e.Root.UserChangePassword(e.t.Context(), user, password)
	e.must(err)
}

func (e *SecureEtcd) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatalf("set up users of etcd: %v", err)
	}
}

func dialEtcd(t testing.TB, cfg clientv3.Config) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(cfg)
	if err != nil {
		t.Fatalf("connect to etcd: %v", err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
