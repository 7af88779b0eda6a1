// Package server accepts connections and moves Kafka frames: it reads requests, hands them to a Dispatcher in order, and writes the
// replies in the same order, within bounds. It knows no single API.
package server

import (
	"context"
	"net"
)

// Conn is one client connection.
type Conn struct{}

// Context ends when the connection is closed.
func (c *Conn) Context() context.Context { panic("not written yet") }

// Listener is the name of the listener that accepted the connection.
func (c *Conn) Listener() string { panic("not written yet") }

// LocalAddr is the broker's end of the connection.
func (c *Conn) LocalAddr() net.Addr { panic("not written yet") }

// RemoteAddr is the client's end of the connection.
func (c *Conn) RemoteAddr() net.Addr { panic("not written yet") }
