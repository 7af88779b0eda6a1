//go:build unix

package server

import (
	"io"
	"net"
	"syscall"
)

// directReader reads from a plain TCP socket as net.TCPConn does, but that it learns when the socket is empty, before it waits: an idle
// connection need not hold a buffer.
type directReader struct {
	conn    syscall.RawConn // nil: not a plain TCP socket
	reader  *reader
	attempt func(fd uintptr) bool

	// Of one read.
	target []byte // nil: the reader's room
	n      int
	err    error
}

func (d *directReader) init(socket net.Conn, r *reader) {
	tcp, ok := socket.(*net.TCPConn)
	if !ok {
		return
	}
	conn, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	d.conn, d.reader, d.attempt = conn, r, d.try
}

// direct reports whether read works.
func (d *directReader) direct() bool { return d.conn != nil }

// read reads at least one byte into p or, if it is nil, into the reader's room.
func (d *directReader) read(p []byte) (int, error) {
	d.target, d.n, d.err = p, 0, nil
	if err := d.conn.Read(d.attempt); err != nil {
		return 0, err
	}
	return d.n, d.err
}

// try reads without waiting. It is false when there is nothing to read yet.
func (d *directReader) try(fd uintptr) bool {
	p := d.target
	if p == nil {
		p = d.reader.room()
	}
	for {
		n, err := syscall.Read(int(fd), p)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			d.reader.settle()
			return false
		case err != nil:
			d.err = err
		case n == 0:
			d.err = io.EOF
		default:
			d.n = n
			d.reader.more = n == len(p)
		}
		return true
	}
}
