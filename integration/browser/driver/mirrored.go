package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// mirrored starts a mirror that follows, which is a work and a stream, and a node of its cluster that shows both.
func (s *stage) mirrored(ctx context.Context) (*scene, samples, error) {
	dir := filepath.Join(s.dir, "mirrored")
	for i := range 60 {
		of := filepath.Join(dir, "from", fmt.Sprintf("album-%d", i%4))
		if err := os.MkdirAll(of, 0o700); err != nil {
			return nil, nil, err
		}
		if err := os.WriteFile(filepath.Join(of, fmt.Sprintf("picture-%02d", i)), []byte(strings.Repeat("x", 100*i)), 0o600); err != nil {
			return nil, nil, err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "to"), 0o700); err != nil {
		return nil, nil, err
	}
	m := &node{binary: filepath.Join(s.dir, "taskledger"), dir: dir}
	if err := m.start("mirror", "--follow", "--data", "m", "--max-deletes", "1000", "from", "to"); err != nil {
		return nil, nil, err
	}
	s.atEnd(m.kill)
	if err := soon(func() error { // its cluster is there once a file has come
		found, err := filepath.Glob(filepath.Join(dir, "to", "*", "picture-*"))
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("nothing was mirrored: %s", m.said.String())
		}
		return err
	}); err != nil {
		return nil, nil, err
	}
	secret, err := m.run(ctx, "token", "new", "viewer", "--role", "operator", "--api-tokens", "tokens.json")
	if err != nil {
		return nil, nil, err
	}
	n := &node{binary: m.binary, dir: dir, Token: secret}
	if err := n.start("serve", "--join", "m", "--name", "shows", "--slots", "0", "--api", "127.0.0.1:0", "--api-tokens", "tokens.json"); err != nil {
		return nil, nil, err
	}
	s.atEnd(n.kill)
	var list struct{ Tasks []struct{ ID string } }
	if err := soon(func() error {
		_, after, _ := strings.Cut(n.said.String(), "api  ")
		n.URL = strings.TrimSpace(strings.SplitN(after, "\n", 2)[0])
		if err := n.ask(ctx, http.MethodGet, "/v1/tasks", nil, &list); err != nil {
			return fmt.Errorf("%w: %s", err, n.said.String())
		}
		for _, t := range list.Tasks {
			if strings.HasSuffix(t.ID, "-follow") {
				return nil
			}
		}
		return fmt.Errorf("no task of %d follows the mirror", len(list.Tasks))
	}); err != nil {
		return nil, nil, err
	}
	sc := &scene{name: "mirrored", node: n}
	for _, path := range []string{"/ui/", "/ui/nodes", "/ui/tasks", "/ui/behaviors", "/ui/work"} {
		sc.pages = append(sc.pages, shown{name: nameOf(path), path: path})
	}
	for _, t := range list.Tasks {
		if n.ask(ctx, http.MethodGet, "/v1/tasks/"+pathOf(t.ID)+"/work", nil, nil) == nil { // its workers have none
			sc.works = append(sc.works, t.ID)
		}
	}
	for i, id := range sc.works {
		sc.pages = append(sc.pages,
			shown{name: fmt.Sprintf("work-id-%d", i+1), path: "/ui/work/" + pathOf(id)},
			shown{name: fmt.Sprintf("work-task-%d", i+1), path: "/ui/tasks/" + pathOf(id)})
	}
	return sc, samples{"/ui/work/{id}": sc.works}, nil
}
