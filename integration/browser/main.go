// Command browser opens the dashboard in Debian's Chromium, as people do: with nodes that run, and data that is empty,
// usual and hostile. It fails on pages that do not load, on errors of scripts, on requests to anywhere else, on what
// axe-core finds, on what the keyboard does not reach, and on what is cut off or lies over something else. The browser
// is driven by a module of its own, driver/go.mod, of which the project links nothing. Run it from the root of the
// project, as root:
//
//	go run ./integration/browser               every check
//	go run ./integration/browser sheets DIR    pictures of every page, to be looked at
//
// With -only TEXT,... it does so for the checks, or the pages, alone whose name has one of the texts. It needs npm, by
// which it fetches axe-core.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"taskledger/api/token"
	"taskledger/api/ui"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	pages, err := pages()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, build := range [][]string{
		{"build", "-o", filepath.Join(dir, "taskledger"), "./cmd/node"},
		{"build", "-C", "integration/browser/driver", "-o", filepath.Join(dir, "driver"), "."},
	} {
		if err := say(exec.CommandContext(ctx, "go", build...)); err != nil {
			return fmt.Errorf("go %s: %w", strings.Join(build, " "), err)
		}
	}
	driver := exec.CommandContext(ctx, filepath.Join(dir, "driver"), args...)
	driver.Env = append(os.Environ(), "DRIVER_DIR="+dir, "DRIVER_PAGES="+strings.Join(pages, " "))
	driver.Cancel = func() error { return driver.Process.Signal(syscall.SIGTERM) } // it ends nodes and browser
	driver.WaitDelay = time.Minute
	began := time.Now()
	err = say(driver)
	if of := driver.ProcessState; of != nil {
		fmt.Printf("it took %.0f s, and %.0f s of processors\n", time.Since(began).Seconds(), (of.UserTime() + of.SystemTime()).Seconds())
	}
	return err
}

func say(c *exec.Cmd) error {
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}

// nobody is a file of no tokens.
type nobody struct{}

func (nobody) Find(string) *token.Token { return nil }

// pages returns the patterns of what the dashboard shows when it is asked.
func pages() (patterns []string, err error) {
	u, err := ui.New(ui.Config{Tokens: nobody{}})
	if err != nil {
		return nil, err
	}
	for _, r := range u.Routes() {
		if r.Method == http.MethodGet {
			patterns = append(patterns, r.Pattern)
		}
	}
	return patterns, nil
}
