// Package tokencli is the command token: who may ask the HTTP API.
package tokencli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"taskledger/api/token"
	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/flags"
	"taskledger/cmd/node/internal/httpd"
	"taskledger/cmd/node/internal/output"
	"taskledger/events"
)

// Terminal connects the command to the command line.
type Terminal struct {
	Out  io.Writer
	JSON func() bool
	Dir  func() string // of the node's data

	Behaviors cobra.CompletionFunc // completes the names of behaviors

	file string
}

// Command returns the command, with its subcommands.
func (t *Terminal) Command(data func(*cobra.Command)) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Say who may ask the HTTP API",
		Long: `Token changes the file of tokens, which a running node reads again within a second. The file holds digests alone: a token is
printed once, when it is made. Where several nodes serve the API, the file lies on each of them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, sub := range []*cobra.Command{t.newCommand(), t.listCommand(), t.revokeCommand()} {
		sub.Flags().StringVar(&t.file, "api-tokens", "", "`file` of tokens, as serve has it (default: tokens.json in --data)")
		data(sub)
		c.AddCommand(sub)
	}
	return c
}

func (t *Terminal) path() string { return cmp.Or(t.file, httpd.TokensIn(t.Dir())) }

// read returns the tokens of the file; one that is not there has none, if it may be made.
func (t *Terminal) read(mayBeMade bool) ([]token.Token, error) {
	tokens, err := token.Read(t.path())
	switch {
	case mayBeMade && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &exitcode.UsageError{Problem: err.Error()}
	}
	return tokens, nil
}

// change replaces the tokens of the file by what is made of them.
func (t *Terminal) change(mayBeMade bool, to func([]token.Token) ([]token.Token, error)) error {
	unlock, err := token.Lock(t.path())
	if errors.Is(err, fs.ErrNotExist) {
		const say = "%s: there is no such directory: a node with servers inside makes it when it is served; " +
			"for other nodes name the file by --api-tokens"
		return &exitcode.UsageError{Problem: fmt.Sprintf(say, filepath.Dir(t.path()))}
	}
	if err != nil {
		return err
	}
	tokens, err := t.read(mayBeMade)
	if err == nil {
		tokens, err = to(tokens)
	}
	if err == nil {
		err = token.Write(t.path(), tokens)
	}
	return errors.Join(err, unlock())
}

func (t *Terminal) newCommand() *cobra.Command {
	var role, prefix string
	var behaviors []string
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token, and print it this once",
		Long: `New makes a token for NAME, which stands as the principal in the events of what it asks for. A name may
have several tokens: make the new one, give it out, and revoke the old one. Roles, each with what the ones before it
may: viewer reads, submitter submits, operator changes tasks and pauses behaviors, admin may do all.`,
		Args: flags.Arguments,
		RunE: func(_ *cobra.Command, args []string) error {
			var r token.Role
			if err := r.UnmarshalText([]byte(role)); err != nil {
				return &exitcode.UsageError{Problem: "--" + err.Error()}
			}
			secret, made, err := token.New(args[0], r, prefix, behaviors, time.Now())
			if err != nil {
				problem := err.Error()
				if strings.HasPrefix(problem, "prefix ") {
					problem = "--affinity-" + problem
				}
				return &exitcode.UsageError{Problem: problem}
			}
			if err := t.change(true, func(tokens []token.Token) ([]token.Token, error) { return append(tokens, made), nil }); err != nil {
				return err
			}
			if t.JSON() {
				err = output.New(t.Out, true).Row(struct {
					ID    string `json:"id"`
					Token string `json:"token"`
				}{made.ID, secret})
			} else {
				_, err = fmt.Fprintln(t.Out, secret)
			}
			return exitcode.Unprinted("made: token "+made.ID+", which nobody has seen and token revoke takes away", err)
		},
	}
	c.Flags().StringVar(&role, "role", "", "role of the token: viewer, submitter, operator or admin; required")
	roles := cobra.FixedCompletions([]string{"viewer", "submitter", "operator", "admin"}, cobra.ShellCompDirectiveNoFileComp)
	if err := c.RegisterFlagCompletionFunc("role", roles); err != nil {
		panic(err) // the flag is there
	}
	c.Flags().StringVar(&prefix, "affinity-prefix", "", "only for tasks whose affinity begins with it (default: all)")
	flags.ListVar(c.Flags(), &behaviors, "behavior", "only for tasks of the behaviors of these `names` (default: all)")
	if err := c.RegisterFlagCompletionFunc("behavior", t.Behaviors); err != nil {
		panic(err) // the flag is there
	}
	return c
}

func (t *Terminal) listCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens by id, name and role, without their secrets",
		Args:  flags.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			tokens, err := t.read(false)
			if err != nil {
				return err
			}
			p := output.New(t.Out, t.JSON(), "ID", "NAME", "ROLE", "PREFIX", "BEHAVIORS", "CREATED")
			for _, k := range tokens {
				behaviors, created := cmp.Or(strings.Join(k.Behaviors, ","), "-"), output.Time(events.MillisOf(k.Created))
				err = errors.Join(err, p.Row(k, k.ID, k.Name, k.Role, cmp.Or(k.Prefix, "-"), behaviors, created))
			}
			return errors.Join(err, p.Flush())
		},
	}
}

func (t *Terminal) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Take a token back, by the id that list shows",
		ValidArgsFunction: func(*cobra.Command, []string, string) (ids []string, _ cobra.ShellCompDirective) {
			tokens, _ := t.read(true) // whoever completes has nowhere to tell an error
			for _, k := range tokens {
				ids = append(ids, k.ID)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		Args: flags.Arguments,
		RunE: func(_ *cobra.Command, args []string) error {
			return t.change(false, func(tokens []token.Token) ([]token.Token, error) {
				left := slices.DeleteFunc(slices.Clone(tokens), func(k token.Token) bool { return k.ID == args[0] })
				if len(left) == len(tokens) {
					return nil, &exitcode.UsageError{Problem: fmt.Sprintf("%s holds no token with the ID %s: list shows the IDs", t.path(), args[0])}
				}
				return left, nil
			})
		},
	}
}
