//go:build !unix

package server

import "net"

// directReader is nothing on this system: what a connection waits for is read through net.Conn.
type directReader struct{}

func (*directReader) init(net.Conn, *reader)   {}
func (*directReader) direct() bool             { return false }
func (*directReader) read([]byte) (int, error) { panic("not direct") }
