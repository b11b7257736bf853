package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed generated/client.go.txt
var goClient []byte

//go:embed generated/client.ts
var tsClient []byte

// What validates the document, and what generates clients from it. A newer release is taken on purpose.
const (
	ogen     = "github.com/ogen-go/ogen/cmd/ogen@v1.24.0"
	packages = "@seriousme/openapi-schema-validator@2.11.0 @hey-api/openapi-ts@0.99.0 typescript@5.9.3 esbuild@0.28.2"
	linters  = "@redocly/cli@2.77.0 @stoplight/spectral-cli@6.16.3"
)

// clients validates the OpenAPI document of the node that the environment names, lints it with all rules, generates a
// client in Go and one in TypeScript without any configuration, and lets each submit, wait, meet a problem and replay.
func clients(dir, environment string) error {
	dir = filepath.Join(dir, "clients")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"main.go":       goClient,
		"client.ts":     tsClient,
		"spectral.json": []byte(`{"extends": ["spectral:oas"]}`),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	for _, step := range []struct{ does, script string }{
		{"fetch the OpenAPI document",
			`curl -sS --fail -H "Authorization: Bearer $TOKEN" "$URL/openapi.json" > openapi.json`},
		{"install what reads it", "npm install --silent --no-audit --no-fund " + packages + " " + linters},
		{"validate it", "npx validate-api openapi.json"},
		{"lint it", "REDOCLY_TELEMETRY=off npx redocly lint --extends=recommended-strict openapi.json; " +
			"npx spectral lint --ruleset spectral.json --fail-severity=hint openapi.json"},
		{"generate a client in Go", "go mod init generated && go get -tool " + ogen +
			" && go tool ogen --target api --package api openapi.json && go mod tidy"},
		{"submit and wait in Go", "go run ."},
		{"generate a client in TypeScript", "npx openapi-ts -i openapi.json -o ts"},
		{"submit and wait in TypeScript", "npx esbuild client.ts --bundle --platform=node --format=esm " +
			"--outfile=client.mjs --log-level=warning && node client.mjs"},
	} {
		cmd := exec.Command("bash", "-euc", "cd ..\n"+environment+"\ncd clients\n"+step.script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", step.does, err, out)
		}
	}
	fmt.Println("the OpenAPI document is valid, and clients generated from it, in Go and in TypeScript, submit and wait")
	return nil
}
