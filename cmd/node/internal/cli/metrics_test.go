package cli

import "testing"

func TestServe_RefusesMetricsThatOthersCouldRead(t *testing.T) {
	for _, address := range []string{"0.0.0.0:9464", ":9464", "10.1.2.3:9464"} {
		wantUsage(t, checked(t, "--metrics", address), "--metrics "+address, "no loopback address", "unencrypted")
	}
	wantUsage(t, checked(t, "--metrics-insecure"), "--metrics")
	if err := checked(t, "--metrics", "0.0.0.0:9464", "--metrics-insecure", "--api-host", "node-1"); err != nil {
		t.Error(err)
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:9464", "localhost:9464"} {
		if err := checked(t, "--metrics", address); err != nil {
			t.Error(err)
		}
	}
}
