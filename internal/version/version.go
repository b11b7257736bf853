// Package version is the version of the program, in one place for all that tell it.
package version

// Version is the release, as semver.org has it. Nodes tell theirs.
const Version = "0.1.0"
