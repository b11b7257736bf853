package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"taskledger/api"
	"taskledger/api/problem"
)

//go:embed static/*.css static/*.js static/*.svg static/*.txt
var files embed.FS

// asset is a file that pages load. Its address has its hash, so that a browser keeps it for ever.
type asset struct {
	media string
	data  []byte
	at    string
}

// assets holds the files by their names.
var assets = readAssets()

var mediaOf = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

func readAssets() map[string]asset {
	all := map[string]asset{}
	entries, err := fs.ReadDir(files, "static")
	if err != nil {
		panic(err) // the compiler has embedded them
	}
	for _, e := range entries {
		data, err := files.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(data)
		all[e.Name()] = asset{
			media: mediaOf[path.Ext(e.Name())],
			data:  data,
			at:    Root + "static/" + hex.EncodeToString(sum[:6]) + "/" + e.Name(),
		}
	}
	return all
}

// assetAt returns the address of a file.
func assetAt(name string) (string, error) {
	a, is := assets[name]
	if !is {
		return "", fmt.Errorf("there is no file %s", name)
	}
	return a.at, nil
}

func (u *UI) staticRoutes() []api.Route {
	return []api.Route{{
		Method:  http.MethodGet,
		Pattern: Root + "static/{hash}/{file}",
		Summary: "Load a file of the dashboard",
		Page: &api.PagePolicy{
			Content:  "default-src 'none'",
			Referrer: "no-referrer",
			Cache:    "public, max-age=31536000, immutable",
		},
		Serve: func(c *api.Call) error {
			a, is := assets[c.Path("file")]
			if !is || !strings.HasPrefix(a.at, Root+"static/"+c.Path("hash")+"/") {
				return problem.New(problem.NotFound, "there is no such file")
			}
			return c.Asset(a.media, a.data)
		},
	}}
}
