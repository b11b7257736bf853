package builtin

// samples has parameters by behavior.
var samples = map[string]string{
	"noop":     `{}`,
	"sleep":    `{"duration":"1s"}`,
	"exec":     `{"program":"date","args":["-u"]}`,
	"http":     `{"url":"https://example.org/"}`,
	"checksum": `{"path":"go.mod"}`,
}

// Sample returns sample parameters of a built-in behavior, as JSON text; "" = no built-in behavior has that id.
func Sample(behavior string) string { return samples[behavior] }
