package trees

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"unicode/utf8"
)

// The name of a part is that of its file, a point, 16 hexadecimal digits and ".part".
const (
	partEnd    = ".part"
	partDigits = 16
	// maxPartBase leaves room for the rest in a name of 255 bytes, which file systems allow. A name of this length or
	// more is cut to it, and a part of such a name does not tell of which file it is.
	maxPartBase = 255 - 1 - partDigits - len(partEnd)
)

// newPart returns the name of a new part of the file at a path.
func newPart(at string) string {
	dir, base := path.Split(at)
	if len(base) > maxPartBase {
		end := maxPartBase
		for end > maxPartBase-utf8.UTFMax && !utf8.RuneStart(base[end]) {
			end--
		}
		base = base[:end]
	}
	return fmt.Sprintf("%s%s.%0*x%s", dir, base, partDigits, rand.Uint64(), partEnd)
}

// isPart reports whether an entry has the name of a part. Directories are no parts.
func isPart(e entry) bool {
	_, is := cutPart(e.path)
	return is && !e.isDir()
}

// cutPart returns the path of which a part is, as far as its name has it, and false for other names.
func cutPart(part string) (at string, is bool) {
	rest, is := strings.CutSuffix(part, partEnd)
	point := len(rest) - partDigits - 1
	if !is || point < 1 || rest[point] != '.' || rest[point-1] == '/' {
		return "", false
	}
	if strings.Trim(rest[point+1:], "0123456789abcdef") != "" {
		return "", false
	}
	return rest[:point], true
}

// isWhole reports whether the path that cutPart returned is that of the file, whose name was not cut.
func isWhole(at string) bool { return len(path.Base(at)) <= maxPartBase-utf8.UTFMax }
