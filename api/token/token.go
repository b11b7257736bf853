// Package token says which callers may ask the HTTP API, and for what: a file of tokens, each known by its digest
// alone.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"taskledger/events"
)

// Role bounds the actions of a token. Each role allows what the ones before it allow.
type Role uint8

// The roles. Worker is reserved, and may do nothing yet.
const (
	Nobody Role = iota
	Viewer      // reads
	Submitter
	Operator // changes tasks and behaviors
	Admin    // the user of a node; no route asks for more than an operator may
	Worker
)

var roles = []string{"nobody", "viewer", "submitter", "operator", "admin", "worker"}

// grantable lists the roles that a token may have.
var grantable = []Role{Viewer, Submitter, Operator, Admin}

// String returns the name of the role.
func (r Role) String() string {
	if int(r) < len(roles) {
		return roles[r]
	}
	return fmt.Sprintf("role %d", r)
}

// Allows reports whether the role may do what another one may.
func (r Role) Allows(needed Role) bool {
	if r == Worker || needed == Worker {
		return r == needed
	}
	return r >= needed
}

// MarshalText returns the name of the role.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes the name of a role that a token may have.
func (r *Role) UnmarshalText(text []byte) error {
	for _, is := range grantable {
		if string(text) == is.String() {
			*r = is
			return nil
		}
	}
	return fmt.Errorf("role %.32q: want viewer, submitter, operator or admin", text)
}

// Local is the name of the token that the user of a node has by its data directory.
const Local = "local"

// Limits of a token.
const (
	maxName      = 64  // characters
	maxPrefix    = 64  // characters
	maxBehaviors = 100 // most behaviors that a token may name
)

// Token describes a token without its secret. Several may have one name: an old one and the one that takes its place.
type Token struct {
	ID     string `json:"id"`   // by which it is revoked: the first characters of its digest
	Name   string `json:"name"` // of its user: the principal in events. 1 to 64 of A-Z a-z 0-9 . _ @ -
	Role   Role   `json:"role"`
	SHA256 string `json:"sha256"` // digest of the secret, in hexadecimal digits
	// Prefix limits it to tasks whose affinity begins so; "" = no limit. One of "a" includes the affinity "ab": end it
	// with a character that parts names, as in "a:".
	Prefix string `json:"prefix,omitempty"`
	// Behaviors limit it to their tasks; none = all.
	Behaviors []string  `json:"behaviors,omitempty"`
	Created   time.Time `json:"created"`
}

// secretPrefix lets those who look for secrets in source find ours.
const secretPrefix = "tl_"

// secretBytes are drawn for each secret: nobody finds one by its digest.
const secretBytes = 20

const idDigits = 12

var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// New draws the secret of a token. Nothing else knows it.
func New(name string, role Role, prefix string, behaviors []string, now time.Time) (secret string, t Token, err error) {
	if strings.Contains(name, "@") {
		const says = "user@host is the principal of the command line, want a name without @"
		return "", t, fmt.Errorf("name %.80q: %s", name, says)
	}
	drawn := make([]byte, secretBytes)
	_, _ = rand.Read(drawn) // it never fails
	secret = secretPrefix + encoding.EncodeToString(drawn)
	sum := sha256.Sum256([]byte(secret))
	digest := hex.EncodeToString(sum[:])
	t = Token{
		ID:        digest[:idDigits],
		Name:      name,
		Role:      role,
		SHA256:    digest,
		Prefix:    prefix,
		Behaviors: behaviors,
		Created:   now.UTC().Truncate(time.Second),
	}
	return secret, t, t.check()
}

// check returns the field that is wrong, if one is.
func (t *Token) check() error {
	if problem := nameProblem(t.Name); problem != "" {
		return fmt.Errorf("name %.80q: %s", t.Name, problem)
	}
	if !slices.Contains(grantable, t.Role) {
		return fmt.Errorf("role: want viewer, submitter, operator or admin")
	}
	sum, err := hex.DecodeString(t.SHA256)
	if err != nil || len(sum) != sha256.Size || t.SHA256 != strings.ToLower(t.SHA256) {
		return fmt.Errorf("sha256: want 64 hexadecimal digits in lower case")
	}
	if t.ID != t.SHA256[:idDigits] {
		return fmt.Errorf("id %.20q: want the first %d digits of sha256", t.ID, idDigits)
	}
	if t.Prefix != "" {
		err := events.TaskID(t.Prefix).Validate()
		if err != nil || len(t.Prefix) > maxPrefix || strings.Contains(t.Prefix, "/") {
			return fmt.Errorf("prefix %.80q: want 1 to %d characters of A-Z a-z 0-9 . _ : -", t.Prefix, maxPrefix)
		}
	}
	if len(t.Behaviors) > maxBehaviors {
		return fmt.Errorf("behaviors: %d exceed the limit of %d", len(t.Behaviors), maxBehaviors)
	}
	for _, b := range t.Behaviors {
		if err := events.ValidateBehavior(b); err != nil {
			return fmt.Errorf("behaviors: %w", err)
		}
	}
	return nil
}

func nameProblem(name string) string {
	if name == Local {
		return "it is that of the user of a node"
	}
	if name == "" || len(name) > maxName {
		return fmt.Sprintf("want 1 to %d characters", maxName)
	}
	for _, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("._@-", rune(c)) {
			return "want letters, digits and . _ @ - alone"
		}
	}
	return ""
}

// MayTask reports whether the prefix of the token allows a task. A prefix that is the affinity of a task store, as in
// "store:a", is for that store alone; one that ends with a character that parts names, as in "store:team.", is for all
// of that beginning.
func (t *Token) MayTask(id events.TaskID) bool {
	rest, begins := strings.CutPrefix(string(id), t.Prefix)
	if !begins || !strings.HasPrefix(t.Prefix, storePrefix) {
		return begins
	}
	return rest == "" || rest[0] == '/' || strings.ContainsRune("._:-", rune(t.Prefix[len(t.Prefix)-1]))
}

// storePrefix begins the affinities of task stores.
const storePrefix = "store:"

// MayStore reports whether the token allows a task store. Items have no behavior.
func (t *Token) MayStore(name string) bool {
	return len(t.Behaviors) == 0 && t.MayTask(events.TaskID(storePrefix+name+"/1"))
}

// programs are the behaviors whose tasks run programs as the user of a node, or write its files.
var programs = []string{"collection", "exec"}

// MaySubmit reports whether the token allows to submit tasks of a behavior. Those that run programs need an operator,
// or a token that names the behavior.
func (t *Token) MaySubmit(behavior string) bool {
	return t.MayBehavior(behavior) &&
		(!slices.Contains(programs, behavior) || len(t.Behaviors) > 0 || t.Role.Allows(Operator))
}

// MayBehavior reports whether the token's behaviors include one.
func (t *Token) MayBehavior(behavior string) bool {
	return len(t.Behaviors) == 0 || slices.Contains(t.Behaviors, behavior)
}

// Limited reports whether the token is for some tasks alone, by a prefix or by behaviors.
func (t *Token) Limited() bool { return t.Prefix != "" || len(t.Behaviors) > 0 }

// Same reports whether both tokens have the same name and the same rights, or both are nil.
func (t *Token) Same(other *Token) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.Name == other.Name && t.Role == other.Role && t.Prefix == other.Prefix &&
		slices.Equal(t.Behaviors, other.Behaviors)
}
