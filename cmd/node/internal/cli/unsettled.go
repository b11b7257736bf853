package cli

import (
	"fmt"
	"io"
)

// tellUnsettled warns that what is shown of a directory may be less than what was answered.
func tellUnsettled(to io.Writer, program, dir string, why error) {
	fmt.Fprintf(to, "%s: the files in %s may lack entries that were answered last: %v\n", program, dir, why)
}
