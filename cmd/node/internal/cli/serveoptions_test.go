package cli

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/collections"
	"taskledger/task"
)

// checked returns what is wrong with the arguments of serve.
func checked(t *testing.T, args ...string) error {
	t.Helper()
	a := &app{}
	flags := a.serve.flags()
	flags.AddFlagSet(a.access.flags())
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := a.access.check(); err != nil {
		return err
	}
	return a.serve.check(&a.access)
}

// wantUsage wants an error of usage that holds all words.
func wantUsage(t *testing.T, err error, words ...string) {
	t.Helper()
	if exitcode.Of(err) != exitcode.Usage {
		t.Errorf("%q: %v", words, err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in %v", word, err)
		}
	}
}

// A node that has no servers inside would leave the port out without a word.
func TestServe_RefusesPortsOfServersThatItDoesNotHave(t *testing.T) {
	t.Parallel()
	for _, port := range []string{"--etcd-port", "--nats-port"} {
		for _, elsewhere := range [][]string{{"--join", "d"}, {"--etcd", "unix:d/socket/etcd"}} {
			wantUsage(t, checked(t, append([]string{port, "4222"}, elsewhere...)...), port, elsewhere[0])
		}
	}
}

func TestServe_NamesTheSamePortEachTime(t *testing.T) {
	t.Parallel()
	for range 50 {
		wantUsage(t, checked(t, "--nats-port", "4222", "--etcd-port", "2379", "--join", "d"), "--etcd-port")
	}
}

func TestServe_RefusesWhatIsNoPort(t *testing.T) {
	t.Parallel()
	for _, port := range []string{"--etcd-port", "--nats-port"} {
		for _, number := range []string{"-1", "65536", "70000"} {
			wantUsage(t, checked(t, port, number), port+" "+number, "0 to 65535")
		}
		if err := checked(t, port, "65535"); err != nil {
			t.Error(err)
		}
	}
}

// Whoever says how to get into a cluster and forgets which one would be given another one.
func TestServe_RefusesWhatItWouldLeaveOut(t *testing.T) {
	t.Parallel()
	etcd := []string{"--etcd", "127.0.0.1:1"}
	for _, flag := range []string{"ca", "cert", "key", "user", "password-file"} {
		wantUsage(t, checked(t, "--etcd-"+flag, "x"), "--etcd-"+flag+" ", "needs --etcd")
		wantUsage(t, checked(t, "--join", "d", "--etcd-"+flag, "x"), "--etcd-"+flag+" ", "needs --etcd")
	}
	for _, flag := range []string{"ca", "cert", "key", "creds", "nkey", "user", "password-file"} {
		wantUsage(t, checked(t, "--join", "d", "--nats-"+flag, "x"), "--nats-"+flag+" ", "needs --nats")
		wantUsage(t, checked(t, append(etcd, "--nats-"+flag, "x")...), "--nats-"+flag+" ", "needs --nats")
		if err := checked(t, append(etcd, "--nats", "nats://127.0.0.1:1", "--nats-"+flag, "x")...); err != nil {
			t.Error(err)
		}
	}
	wantUsage(t, checked(t, "--nats", "nats://127.0.0.1:1"), "--nats needs --etcd")
	wantUsage(t, checked(t, "--join", "d", "--data", "x"), "--data", "--join")
	wantUsage(t, checked(t, append(etcd, "--join", "d")...), "--etcd", "--join")
}

// What a flag alone can tell is refused before a cluster is opened, which that may create.
func TestServe_RefusesWhatTheEngineWouldBeforeItOpensACluster(t *testing.T) {
	t.Parallel()
	for _, where := range [][]string{nil, {"--etcd", "127.0.0.1:1"}, {"--join", "d"}} {
		for _, ttl := range []string{"0s", "-1s", "2999ms", "61s"} {
			wantUsage(t, checked(t, append(where, "--ttl", ttl)...), "--ttl: ", "want 3s to 1m0s")
		}
		wantUsage(t, checked(t, append(where, "--slots", "65537")...), "--slots: 65537")
		wantUsage(t, checked(t, append(where, "--concurrency", "nop=3")...), "--concurrency: nop=3", "http, noop, sleep")
		wantUsage(t, checked(t, append(where, "--concurrency", "noop=-1")...), "--concurrency: noop=-1", "want 0 or more")
		wantUsage(t, checked(t, append(where, "--concurrency", "exec=1")...), "--concurrency: exec=1")
		wantUsage(t, checked(t, append(where, "--concurrency", "collection=3")...), "--concurrency collection=3", "--sync-workers 3")
		for _, number := range []string{"-1", "65537"} {
			wantUsage(t, checked(t, append(where, "--sync-workers", number)...), "--sync-workers "+number, "want 0 to 65536")
		}
		wantUsage(t, checked(t, append(where, "--sync-workers", "0", "--sync-root", ".")...), "--sync-root", "--sync-workers 0")
		wantUsage(t, checked(t, append(where, "--sync-root", "no-such-directory")...), "--sync-root: ", "no-such-directory")
		wantUsage(t, checked(t, append(where, "--sync-root", "serve.go")...), "--sync-root serve.go: want a directory")
		for _, good := range [][]string{{"--ttl", "3s"}, {"--ttl", "1m"}, {"--concurrency", "noop=0"}, {"--sync-workers", "0"}, {"--sync-root", "."}, {"--concurrency", "exec=1", "--exec-allow", "date"}} {
			if err := checked(t, append(where, good...)...); err != nil {
				t.Errorf("%q: %v", good, err)
			}
		}
	}
}

// A second node would refuse what the first allows, for good.
func TestServe_SuggestsFlagsThatAllNodesShouldHave(t *testing.T) {
	t.Parallel()
	var o serveOptions
	flags := o.flags()
	args := []string{"--exec-allow=date", `--exec-allow=say=/bin/echo {}`, "--http-allow-private", "--checksum-root=.", "--sync-root=..", "--sync-workers=3", "--slots=3", "--logs=none", "--sync=sync.yaml"}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	want := []string{"--exec-allow=date,say=/bin/echo {}", "--http-allow-private=true", "--checksum-root=.", "--sync=sync.yaml", "--sync-root=..", "--sync-workers=3", "--logs=none"}
	if got := o.builtins.given(flags); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestServe_RunsOfCollectionsHaveALimitOfTheirOwn(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{"": 16, "--sync-workers=3": 3, "--sync-workers=0": -1} {
		var o serveOptions
		if err := o.flags().Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		cfg, err := o.node(nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		limit, has := cfg.Limits[collections.Behavior]
		runs := slices.ContainsFunc(cfg.Behaviors, func(b task.Behavior) bool { return b.ID() == collections.Behavior })
		if !has {
			limit = -1
		}
		if limit != want || runs != (want >= 0) {
			t.Errorf("%q: limit %d, want %d; has the behavior: %t", args, limit, want, runs)
		}
	}
}

func TestServe_InFilesRefusesWhatIsOfServers(t *testing.T) {
	t.Parallel()
	for flags, word := range map[string]string{
		"--etcd 127.0.0.1:2379":                              "--etcd",
		"--etcd 127.0.0.1:2379 --nats nats://127.0.0.1:4222": "--nats",
		"--join d":                                            "--join",
		"--cluster other":                                     "--cluster",
		"--new-cluster":                                       "--new-cluster",
		"--etcd-port 2379":                                    "--etcd-port",
		"--nats-port 4222":                                    "--nats-port",
		"--archive jetstream":                                 "--archive jetstream",
		"--archive-replicas 3":                                "--archive-replicas",
		"--logs jetstream":                                    "--logs jetstream",
		"--durability relaxed":                                "--durability relaxed",
		"--durability strict --loss-bound 1s":                 "--loss-bound",
		"--durability opportunistic --loss-bound 1ms":         "--loss-bound",
		"--durability opportunistic --loss-bound -1s":         "--loss-bound",
		"--log-replicas 3 --durability opportunistic":         "--log-replicas",
		"--archive never":                                     "--archive never",
		"--shards 3 --archive files":                          "--shards",
		"--api-tokens f --api off --durability opportunistic": "--api-tokens",
	} {
		wantUsage(t, checked(t, append([]string{"--store", "files"}, strings.Fields(flags)...)...), word)
	}
}

func TestServe_InFilesTakesWhatIsOfFiles(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{
		"",
		"--durability strict",
		"--durability opportunistic --loss-bound 100ms",
		"--loss-bound 2s",
		"--archive files --logs files --log-bytes 1048576 --log-age 1h",
		"--archive keep --logs none",
		"--archive drop --shards 4 --api off",
		"--expect-cluster abc --data d",
	} {
		if err := checked(t, append([]string{"--store", "files"}, strings.Fields(flags)...)...); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
	}
}

func TestServe_InEtcdRefusesWhatIsOfFiles(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"--durability strict", "--loss-bound 2s", "--archive files", "--logs files", "--store disk"} {
		wantUsage(t, checked(t, strings.Fields(flags)...), strings.Fields(flags)[0], "--store")
		wantUsage(t, checked(t, append(strings.Fields(flags), "--join", "d")...), strings.Fields(flags)[0])
	}
}
