package httpd

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"taskledger/api"
	"taskledger/cmd/node/internal/flags"
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
	Origins   []string // of proxies that end TLS
	Insecure  bool
	Store     struct{ Address, Name string } // of the task store that has a listener of its own; no address = none
	Sync      string                         // the address of the listener of collections; "" = none

	// Local has the socket of a Place served also where the API is off: there is no other way into the node.
	Local bool
}

// Flags adds them.
func (o *Options) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.Address, "api", "",
		"`address`"+` and port of the HTTP API, or off; beyond loopback it needs --api-cert (default: `+defaultAddress+`,
or another free port, for a node with servers inside, else off)`)
	f.StringVar(&o.Tokens, "api-tokens", "", "`file` of the tokens of the API, the same on every node (default: tokens.json in --data, for a node with servers inside;\n"+
		"with --join or --etcd it must be given)")
	f.StringVar(&o.Cert, "api-cert", "", "PEM `file` of the certificate of the API; a changed one is taken within a second")
	f.StringVar(&o.Key, "api-key", "", "PEM `file` of the key of --api-cert")
	flags.ListVar(f, &o.Hosts, "api-host", "`names` under which the API and the pages of --metrics may be asked, beside localhost and addresses")
	flags.ListVar(f, &o.Origins, "api-origin", "`origins` under which a proxy that ends TLS shows the API and its pages, such as https://tasks.example")
	f.StringVar(&o.Store.Address, "store-listen", "", "`address` and port at whose root the task store of --store-name is, as the API has it below /store/NAME; by the\nrules of --api (default: none)")
	f.StringVar(&o.Store.Name, "store-name", defaultStore, "`name` of that task store")
	f.StringVar(&o.Sync, "sync-listen", "", "`address` and port at whose root collections are, as the API has them below /sync; by the rules of --api (default: none)")
	f.BoolVar(&o.Insecure, "api-insecure", false, "let the API listen beyond loopback without a certificate: whoever can read the network reads its tokens")
}

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
		return "--api needs --api-tokens: the file lies on every node; token new NAME --role ROLE --api-tokens FILE makes one"
	}
	if (o.Cert == "") != (o.Key == "") {
		return "--api-cert and --api-key: want both or neither"
	}
	for _, origin := range o.Origins {
		if _, err := api.NameOfOrigin(origin); err != nil {
			return "--api-origin: " + err.Error()
		}
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
