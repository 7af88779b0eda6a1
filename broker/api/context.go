package api

import (
	"context"
	"net"

	"sluice/broker/server"
)

// Context says who asked, when and how, for one request. As a context.Context it ends with the connection. A handler may keep it beyond
// its return.
type Context struct {
	context.Context
	Listener              string // name of the listener that accepted the connection
	LocalAddr, RemoteAddr net.Addr
	ClientID              string // empty when the client sent none
	ClientSoftwareName    string // as told by ApiVersions 3 and up on this connection; empty until then
	ClientSoftwareVersion string
	Key, Version          int16
	CorrelationID         int32
	NowMs                 int64 // wall clock when the request was taken up, milliseconds since 1970
	Request               *server.Request

	handlers *Handlers
}
