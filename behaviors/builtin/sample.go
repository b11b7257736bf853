package builtin

// samples has parameters by behavior.
var samples = map[string]string{
	"noop":     `{}`,
	"sleep":    `{"duration":"1s"}`,
	"exec":     `{"program":"date","args":["-u"]}`,
	"http":     `{"url":"https://example.org/"}`,
	"checksum": `{"path":"go.mod"}`,
}

// Sample returns parameters that a built-in behavior takes, as an example; "" = the behavior is none of them.
func Sample(behavior string) string { return samples[behavior] }
