package cli

import (
	"bytes"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/exitcode"
)

func TestHelp_ShowsTheFlagsOfACommandBeforeThoseThatReachTheCluster(t *testing.T) {
	for command, own := range map[string]string{"list": "--limit", "submit": "--batch", "verify": "--checkpoint", "serve": "--slots"} {
		var out bytes.Buffer
		if code := Main(t.Context(), Program{Args: []string{command, "--help"}, Out: &out, Err: &out}); code != exitcode.OK {
			t.Fatalf("%s: code %d", command, code)
		}
		first, reaching, found := strings.Cut(out.String(), "\nTo reach the cluster:\n")
		if !found || !strings.Contains(first, own) || strings.Contains(reaching, own) ||
			strings.Contains(first, "--etcd-ca") || !strings.Contains(reaching, "--etcd-ca") {
			t.Errorf("%s:\n%s", command, out.String())
		}
	}
}

func TestMain_NamesCommandsThatMayHaveBeenMeant(t *testing.T) {
	for typed, want := range map[string]string{
		"lst":                   `unknown command "lst": is list meant?`,
		"statz":                 "stats",
		"sumbit":                "is submit meant?",
		"ver":                   "is verify or version meant?",
		"nothinglikeit":         `unknown command "nothinglikeit"` + "\n",
		"settnigs":              "is settings meant?",
		"schedule lst":          `schedule: unknown command "lst": is list meant?`,
		"schedule lst --data a": `schedule: unknown command "lst": is list meant?`,
		"token obtain":          `token: unknown command "obtain": want list, new or revoke` + "\n",
		"token make":            `token: unknown command "make": is new meant?` + "\n",
	} {
		var out, problems bytes.Buffer
		code := Main(t.Context(), Program{Name: "node", Args: strings.Fields(typed), Out: &out, Err: &problems})
		if got := problems.String(); code != exitcode.Usage || !strings.Contains(got, want) || out.Len() > 0 {
			t.Errorf("%s: code %d, %s", typed, code, got)
		}
	}
}
