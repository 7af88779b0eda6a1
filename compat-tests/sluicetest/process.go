// Package sluicetest starts the built broker as a user would, a process with a data directory, and lets a test stop, kill and restart it.
package sluicetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is one broker process. Its addresses stay the same over restarts.
type Process struct {
	// Address is the bootstrap address, HOST:PORT, and Admin that of the admin server.
	Address, Admin string
	// DataDir is where the broker keeps its log directories; empty when it keeps none.
	DataDir string
	// Args is the command line after "sluice serve", Env what is added to the environment.
	Args, Env []string

	t    testing.TB
	cmd  *exec.Cmd
	out  *tail
	done chan struct{}
	err  error
}

// Binary is the path of the broker under test: $SLUICE, or bin/sluice of the repository.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("SLUICE"); path != "" {
		return path
	}
	for dir, _ := os.Getwd(); dir != "/"; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, "bin", "sluice")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatal("no broker to test: `make build` makes bin/sluice, or $SLUICE names it")
	return ""
}

// New prepares a broker on free loopback ports with an empty data directory. The test may change its command line, then Launch and WaitReady
// start it; it is stopped when the test ends. args are added to the command line; with listeners among them they alone say where it listens.
func New(t testing.TB, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, Address: FreeAddress(t), Admin: FreeAddress(t), DataDir: filepath.Join(t.TempDir(), "data")}
	p.Args = append(p.listenArgs(args), append([]string{"--data", p.DataDir}, args...)...)
	t.Cleanup(func() {
		if p.Running() {
			p.Stop()
		}
		if t.Failed() && p.out != nil {
			t.Logf("the broker's last output:\n%s", p.out)
		}
	})
	return p
}

// Start is New, Launch, WaitReady.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	p := New(t, args...)
	p.Launch()
	p.WaitReady()
	return p
}

// StartShared is Start for a broker in memory that outlives the test that started it. Whoever asks for it kills it at the end.
func StartShared(t testing.TB, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, Address: FreeAddress(t), Admin: FreeAddress(t)}
	p.Args = append(p.listenArgs(args), append([]string{"--ephemeral"}, args...)...)
	p.Launch()
	p.WaitReady()
	return p
}

func (p *Process) listenArgs(args []string) []string {
	if strings.Contains(strings.Join(args, " "), "listeners=") {
		return []string{"--admin", p.Admin}
	}
	return []string{"--admin", p.Admin, "--listen", p.Address}
}

// Launch starts the process without waiting for it to be ready.
func (p *Process) Launch() {
	p.t.Helper()
	p.cmd = exec.Command(Binary(p.t), append([]string{"serve"}, p.Args...)...)
	p.cmd.Env = append(os.Environ(), p.Env...)
	p.out = &tail{limit: 64 << 10}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("start %s: %v", p.cmd.Path, err)
	}
	p.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		p.err = cmd.Wait()
		close(done)
	}(p.cmd, p.done)
}

// WaitReady polls /ready until it answers 200, the process ends, or half a minute has passed.
func (p *Process) WaitReady() {
	p.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(deadline) {
		select {
		case <-p.done:
			p.t.Fatalf("the broker ended before it was ready: %v\n%s", p.err, p.out)
		case <-tick.C:
		}
		if resp, err := http.Get("http://" + p.Admin + "/ready"); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
	p.t.Fatalf("the broker was not ready after 30 s\n%s", p.out)
}

// Kill ends the process as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	p.t.Helper()
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stop asks the process to end with SIGTERM, and fails the test if it does not end by itself, with success, within 20 s.
func (p *Process) Stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatalf("SIGTERM: %v", err)
	}
	select {
	case <-p.done:
		if p.err != nil {
			p.t.Errorf("the broker ended with %v after SIGTERM\n%s", p.err, p.out)
		}
	case <-time.After(20 * time.Second):
		p.Kill()
		p.t.Errorf("the broker did not end within 20 s of SIGTERM\n%s", p.out)
	}
}

// Restart is Stop, Launch, WaitReady.
func (p *Process) Restart() {
	p.t.Helper()
	p.Stop()
	p.Launch()
	p.WaitReady()
}

// Signal sends the process a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("%v: %v", s, err)
	}
}

// WaitEnd waits until the process ends by itself and returns its exit code, or fails the test after the limit.
func (p *Process) WaitEnd(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		p.t.Fatalf("the broker was still there after %v\n%s", limit, p.out)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Running says whether the process is there.
func (p *Process) Running() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Output is the last of what the process printed.
func (p *Process) Output() string { return p.out.String() }

// Run runs the program with arguments to its end, and returns what it printed and its exit code. It fails the test if that takes a minute.
func Run(t testing.TB, env []string, args ...string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(t), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) || ctx.Err() != nil {
		t.Fatalf("sluice %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ResidentBytes is the process's resident memory as the system counts it.
func (p *Process) ResidentBytes() int64 {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return kib << 10
		}
	}
	p.t.Fatal("no VmRSS line")
	return 0
}

// FreeAddress is a loopback address that nothing listened on a moment ago.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Eventually polls condition every 20 ms until it returns nil, and fails the test with its last error after the limit.
func Eventually(t testing.TB, limit time.Duration, condition func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("never tried")
	for {
		if last = condition(ctx); last == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %v: %v", limit, last)
		case <-tick.C:
		}
	}
}

// tail keeps the last bytes written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	kept  bytes.Buffer
}

func (w *tail) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept.Write(b)
	if over := w.kept.Len() - w.limit; over > 0 {
		w.kept.Next(over)
	}
	return len(b), nil
}

func (w *tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kept.String()
}

// Until polls a condition every 20 ms, and fails the test when it does not hold after the limit.
func Until(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	Eventually(t, limit, func(context.Context) error {
		if !condition() {
			return errors.New("still waiting for: " + what)
		}
		return nil
	})
}
