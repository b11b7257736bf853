package trees

import "sync"

// parts holds the parts that this process is about to put in their places. The zero value is ready to use, and may be
// used concurrently.
type parts struct {
	mu    sync.Mutex
	names map[string]struct{}
}

// add adds a part, and returns it.
func (p *parts) add(part string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.names == nil {
		p.names = map[string]struct{}{}
	}
	p.names[part] = struct{}{}
	return part
}

// has reports whether a path is that of a part.
func (p *parts) has(at string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, is := p.names[at]
	return is
}

// forget forgets a part that is in its place, or gone.
func (p *parts) forget(part string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.names, part)
}
