package projection_test

import (
	"os"
	"strings"
	"testing"

	"taskledger/projection"
)

func TestDiagram_IsTheOneInTheArchitecture(t *testing.T) {
	text, err := os.ReadFile("../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "```mermaid\n" + projection.Diagram() + "```\n"
	if !strings.Contains(string(text), want) {
		t.Errorf("ARCHITECTURE.md does not contain\n%s", want)
	}
}
