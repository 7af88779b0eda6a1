//go:build unix

package server

import (
	"syscall"
	"testing"
)

// raiseFileLimit makes room for open sockets, or skips the test where the system does not allow it.
func raiseFileLimit(t *testing.T, files uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Skip(err)
	}
	if limit.Cur >= files {
		return
	}
	limit.Cur = min(files, limit.Max)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < files {
		t.Skipf("%d files may be open, %d are needed", limit.Cur, files)
	}
}
