package httpd

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// warnOfKey says when the private key can be read by everybody, or written by others.
func warnOfKey(path string, log *slog.Logger) {
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o026 != 0 {
		log.Warn("others may read or write the private key of the API: want mode 0600", "file", path, "mode", info.Mode().Perm().String())
	}
}

// CheckPair says why a certificate and its key cannot be used together.
func CheckPair(cert, key string) error {
	_, err := tls.LoadX509KeyPair(cert, key)
	return err
}

// certificate is read again when its file has changed.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	looked time.Time
	at     time.Time // when the file was changed
	is     *tls.Certificate
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.is != nil && time.Since(c.looked) < time.Second {
		return c.is, nil
	}
	c.looked = time.Now()
	info, err := os.Stat(c.cert)
	if err == nil && c.is != nil && info.ModTime().Equal(c.at) {
		return c.is, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(c.cert, c.key)
	}
	if err != nil && c.is == nil {
		return nil, err
	}
	if err != nil { // the key may come a moment later
		c.log.Warn("the certificate of the API cannot be read: the one of before holds", "err", err)
		return c.is, nil
	}
	c.is, c.at = &pair, info.ModTime()
	return c.is, nil
}
