// Package httpd gives a node the HTTP API: where it listens, by which certificate, and for whom.
package httpd

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"taskledger/api"
	"taskledger/api/doors"
	"taskledger/api/figures"
	"taskledger/api/logs"
	"taskledger/api/operations"
	"taskledger/api/schedules"
	"taskledger/api/stores"
	syncapi "taskledger/api/sync"
	"taskledger/api/token"
	"taskledger/api/works"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/openfiles"
	"taskledger/engine"
	"taskledger/internal/advertised"
	"taskledger/internal/version"
	"taskledger/item"
)

// defaultAddress is the address of the API of a node with servers inside; if it is taken, another free port is used.
const defaultAddress = "127.0.0.1:7400"

// defaultStore is the task store of --store-listen where --store-name names none.
const defaultStore = "default"

// off is the address of no API.
const off = "off"

// Options are the flags.
type Options struct {
	Address   string
	Tokens    string
	Cert, Key string
	Hosts     []string
	Insecure  bool
	Store     struct{ Address, Name string } // of the task store that has a listener of its own; no address = none
	Sync      string                         // the address of the listener of collections; "" = none

	// Local has the socket of a Place served also where the API is off: there is no other way into the node.
	Local bool
}

// Place is the data directory of a node with servers inside, or with its store in files.
type Place interface {
	Dir() string
	// SocketPath returns where to make a socket that nobody but the user reaches.
	SocketPath(name string) string
	// Advertise tells other processes of the user where the node is, until Close.
	Advertise(api *advertised.API) error
	Close() error
}

// Flags adds them.
func (o *Options) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.Address, "api", "", `address and port of the HTTP API, or off; beyond loopback it needs --api-cert (default: `+defaultAddress+`,
or another free port, for a node with servers inside, else off)`)
	f.StringVar(&o.Tokens, "api-tokens", "", "`file` of the tokens of the API, the same on every node (default: tokens.json in --data, for a node with servers inside;\n"+
		"with --join or --etcd it must be given)")
	f.StringVar(&o.Cert, "api-cert", "", "PEM `file` of the certificate of the API; a changed one is taken within a second")
	f.StringVar(&o.Key, "api-key", "", "PEM `file` of its key")
	flags.ListVar(f, &o.Hosts, "api-host", "`names` under which the API and the pages of --metrics may be asked, beside localhost and addresses")
	f.StringVar(&o.Store.Address, "store-listen", "", "`address` and port at whose root the task store of --store-name is, as the API has it below /store/NAME; by the\nrules of --api (default: none)")
	f.StringVar(&o.Store.Name, "store-name", defaultStore, "`name` of that task store")
	f.StringVar(&o.Sync, "sync-listen", "", "`address` and port at whose root collections are, as the API has them below /sync; by the rules of --api (default: none)")
	f.BoolVar(&o.Insecure, "api-insecure", false, "let the API listen beyond loopback without a certificate: whoever can read the network reads its tokens")
}

// TokensIn is the file of tokens in a data directory.
func TokensIn(dir string) string { return filepath.Join(dir, "tokens.json") }

// Has reports whether there is an API. A node has servers inside, or not.
func (o *Options) Has(inside bool) bool { return o.Address != off && (o.Address != "" || inside) }

// Check says what is wrong with the flags, "" for nothing. A node has servers inside, or not.
func (o *Options) Check(inside bool) string {
	if o.Store.Address == "" && o.Store.Name != defaultStore && o.Store.Name != "" {
		return "--store-name is of --store-listen, which is not given: want it, too"
	}
	if !o.Has(inside) {
		if o.Tokens != "" || o.Cert != "" || o.Key != "" || o.Insecure || o.Store.Address != "" || o.Sync != "" {
			return "--api-tokens, --api-cert, --api-key, --api-insecure, --store-listen and --sync-listen are of the API, which this node has not: want --api"
		}
		return ""
	}
	if !inside && o.Tokens == "" {
		return "--api needs --api-tokens: the file lies on every node"
	}
	if (o.Cert == "") != (o.Key == "") {
		return "--api-cert and --api-key: want both or neither"
	}
	if err := item.ValidateStore(o.Store.Name); err != nil {
		return "--store-name: " + strings.TrimPrefix(err.Error(), "store: ")
	}
	return cmp.Or(o.checkAddress("--api", o.Address), o.checkAddress("--store-listen", o.Store.Address), o.checkAddress("--sync-listen", o.Sync))
}

// checkAddress says what is wrong with where a listener is to be, "" for nothing.
func (o *Options) checkAddress(flag, address string) string {
	if address == "" {
		return ""
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		orOff := ""
		if flag == "--api" { // the others are off where they are not given
			orOff = ", or off"
		}
		return fmt.Sprintf("%s %s: want an address and a port, such as %s%s", flag, address, defaultAddress, orOff)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Sprintf("%s %s: want a port of 0 to 65535", flag, address)
	}
	if !loopback(host) && o.Cert == "" && !o.Insecure {
		return fmt.Sprintf("%s %s is no loopback address: want --api-cert and --api-key, or --api-insecure where others cannot read the network", flag, address)
	}
	return ""
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Server is the API of a node before it serves: its listeners, and who may ask.
type Server struct {
	options   Options
	listeners []net.Listener
	budget    *doors.Budget // of connections by TCP
	local     *doors.Budget // of those by the Unix socket
	url       string
	store     string // the URL of the task store with a listener of its own; "" = there is none
	sync      string // the URL of the listener of collections; "" = there is none
	socket    string
	secure    *tls.Config // nil = no certificate
	tokens    secrets
	figures   *figures.Figures // nil = nobody measures
	log       *slog.Logger
}

// Open listens. A node that has neither servers inside nor its store in files has no Place. Without an API it returns
// nil. connections bounds the connections that all listeners by TCP take together at once.
func Open(o Options, at Place, connections int, log *slog.Logger) (s *Server, err error) {
	if !o.Has(at != nil) && (at == nil || !o.Local) {
		return nil, nil
	}
	dir, socket := "", ""
	if at != nil {
		dir, socket = at.Dir(), at.SocketPath("api")
	}
	s = &Server{options: o, budget: doors.New(connections), local: doors.New(openfiles.Socket), log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := s.readTokens(dir); err != nil {
		return nil, err
	}
	if o.Cert != "" {
		cert := &certificate{cert: o.Cert, key: o.Key, log: log}
		if _, err := cert.get(nil); err != nil {
			return nil, fmt.Errorf("certificate of the API: %w", err)
		}
		warnOfKey(o.Key, log)
		s.secure = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get, NextProtos: []string{"http/1.1"}}
	}
	if o.Address != off {
		if s.url, err = s.listen(o.Address, defaultAddress, ""); err != nil {
			return nil, fmt.Errorf("listen for the API: %w", err)
		}
	}
	if o.Store.Address != "" {
		if s.store, err = s.listen(o.Store.Address, "", stores.Root+o.Store.Name); err != nil {
			return nil, fmt.Errorf("listen for the task store: %w", err)
		}
	}
	if o.Sync != "" {
		if s.sync, err = s.listen(o.Sync, "", syncapi.Root); err != nil {
			return nil, fmt.Errorf("listen for collections: %w", err)
		}
	}
	if socket != "" {
		ul, err := net.Listen("unix", socket)
		if err != nil {
			return nil, fmt.Errorf("listen for the API: %w", err)
		}
		s.listeners, s.socket = append(s.listeners, s.local.Listen(ul)), socket
	}
	return s, nil
}

// warnOfKey says when the private key can be read by everybody, or written by others.
func warnOfKey(path string, log *slog.Logger) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o026 != 0 {
		log.Warn("others may read or write the private key of the API: want mode 0600", "file", path, "mode", info.Mode().Perm().String())
	}
}

// listen adds a listener for what is below a path, all if that is "", and returns its URL.
func (s *Server) listen(address, usual, below string) (url string, err error) {
	l, err := listen(address, usual)
	if err != nil {
		return "", err
	}
	scheme, bounded := "http", s.budget.Listen(l)
	if s.secure != nil {
		scheme, bounded = "https", tls.NewListener(bounded, s.secure)
	}
	if below != "" {
		bounded = api.Below(bounded, below)
	}
	s.listeners = append(s.listeners, bounded)
	if at, ok := l.Addr().(*net.TCPAddr); s.secure == nil && !s.options.Insecure && (!ok || !at.IP.IsLoopback()) { // a name that leads elsewhere
		return "", fmt.Errorf("%s leads to %s, which is no loopback address", address, l.Addr())
	}
	return scheme + "://" + named(l.Addr().String(), s.options.Hosts), nil
}

// named is an address by which a client here reaches a listener, which may be one of all addresses.
func named(address string, hosts []string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() {
		return address
	}
	return net.JoinHostPort(append(hosts[:len(hosts):len(hosts)], "localhost")[0], port)
}

// listen takes the address that was asked for, or else the usual one or a free one.
func listen(address, usual string) (net.Listener, error) {
	if address != "" {
		return net.Listen("tcp", address)
	}
	l, err := net.Listen("tcp", usual)
	if errors.Is(err, syscall.EADDRINUSE) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	return l, err
}

// readTokens reads the file of tokens. The one in the data directory is made where it is not there yet; the user of the
// machine has a token that is drawn at each start.
func (s *Server) readTokens(dir string) error {
	path := s.options.Tokens
	if path == "" {
		path = TokensIn(dir)
		if err := makeTokens(path); err != nil {
			return err
		}
	}
	file, err := token.Open(path, func(err error) { s.log.Error("the tokens of the API cannot be read: those of before hold", "err", err) })
	if err != nil {
		return err
	}
	s.tokens.file = file
	if dir != "" {
		s.tokens.own = "tl_" + rand.Text()
	}
	return nil
}

// makeTokens makes a file of no tokens, if there is none.
func makeTokens(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil // it is there; any other error is told when the file is opened
	}
	unlock, err := token.Lock(path)
	if err != nil {
		return err
	}
	if _, is := os.Stat(path); errors.Is(is, fs.ErrNotExist) { // no other process has made the file meanwhile
		err = token.Write(path, nil)
	}
	return errors.Join(err, unlock())
}

// secrets are the tokens of the file, and the one of the node's own user.
type secrets struct {
	file *token.File
	own  string
}

var local = token.Token{Name: token.Local, Role: token.Admin}

// Find implements api.Tokens.
func (k secrets) Find(secret string) *token.Token {
	if k.own != "" && secret == k.own { // nobody learns a drawn text of 130 bits by how long this takes
		return &local
	}
	return k.file.Find(secret)
}

// Advertised returns the part of cluster.json about the API; a nil Server returns nil.
func (s *Server) Advertised() *advertised.API {
	if s == nil {
		return nil
	}
	at := &advertised.API{URL: s.url, Token: s.tokens.own}
	if s.socket != "" {
		at.Addresses = append(at.Addresses, "unix:"+s.socket)
	}
	if s.url != "" {
		at.Addresses = append(at.Addresses, s.url)
	}
	return at
}

// TLS has the certificate; nil = there is none, or no API.
func (s *Server) TLS() *tls.Config {
	if s == nil {
		return nil
	}
	return s.secure
}

// Views reports whether a request shows a token that may read what is of the whole cluster.
func (s *Server) Views(r *http.Request) bool {
	by := s.tokens.Find(api.Secret(r))
	return by != nil && by.Role.Allows(token.Viewer) && !by.Limited()
}

// Measure has the API measured from now on; of nil nothing is.
func (s *Server) Measure(reg prometheus.Registerer) (err error) {
	if s == nil {
		return nil
	}
	budgets := map[string]*doors.Budget{"tcp": s.budget}
	if s.socket != "" {
		budgets["unix"] = s.local
	}
	s.figures, err = figures.New(reg, budgets)
	return err
}

// URL returns the address of the API; "" = it has a socket alone.
func (s *Server) URL() string { return s.url }

// StoreURL returns the address of the task store that has a listener of its own, "" for none.
func (s *Server) StoreURL() string { return s.store }

// SyncURL returns the address of the listener of collections, "" for none.
func (s *Server) SyncURL() string { return s.sync }

// lookAgain is the time between two looks whether the node is busy.
const lookAgain = 20 * time.Millisecond

// lingers bounds how long the listeners go on after the end has begun, while attempts run.
const lingers = 5 * time.Second

// Serve answers requests until ctx ends, and then for as long as busy says so, up to lingers: whoever probes the node
// learns meanwhile that it is not ready. page serves the metrics route. notReady returns why the node is not
// ready, "" if it is. An error is logged, and the node goes on without the API.
func (s *Server) Serve(ctx context.Context, client *engine.Client, notReady func() string, busy func() bool, page http.Handler) {
	all := operations.Direct{Client: client}
	cfg := api.Config{
		Client:  all,
		Tokens:  s.tokens,
		Hosts:   s.options.Hosts,
		Ready:   lately(notReady),
		Metrics: page,
		Version: version.Version,
		Routes: slices.Concat(
			stores.Routes(all.Stores()),
			schedules.Routes(all.Schedules(), all.Backfills()),
			logs.Routes(all),
			works.Routes(all.Works()),
			syncapi.Routes(all, all.Schedules()),
		),
		ErrorFormats: []api.ErrorFormat{stores.ErrorFormat(), syncapi.ErrorFormat()},
		Log:          s.log,
	}
	if s.figures != nil {
		cfg.Watch = s.figures
	}
	a, err := api.New(cfg)
	if err == nil && s.figures != nil {
		s.figures.Watch(a.State)
	}
	if err == nil {
		serving, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		defer context.AfterFunc(ctx, func() {
			a.Drain()
			for end := time.Now().Add(lingers); busy() && time.Now().Before(end); time.Sleep(lookAgain) {
			}
			stop()
		})()
		err = a.Serve(serving, s.listeners...)
	}
	if err != nil {
		s.log.ErrorContext(ctx, "the API is not served any more", "err", err)
	}
}

// readyFor bounds the age of an answer about readiness. Callers need no token, and asking again within it costs no new
// look.
const readyFor = 100 * time.Millisecond

// lately returns what f said last, for readyFor.
func lately(f func() string) func() string {
	var mu sync.Mutex
	var at time.Time
	var said string
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); at.IsZero() || now.Sub(at) >= readyFor {
			said, at = f(), now
		}
		return said
	}
}

// Close ends a Server that is not served; nil is none.
func (s *Server) Close() (err error) {
	if s == nil {
		return nil
	}
	for _, l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	return err
}

// CheckTokens counts the tokens of a file, or says why it cannot be used.
func CheckTokens(path string) (int, error) {
	all, err := token.Read(path)
	return len(all), err
}

// CheckFiles says why the files that the flags name cannot be used.
func (o *Options) CheckFiles() error {
	if o.Tokens != "" {
		if _, err := CheckTokens(o.Tokens); err != nil {
			return err
		}
	}
	if o.Cert != "" {
		return CheckPair(o.Cert, o.Key)
	}
	return nil
}

// CheckPair says why a certificate and its key cannot be used together.
func CheckPair(cert, key string) error {
	_, err := tls.LoadX509KeyPair(cert, key)
	return err
}

// certificate is read again when its file has changed.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	looked time.Time
	at     time.Time // when the file was changed
	is     *tls.Certificate
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.is != nil && time.Since(c.looked) < time.Second {
		return c.is, nil
	}
	c.looked = time.Now()
	info, err := os.Stat(c.cert)
	if err == nil && c.is != nil && info.ModTime().Equal(c.at) {
		return c.is, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.cert, c.key)
	}
	if err != nil && c.is == nil {
		return nil, err
	}
	if err != nil { // the key may come a moment later
		c.log.Warn("the certificate of the API cannot be read: the one of before holds", "err", err)
		return c.is, nil
	}
	c.is, c.at = &pair, info.ModTime()
	return c.is, nil
}
