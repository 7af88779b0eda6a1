//go:build !linux

package server

import "io"

// sendfile is not handled on this system: ranges of files go through a buffer.
func (c *Conn) sendfile(io.ReaderAt, int64, int64) (handled bool, err error) { return false, nil }
