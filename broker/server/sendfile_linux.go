package server

import (
	"errors"
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// sendfileStep bounds one sendfile call: the kernel reads the file in it, and other goroutines wait for the thread meanwhile.
const sendfileStep = 4 << 20

// sendfile sends what was put, then a range of a file, without the bytes passing through the process. The offset is explicit: other
// connections send from the same open file. It is not handled when the source is not a file, or the connection not plain TCP.
func (c *Conn) sendfile(source io.ReaderAt, offset, length int64) (handled bool, err error) {
	socket, ok := c.socket.(*net.TCPConn)
	if !ok {
		return false, nil
	}
	file, ok := source.(syscall.Conn)
	if !ok {
		return false, nil
	}
	from, err := file.SyscallConn()
	if err != nil {
		return false, nil //nolint:nilerr // a file without a descriptor is read and written instead
	}
	to, err := socket.SyscallConn()
	if err != nil {
		return true, err
	}
	if err := c.sendVectors(to); err != nil {
		return true, err
	}
	var sendErr error
	if err := from.Control(func(fd uintptr) {
		offset, length, sendErr = c.sendRange(to, int(fd), offset, length)
	}); err != nil {
		return true, &sourceError{err} // closed
	}
	if errors.Is(sendErr, unix.EINVAL) || errors.Is(sendErr, unix.ENOSYS) || errors.Is(sendErr, unix.EOPNOTSUPP) {
		return true, c.copyFile(source, offset, length) // a file system without it
	}
	return true, sendErr
}

// sendVectors writes what was put, and tells the kernel that more follows at once, so that it fills whole packets.
func (c *Conn) sendVectors(to syscall.RawConn) error {
	w := &c.writer
	w.seal()
	err := c.whileProgress(to, func(fd int) (int64, bool, error) {
		if len(w.vectors) == 0 {
			return 0, true, nil
		}
		n, err := unix.SendmsgBuffers(fd, w.vectors, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		if err != nil {
			return 0, false, err
		}
		w.consume(n)
		return int64(n), len(w.vectors) == 0, nil
	})
	w.sent()
	return err
}

// consume takes n written bytes off the front of the vectors.
func (w *writer) consume(n int) {
	for len(w.vectors) > 0 && n >= len(w.vectors[0]) {
		n -= len(w.vectors[0])
		w.vectors = w.vectors[1:]
	}
	if n > 0 {
		w.vectors[0] = w.vectors[0][n:]
	}
}

// sendRange sends length bytes of the file from offset, and returns what is left when it fails.
func (c *Conn) sendRange(to syscall.RawConn, file int, offset, length int64) (int64, int64, error) {
	err := c.whileProgress(to, func(fd int) (int64, bool, error) {
		n, err := unix.Sendfile(fd, file, &offset, int(min(length, sendfileStep)))
		switch {
		case errors.Is(err, unix.EIO):
			return 0, false, &sourceError{err}
		case err != nil:
			return 0, false, err
		case n == 0:
			return 0, false, &sourceError{errTruncated}
		}
		length -= int64(n) // the call has moved offset
		return int64(n), length == 0, nil
	})
	return offset, length, err
}

// whileProgress calls step with the socket until it is done, waits where the socket is full, and gives up when nothing is taken within
// the write timeout.
func (c *Conn) whileProgress(to syscall.RawConn, step func(fd int) (n int64, done bool, err error)) error {
	for {
		var moved int64
		var stepErr error
		c.armWrite()
		err := to.Write(func(fd uintptr) bool {
			for {
				n, done, err := step(int(fd))
				switch {
				case errors.Is(err, unix.EINTR):
					continue
				case errors.Is(err, unix.EAGAIN):
					return false
				case err != nil:
					stepErr = err
					return true
				}
				moved += n
				if done {
					return true
				}
			}
		})
		if stepErr != nil {
			return stepErr
		}
		if err == nil || !c.progressed(moved, err) {
			return err
		}
	}
}
