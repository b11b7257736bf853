package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const backupDocument = "docs/backup.md"

// backups runs the scripts of the document about backups, on three members of etcd, three servers of NATS and three
// nodes, with TLS, client certificates and users: a backup, a restore to the past, and the way from the servers inside
// a node to own ones. It looks what the cluster knows after each. It builds the servers and tools that
// tools/operator/go.mod pins.
func backups(args []string) (err error) {
	if len(args) != 1 {
		return errors.New("want a new directory")
	}
	dir, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	text, err := os.ReadFile(backupDocument)
	if err != nil {
		return err
	}
	scripts, err := scriptsOf(string(text))
	if err != nil {
		return err
	}
	w := &world{dir: dir, scripts: scripts}
	defer func() { err = errors.Join(err, w.stopAll()) }()
	if err := w.prepare(); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"backup and restore", w.restoring},
		{"from the servers inside a node to own ones", w.moving},
	} {
		began := time.Now()
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Printf("%s: as %s says, in %s\n", part.name, backupDocument, time.Since(began).Round(time.Second))
	}
	return w.allRan()
}

// scriptsOf returns the scripts of the document by name: the second word behind the fence.
func scriptsOf(text string) (map[string]string, error) {
	scripts := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```sh ([a-z-]+)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if scripts[block[1]] != "" {
			return nil, fmt.Errorf("%s has two scripts with the name %s", backupDocument, block[1])
		}
		scripts[block[1]] = block[2]
	}
	if n := strings.Count(text, "```"); n != 2*len(scripts) {
		const say = "%s has %d fences and %d scripts: each has a name behind its fence"
		return nil, fmt.Errorf(say, backupDocument, n, len(scripts))
	}
	return scripts, nil
}

// restoring backs a cluster up, goes on, and restores what was then.
func (w *world) restoring() error {
	w.env["BACKUP"], w.env["TOKEN"] = filepath.Join(w.dir, "backup"), "restored"
	return steps(
		func() error { return w.start(slices.Concat(w.etcd, w.nats)...) },
		func() error { return w.script("users") },
		func() error { return w.start(w.nodes...) },
		w.ready,
		w.backUpTheYoung,
		func() error { return w.load("before") },
		func() error { return w.script("backup") },
		func() error { return w.load("after") }, // the archive moves on, too
		func() error { return w.wantLoads("before", "after") },
		func() error { return w.stop(w.nodes...) },
		func() error { return w.stop(w.etcd...) },
		func() error { return w.eachMember("restore-member") },
		func() error { return w.start(w.etcd...) },
		func() error { return w.script("restore") },
		func() error { return w.start(w.nodes...) },
		w.ready,
		func() error { return w.script("restored") },
		func() error { return w.wantLoads("before") },
		// The archive goes on, and so does trimming, where the journal went on otherwise before.
		func() error { return w.load("anew") },
		func() error { return w.wantLoads("before", "anew") },
		func() error { return w.script("restored") },
		w.stopAll,
	)
}

// backUpTheYoung backs up a cluster that has archived nothing, again after a run that has failed.
func (w *world) backUpTheYoung() error {
	backup := w.env["BACKUP"]
	defer func() { w.env["BACKUP"] = backup }()
	w.env["BACKUP"] = filepath.Join(w.dir, "young")
	if err := os.Mkdir(w.env["BACKUP"]+".part", 0o700); err != nil {
		return err
	}
	if err := w.script("backup"); err != nil {
		return err
	}
	_, err := os.Stat(filepath.Join(w.env["BACKUP"], "no-archive"))
	return err
}

// moving runs a node with the servers inside, and goes on with its cluster on new servers.
func (w *world) moving() error {
	w.env["BACKUP"], w.env["TOKEN"] = filepath.Join(w.dir, "moved"), "moved"
	for _, s := range slices.Concat(w.etcd, w.nats, w.nodes) {
		if err := os.RemoveAll(s.data); err != nil {
			return err
		}
	}
	alone := w.alone()
	defer w.stop(alone)
	return steps(
		func() error { return w.start(alone) },
		func() error { return w.inside(w.ready1) },
		func() error { return w.inside(func() error { return w.load("inside") }) },
		func() error { return w.stop(alone) },
		func() error { return w.script("move") },
		func() error { return w.eachMember("move-member") },
		func() error { return w.start(slices.Concat(w.etcd, w.nats)...) },
		func() error { return w.script("users") },
		func() error { return w.script("move-archive") },
		func() error { return w.start(w.nodes...) },
		w.ready,
		func() error { return w.wantLoads("inside") },
		func() error { return w.load("own") },
		func() error { return w.wantLoads("inside", "own") },
		func() error { _, err := w.taskledger("verify", "--with-archive"); return err },
		w.stopAll,
	)
}

// steps runs one after the other, up to the first that fails.
func steps(all ...func() error) error {
	for i, step := range all {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// script runs one of the document.
func (w *world) script(name string) error {
	text, known := w.scripts[name]
	if !known {
		return fmt.Errorf("%s has no script with the name %s", backupDocument, name)
	}
	w.ran = append(w.ran, name)
	fmt.Printf("--- %s\n", name)
	c := exec.Command("timeout", "300", "bash", "-c", text)
	c.Dir, c.Env, c.Stdout, c.Stderr = w.dir, w.environ(), os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("script %s: %w", name, err)
	}
	return nil
}

// eachMember runs a script as on the host of each member of etcd, whose data are moved away before.
func (w *world) eachMember(name string) error {
	for i, m := range w.etcd {
		if _, err := os.Stat(m.data); err == nil {
			if err := os.Rename(m.data, m.data+".old"); err != nil {
				return err
			}
		}
		w.env["NAME"], w.env["PEER"], w.env["DATA"] = m.name, w.peers[i], m.data
		if err := w.script(name); err != nil {
			return fmt.Errorf("member %s: %w", m.name, err)
		}
	}
	return nil
}

// allRan returns an error that names scripts which did not run, and variables that the document names and the scripts
// were not given, or the other way round.
func (w *world) allRan() error {
	var errs []error
	for name := range w.scripts {
		if name != "environment" && !slices.Contains(w.ran, name) {
			errs = append(errs, fmt.Errorf("nobody runs the script %s", name))
		}
	}
	named := map[string]bool{}
	for _, is := range regexp.MustCompile(`\b([A-Z_]+)=`).FindAllStringSubmatch(w.scripts["environment"], -1) {
		named[is[1]] = true
		if w.env[is[1]] == "" {
			errs = append(errs, fmt.Errorf("the script environment sets %s, which the others were not given", is[1]))
		}
	}
	for name := range w.env {
		if !named[name] {
			errs = append(errs, fmt.Errorf("the scripts were given %s, which the script environment does not set", name))
		}
	}
	return errors.Join(errs...)
}
