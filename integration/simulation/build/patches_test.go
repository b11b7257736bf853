package build

import (
	"runtime"
	"strings"
	"testing"
)

// Another release of Go is named, with the one that the changes are made for, even where each of them still finds its
// place.
func TestIsPatched_TellsAnotherRelease(t *testing.T) {
	for version, want := range map[string]bool{"go1.26": true, "go1.26.8": true, "go1.27": false, "go1.260": false, "devel go1.26-abc": false} {
		if got := isPatched(version); got != want {
			t.Errorf("%s is the release of the changes: %t", version, got)
		}
	}
	if version, _, _ := strings.Cut(runtime.Version(), " "); !isPatched(version) {
		t.Errorf("the changes are for %s, and the tests run with %s", patched, version)
	}
}
