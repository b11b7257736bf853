package ui_test

import (
	"strings"
	"testing"
)

func TestNodes_ShowNodesAndShards(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	got := s.want(s.get("viewer", "/ui/nodes"), 200, `data-label="Clock">right`, `id="s-0"`, `id="s-1"`, "served",
		`/export" download>`, "taskledger verify --checkpoint", `href="/ui/checkpoint"`)
	s.wantNot(got, "not served")
	s.want(got, 200, `data-label="Last entry">none yet<`, `data-label="Snapshot">none yet<`, "A dash for the first entry")
}

func TestCheckpoint_IsShownAndDownloaded(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	shown := s.want(s.get("viewer", "/ui/checkpoint"), 200, "taskledger checkpoint", `href="/ui/checkpoint.txt"`)
	got := s.want(s.get("viewer", "/ui/checkpoint.txt"), 200, "taskledger checkpoint\n")
	if is := got.header.Get("Content-Disposition"); !strings.Contains(is, "attachment") {
		t.Error(is)
	}
	hashes := strings.Split(strings.TrimSpace(got.text), "\n")[3:]
	if len(hashes) == 0 || !strings.Contains(shown.text, hashes[0]) {
		t.Errorf("%q is not shown: %s", hashes, clip(shown.text))
	}
}

func TestShards_AreExported(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a", "{}")
	nodes := s.get("viewer", "/ui/nodes").text
	exported := 0
	for _, shard := range []string{"0", "1"} {
		at := "/ui/shards/" + shard + "/export"
		if !strings.Contains(nodes, `href="`+at+`"`) { // nothing is in it
			s.want(s.get("viewer", at), 404, "no entry")
			continue
		}
		exported++
		got := s.want(s.get("viewer", at), 200, "{")
		if is := got.header.Get("Content-Disposition"); is != `attachment; filename="shard-`+shard+`.export"` {
			t.Error(is)
		}
		if n := strings.Count(got.text, "\n"); n < 2 || !strings.HasSuffix(got.text, "}\n") {
			t.Errorf("%d lines: %q", n, got.text)
		}
	}
	if exported == 0 {
		t.Errorf("no shard is exported: %s", clip(nodes))
	}
	for _, shard := range []string{"99", "x", "-1", `"`} {
		got := s.get("viewer", "/ui/shards/"+strings.ReplaceAll(shard, `"`, "%22")+"/export")
		if got.status < 400 || got.status >= 500 || got.header.Get("Content-Disposition") != "" {
			t.Errorf("shard %s: %d %v %s", shard, got.status, got.header, clip(got.text))
		}
	}
}
