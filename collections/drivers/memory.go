package drivers

import (
	"os"
	"sync"
)

// maxRemembered bounds the targets that a node remembers: as many as a file has collections.
const maxRemembered = 10_000

// memory holds which version of a source each target has, as far as this process brought it. It is no record: what is
// forgotten is read, and compared.
type memory struct {
	mu      sync.Mutex
	fetched map[string]fetched // by target
}

// fetched says what a target has.
type fetched struct {
	from    string
	version version
	target  os.FileInfo
}

// known returns the version that a target has of a source, where it is still the file that was remembered.
func (m *memory) known(to, from string, is os.FileInfo) version {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, has := m.fetched[to]
	if !has || f.from != from || is == nil || !same(f.target, is) {
		return version{}
	}
	return f.version
}

func (m *memory) note(to string, f fetched) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fetched == nil {
		m.fetched = map[string]fetched{}
	}
	if _, has := m.fetched[to]; !has && len(m.fetched) >= maxRemembered {
		for any := range m.fetched {
			delete(m.fetched, any)
			break
		}
	}
	m.fetched[to] = f
}
