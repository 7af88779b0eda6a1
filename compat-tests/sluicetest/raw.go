package sluicetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Raw is one connection on which requests are sent at pinned versions, and bytes as they are.
type Raw struct {
	net.Conn
	// ClientID is what the requests say who sends them: "wire", unless the test says otherwise.
	ClientID string

	t    testing.TB
	next int32
	sent []kmsg.Request
}

// Dial connects to a broker; the connection is closed when the test ends.
func Dial(t testing.TB, address string) *Raw {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return Over(t, conn)
}

// Over is a Raw on a connection that somebody else has made, and closes.
func Over(t testing.TB, conn net.Conn) *Raw {
	return &Raw{Conn: conn, ClientID: "wire", t: t}
}

// Send writes a request and does not wait for the answer.
func (r *Raw) Send(req kmsg.Request, version int16) {
	r.t.Helper()
	req.SetVersion(version)
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID(r.ClientID))
	frame := formatter.AppendRequest(nil, req, r.next)
	r.next++
	r.sent = append(r.sent, req)
	if _, err := r.Write(frame); err != nil {
		r.t.Fatalf("send %s v%d: %v", kmsg.NameForKey(req.Key()), version, err)
	}
}

// Receive reads the answer to the oldest request that has none yet. Every byte of the frame must be part of the answer.
func (r *Raw) Receive() kmsg.Response {
	r.t.Helper()
	resp, err := r.TryReceive(20 * time.Second)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp
}

// TryReceive is Receive with a time to wait, and returns what went wrong: io.EOF when the broker has closed the connection.
func (r *Raw) TryReceive(limit time.Duration) (kmsg.Response, error) {
	req := r.sent[0]
	r.sent = r.sent[1:]
	body, correlation, err := r.readFrame(limit)
	if err != nil {
		return nil, err
	}
	if want := r.next - int32(len(r.sent)) - 1; correlation != want {
		return nil, fmt.Errorf("correlation id %d, want %d", correlation, want)
	}
	resp := req.ResponseKind()
	if resp.IsFlexible() && req.Key() != 18 {
		if len(body) == 0 || body[0] != 0 {
			return nil, errors.New("the response header has no empty tag section")
		}
		body = body[1:]
	}
	return resp, readStrictly(resp, body)
}

// readStrictly decodes a body and fails if a byte is left or missing: what is encoded again must be what came.
func readStrictly(resp kmsg.Response, body []byte) error {
	if err := resp.ReadFrom(body); err != nil {
		return fmt.Errorf("%s v%d: %w", kmsg.NameForKey(resp.Key()), resp.GetVersion(), err)
	}
	if again := resp.AppendTo(nil); len(again) != len(body) {
		return fmt.Errorf("%s v%d: the body has %d bytes, its content takes %d", kmsg.NameForKey(resp.Key()), resp.GetVersion(), len(body), len(again))
	}
	return nil
}

func (r *Raw) readFrame(limit time.Duration) (body []byte, correlation int32, err error) {
	_ = r.SetReadDeadline(time.Now().Add(limit))
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, 0, err
	}
	size := int32(binary.BigEndian.Uint32(head))
	if size < 4 || size > 200<<20 {
		return nil, 0, fmt.Errorf("a frame of %d bytes", size)
	}
	body = make([]byte, size-4)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, 0, err
	}
	return body, int32(binary.BigEndian.Uint32(head[4:])), nil
}

// Ask sends a request and returns its answer.
func Ask[R kmsg.Response](r *Raw, req kmsg.Request, version int16) R {
	r.t.Helper()
	r.Send(req, version)
	resp := r.Receive()
	typed, ok := resp.(R)
	if !ok {
		r.t.Fatalf("asked %T, got %T", req, resp)
	}
	return typed
}

// WantClosed fails the test unless the broker closes the connection within the limit, without another byte.
func (r *Raw) WantClosed(limit time.Duration) {
	r.t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(limit))
	n, err := r.Read(make([]byte, 1))
	var timeout net.Error
	if n > 0 || err == nil {
		r.t.Error("the broker answered, instead of closing the connection")
	} else if errors.As(err, &timeout) && timeout.Timeout() {
		r.t.Errorf("the connection is still open after %v", limit)
	}
}

// WantSilence fails the test if the broker sends a byte, or closes the connection, within the time: an answer that must be held came too early.
func (r *Raw) WantSilence(during time.Duration) {
	r.t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(during))
	n, err := r.Read(make([]byte, 1))
	if n > 0 {
		r.t.Fatal("the broker answered too early")
	} else if !errors.Is(err, os.ErrDeadlineExceeded) {
		r.t.Fatalf("the connection ended: %v", err)
	}
}
