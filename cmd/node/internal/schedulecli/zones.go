package schedulecli

import (
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"taskledger/schedule"
)

// zoneFiles names the directory in which systems keep the time zones.
const zoneFiles = "/usr/share/zoneinfo"

// completeZones completes the names of the time zones that this machine knows.
func completeZones(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return zonesIn(os.DirFS(zoneFiles)), cobra.ShellCompDirectiveNoFileComp
}

// zonesIn returns the names of the time zones below a directory, those of continents and oceans alone.
func zonesIn(dir fs.FS) []string {
	names := []string{schedule.DefaultZone}
	areas, _ := fs.ReadDir(dir, ".") // without the files there is nothing else to offer
	for _, area := range areas {
		if !area.IsDir() || strings.ToLower(area.Name()) == area.Name() || area.Name() == "Etc" || area.Name() == "SystemV" {
			continue
		}
		_ = fs.WalkDir(dir, area.Name(), func(path string, of fs.DirEntry, err error) error {
			if err == nil && !of.IsDir() {
				names = append(names, path)
			}
			return nil
		})
	}
	return names
}
