package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, o Options) (*Server, string) {
	t.Helper()
	o.Address = "127.0.0.1:0"
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Serve()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, "http://" + s.Addr().String()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// Each path answers in its form; readiness follows the hook and gives its reason.
func TestServer_Paths(t *testing.T) {
	var notReady error
	_, url := start(t, Options{
		Ready:   func() error { return notReady },
		Version: Version{Version: "1.2.3", Go: "go1", Kafka: "4.4.0"},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a_metric 1\n") }),
	})
	check := func(path string, wantStatus int, wantBody string) {
		t.Helper()
		if status, body := get(t, url+path); status != wantStatus || body != wantBody {
			t.Errorf("%s: %d %q, want %d %q", path, status, body, wantStatus, wantBody)
		}
	}
	check("/healthz", 200, "ok\n")
	check("/ready", 200, "ready\n")
	check("/version", 200, `{"version":"1.2.3","go":"go1","kafka":"4.4.0"}`+"\n")
	check("/metrics", 200, "a_metric 1\n")
	notReady = errors.New("loading partitions")
	check("/ready", 503, "loading partitions\n")
	check("/healthz", 200, "ok\n")
	if status, _ := get(t, url+"/other"); status != 404 {
		t.Errorf("/other: %d, want 404", status)
	}
	if response, err := http.Post(url+"/healthz", "", strings.NewReader("x")); err != nil || response.StatusCode != 405 {
		t.Errorf("POST: %v %v, want 405", response, err)
	} else {
		response.Body.Close()
	}
}

// Headers beyond the bound are refused.
func TestServer_HeaderBound(t *testing.T) {
	s, _ := start(t, Options{})
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	go io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 1<<20)+"\r\n\r\n")
	answer := make([]byte, 12)
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 431" {
		t.Errorf("%q, %v; want status 431", answer, err)
	}
}

// A port in use is an error that names it, and a server that never served can be shut down.
func TestNew_PortInUse(t *testing.T) {
	s, err := New(Options{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(context.Background())
	if _, err := New(Options{Address: s.Addr().String()}); err == nil || !strings.Contains(err.Error(), s.Addr().String()) {
		t.Errorf("error %v, want one that names %s", err, s.Addr())
	}
}
