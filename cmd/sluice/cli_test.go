package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sluice/broker"
)

// TestMain lets scripts run this program: the test's own binary, started as sluice, is it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sluice": main})
}

// The scripts of the client commands. Each has a broker of its own, in memory, at $SLUICE_BOOTSTRAP. UPDATE_SCRIPTS=1 writes what is printed
// into them, to be read before it is committed.
func TestCommands(t *testing.T) {
	runScripts(t, "testdata/cli", nil)
}

// TestReadme runs the commands of the README's section on the command line, as they stand there.
func TestReadme(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the README is written for sh")
	}
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## The command line\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, block, fenced := strings.Cut(section, "```sh\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !fenced || !closed {
		t.Fatal("README.md has no section \"The command line\" with a block of sh")
	}
	dir := t.TempDir()
	script := "exec sh -eux readme.sh\nstdout hello\n-- readme.sh --\n" + block
	if err := os.WriteFile(dir+"/readme.txtar", []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	runScripts(t, dir, nil)
}

func runScripts(t *testing.T, dir string, overrides map[string]string) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			b, err := broker.Start(context.Background(), broker.Config{
				Dev: true, Ephemeral: true, Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", Version: "test", Overrides: overrides,
			})
			if err != nil {
				return err
			}
			e.Defer(func() {
				if err := b.Stop(context.Background()); err != nil {
					t.Errorf("stop the broker: %v", err)
				}
			})
			e.Setenv("SLUICE_BOOTSTRAP", b.Address())
			e.Setenv("SLUICE_CONTEXTS", e.Cd+"/contexts.properties")
			e.Setenv("ADMIN", b.AdminAddress())
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":      exitsScript,
			"freeport":   freePortScript,
			"above":      aboveScript,
			"eventually": eventuallyScript,
		},
	})
}

// exitsScript runs the program and expects an exit code: exits CODE ARGS...
func exitsScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("exits CODE ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("sluice", args[1:]...)
	got := 0
	if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // testscript does not wrap it
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// freePortScript sets a variable to an address on which nothing listens: freeport NAME. The port was free a moment ago, and the system gives
// out others first.
func freePortScript(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("freeport NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], l.Addr().String())
	ts.Check(l.Close())
}

// aboveScript prints the standard output of the command before as far as a line, for cmp: above LINE.
func aboveScript(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("above LINE")
	}
	text, _, _ := strings.Cut(ts.ReadFile("stdout"), args[0]+"\n")
	_, err := fmt.Fprint(ts.Stdout(), text)
	ts.Check(err)
}

// eventuallyScript runs the program until it prints what a regular expression matches: eventually REGEXP ARGS...
func eventuallyScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("eventually REGEXP ARGS...")
	}
	wanted, err := regexp.Compile(args[0])
	ts.Check(err)
	for began := time.Now(); time.Since(began) < 30*time.Second; {
		if err := ts.Exec("sluice", args[1:]...); err == nil && wanted.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("nothing that %s matches was printed in time", args[0])
}
