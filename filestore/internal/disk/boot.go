package disk

import (
	"os"
	"strings"
)

// bootFile is where Linux tells the id of its boot.
const bootFile = "/proc/sys/kernel/random/boot_id"

// BootID returns an id of the time since the machine was started, "" where the system has none. While it is the same,
// what a process has written to a file is there whether it was synced or not.
func BootID() string {
	id, err := os.ReadFile(bootFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
