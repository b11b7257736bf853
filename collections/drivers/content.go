package drivers

import (
	"context"
	"io"
	"net/http"
	"os"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/collections"
)

const (
	// A Last-Modified counts seconds, and tells versions apart if it is older than its response by settledHTTP: RFC 9110,
	// 8.8.2.2, asks for a second where clocks are right.
	settledHTTP = time.Minute
	// The time of a file tells versions apart once it is older than settledFile: systems count in steps of up to two
	// seconds.
	settledFile = 3 * time.Second
)

// sources opens what is fetched.
type sources struct {
	getter *builtin.Getter
	files  builtin.ChecksumOptions
}

// content is read from a source.
type content struct {
	io.ReadCloser
	size    int64 // -1 = unknown
	version version
}

// version tells contents of one source apart; the zero value tells nothing.
type version struct {
	etag     string      // of a URL
	modified string      // of a URL without an ETag: its Last-Modified
	file     os.FileInfo // of a path
}

// open returns the content of the source, nil if it is still the known version.
func (s *sources) open(ctx context.Context, d collections.Driver, known version) (*content, error) {
	if d.URL != "" {
		return s.openURL(ctx, d.URL, known)
	}
	file, info, err := s.files.Open(d.Path)
	if err != nil {
		return nil, err
	}
	if known.file != nil && same(known.file, info) {
		return nil, file.Close()
	}
	got := &content{file, info.Size(), version{}}
	if time.Since(info.ModTime()) > settledFile {
		got.version.file = info
	}
	return got, nil
}

func (s *sources) openURL(ctx context.Context, url string, known version) (*content, error) {
	header := http.Header{}
	switch {
	case known.etag != "":
		header.Set("If-None-Match", known.etag)
	case known.modified != "":
		header.Set("If-Modified-Since", known.modified)
	}
	res, err := s.getter.Get(ctx, url, header)
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusNotModified {
		_ = res.Body.Close() // it has none
		return nil, nil
	}
	return &content{res.Body, res.ContentLength, versionOf(res)}, nil
}

// versionOf returns the version of a response. What a redirect led to has none: the next one may lead elsewhere, where
// the same ETag is of another content.
func versionOf(res *http.Response) version {
	if res.Request.Response != nil {
		return version{}
	}
	if etag := res.Header.Get("ETag"); etag != "" {
		return version{etag: etag}
	}
	modified := res.Header.Get("Last-Modified")
	at, err := http.ParseTime(modified)
	date, err2 := http.ParseTime(res.Header.Get("Date"))
	if err != nil || err2 != nil || date.Sub(at) < settledHTTP {
		return version{}
	}
	return version{modified: modified}
}

// same reports whether a file is the one that it was, and was not written since.
func same(was, is os.FileInfo) bool {
	return os.SameFile(was, is) && was.Size() == is.Size() && was.ModTime().Equal(is.ModTime())
}
