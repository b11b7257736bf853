package threads

import "strings"

// maxFrames bounds the frames that Frames returns.
const maxFrames = 8

// Frames returns where somebody else's function panicked, the innermost frame first: each as its function, and in a
// line below its file. It leaves out what stands above the panic, and the frames that called the function; below is
// what the first of these begins with. It returns the whole stack where it finds no panic.
func (e *PanicError) Frames(below string) string {
	lines := strings.Split(strings.TrimSpace(string(e.Stack)), "\n")
	var frames []string
	panicked := false
	for i := 1; i+1 < len(lines) && len(frames) < maxFrames; i += 2 { // the first line names the goroutine
		switch call := lines[i]; {
		case !panicked:
			panicked = strings.HasPrefix(call, "panic(")
		case len(frames) == 0 && strings.HasPrefix(call, "runtime."): // of a nil pointer, say
		case strings.HasPrefix(call, below) || strings.HasPrefix(call, "taskledger/work/internal/threads."):
			return strings.Join(frames, "\n")
		default:
			at, _, _ := strings.Cut(lines[i+1], " +0x")
			frames = append(frames, call+"\n"+at)
		}
	}
	if len(frames) == 0 {
		return string(e.Stack)
	}
	return strings.Join(frames, "\n")
}
