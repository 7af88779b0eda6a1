// Package admin is the HTTP server beside Kafka's ports: health, readiness, version and metrics for machines that watch the broker.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Bounds on what an HTTP client can hold.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 60 * time.Second // a scrape of many partitions over a slow line
	idleTimeout   = 2 * time.Minute
	headerBytes   = 16 << 10
	bodyBytes     = 64 << 10
)

// Options are what a Server is made of.
type Options struct {
	Address string       // host:port to bind; port 0 for any
	Metrics http.Handler // for /metrics
	// Ready says why the broker cannot serve clients yet or any more; nil when it can.
	Ready   func() error
	Version Version
	Log     *zap.Logger
}

// Version says what runs.
type Version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Kafka    string `json:"kafka"` // the release whose protocol is spoken
}

// Server answers on the admin port. It binds in New, so that a port in use is known at start.
type Server struct {
	listener net.Listener
	http     *http.Server
	mux      *http.ServeMux
	log      *zap.Logger
	done     chan struct{}
	serving  atomic.Bool
}

// New binds the port.
func New(o Options) (*Server, error) {
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("admin server: cannot listen on %s: %w", o.Address, err)
	}
	s := &Server{listener: listener, mux: http.NewServeMux(), log: o.Log, done: make(chan struct{})}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	s.http = &http.Server{
		Handler:           http.MaxBytesHandler(s.mux, bodyBytes),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          zap.NewStdLog(s.log),
	}
	if o.Version.Go == "" {
		o.Version.Go = runtime.Version()
	}
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	s.mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if o.Ready != nil {
			if err := o.Ready(); err != nil {
				plain(w, http.StatusServiceUnavailable, err.Error())
				return
			}
		}
		plain(w, http.StatusOK, "ready")
	})
	s.mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(o.Version)
	})
	if o.Metrics != nil {
		s.mux.Handle("GET /metrics", o.Metrics)
	}
	return s, nil
}

// Handle mounts a further handler, before Serve: the console and the control API.
func (s *Server) Handle(pattern string, handler http.Handler) { s.mux.Handle(pattern, handler) }

// Addr is the address that is bound.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve begins to answer, and returns.
func (s *Server) Serve() {
	s.serving.Store(true)
	go func() {
		defer close(s.done)
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("the admin server has ended", zap.Error(err))
		}
	}()
}

// Shutdown stops accepting and waits for the answers under way; when ctx ends first they are cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
	}
	s.listener.Close() // known to http only once it serves
	if s.serving.Load() {
		<-s.done
	}
	return err
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, text)
}
