package diff

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxFrame bounds the size of an answer that is read, in bytes.
const maxFrame = 64 << 20

// outcome is what became of one request.
type outcome int

const (
	replied outcome = iota // a response that decodes to the last byte
	closed                 // the broker closed the connection instead of answering
	silent                 // neither within the limit of the step
	garbled                // bytes that are no response to this request
)

func (o outcome) String() string { return [...]string{"replied", "closed", "silent", "garbled"}[o] }

// answer is one broker's reaction to one request.
type answer struct {
	outcome  outcome
	response kmsg.Response // of replied
	detail   string        // of garbled: what is wrong
}

// pending is a request that was written and has no answer yet.
type pending struct {
	correlation int32
	response    kmsg.Response
}

// conn is one connection to a broker. It dials when it is needed, and again after it was closed.
type conn struct {
	address string
	net     net.Conn
	next    int32
	waiting []pending
	fault   error // the write failed: the broker closes while we send
}

// clientID is what every request names: it is part of member ids and of descriptions.
const clientID = "diff"

// appendFrame encodes a request with its size and header, at its version.
func appendFrame(req kmsg.Request, correlation int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID(clientID)).AppendRequest(nil, req, correlation)
}

// send writes one encoded request, whose bytes 8 to 11 get the correlation id. response is what its answer will be read into.
func (c *conn) send(frame []byte, response kmsg.Response) {
	if c.net == nil {
		if c.net, c.fault = net.DialTimeout("tcp", c.address, 5*time.Second); c.fault != nil {
			c.net = nil
		}
	}
	c.next++
	if len(frame) >= 12 {
		binary.BigEndian.PutUint32(frame[8:], uint32(c.next))
	}
	c.waiting = append(c.waiting, pending{c.next, response})
	if c.net != nil && c.fault == nil {
		_ = c.net.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, c.fault = c.net.Write(frame)
	}
}

// receive waits for the answer to the oldest request that has none. After the limit it asks how much longer to wait, if more is given.
func (c *conn) receive(limit time.Duration, more ...func() time.Duration) answer {
	asked := c.waiting[0]
	c.waiting = c.waiting[1:]
	if c.net == nil {
		return answer{outcome: garbled, detail: fmt.Sprintf("no connection: %v", c.fault)}
	}
	a := c.read(asked, limit)
	for _, m := range more {
		if longer := m(); a.outcome == silent && longer > 0 {
			a = c.read(asked, longer)
		}
	}
	if a.outcome != replied {
		c.close()
	}
	return a
}

func (c *conn) read(asked pending, limit time.Duration) answer {
	_ = c.net.SetReadDeadline(time.Now().Add(limit))
	head := make([]byte, 8)
	if n, err := io.ReadFull(c.net, head); err != nil {
		var timeout net.Error
		switch {
		case n > 0:
			return answer{outcome: garbled, detail: fmt.Sprintf("%d bytes, then %v", n, err)}
		case errors.As(err, &timeout) && timeout.Timeout():
			return answer{outcome: silent}
		default:
			return answer{outcome: closed}
		}
	}
	size := int32(binary.BigEndian.Uint32(head))
	if size < 4 || size > maxFrame {
		return answer{outcome: garbled, detail: fmt.Sprintf("a frame of %d bytes", size)}
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(c.net, body); err != nil {
		return answer{outcome: garbled, detail: fmt.Sprintf("a body cut off: %v", err)}
	}
	if got := int32(binary.BigEndian.Uint32(head[4:])); got != asked.correlation {
		return answer{outcome: garbled, detail: fmt.Sprintf("correlation id %d, want %d", got, asked.correlation)}
	}
	return decode(asked.response, body)
}

// decode reads a response without its size and correlation id. What is encoded again must have the length of what came.
func decode(response kmsg.Response, body []byte) answer {
	apiVersions, isApiVersions := response.(*kmsg.ApiVersionsResponse)
	if isApiVersions && len(body) >= 2 && apiVersions.Version > 0 && binary.BigEndian.Uint16(body) == 35 {
		// To a version that it does not know a broker answers in version 0.
		apiVersions.Version = 0
	}
	if response.IsFlexible() && !isApiVersions {
		if len(body) == 0 || body[0] != 0 {
			return answer{outcome: garbled, detail: "the response header has no empty tag section"}
		}
		body = body[1:]
	}
	if err := response.ReadFrom(body); err != nil {
		return answer{outcome: garbled, detail: err.Error()}
	}
	if again := response.AppendTo(nil); len(again) != len(body) {
		return answer{outcome: garbled, detail: fmt.Sprintf("the body has %d bytes, its content takes %d", len(body), len(again))}
	}
	return answer{outcome: replied, response: response}
}

func (c *conn) close() {
	if c.net != nil {
		c.net.Close()
	}
	c.net, c.fault, c.waiting = nil, nil, nil
}
