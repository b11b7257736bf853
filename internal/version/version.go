// Package version is the version of the program, in one place for all that tell it.
package version

import "runtime/debug"

// Version is the release, as semver.org has it. Nodes tell theirs.
const Version = "0.1.0"

// commit is set by the linker in a release, whose build knows no repository.
var commit string

// Module is a module that the program is made of.
type Module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// Build tells what the program was built of.
type Build struct {
	Version string   `json:"version"`
	Commit  string   `json:"commit,omitempty"` // of the source; with "+changes" where that was changed; "" = not known
	Go      string   `json:"go"`
	Modules []Module `json:"modules"`
}

// Of returns what this program was built of.
func Of() Build {
	b := Build{Version: Version, Commit: commit, Modules: []Module{}}
	is, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = is.GoVersion
	changed := false
	for _, s := range is.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	if changed {
		b.Commit += "+changes"
	}
	for _, m := range is.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Modules = append(b.Modules, Module{m.Path, m.Version})
	}
	return b
}
