package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts print files that Apache Kafka 4.4.0 wrote, whole and damaged. UPDATE_SCRIPTS=1 writes what is printed into them, to be read
// before it is committed.
func TestDump(t *testing.T) {
	golden, err := filepath.Abs("testdata/dump/kafka-4.4")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/dump",
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			return os.CopyFS(e.Cd, os.DirFS(golden))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"dump": dumpScript,
			"poke": pokeScript,
			"cut":  cutScript,
		},
	})
}

// dumpScript is `sluice dump ARGS...` in this process; flags with a value are written --flag=value. The scripts' directory is left out of
// what is printed.
func dumpScript(ts *testscript.TestScript, neg bool, args []string) {
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			args[i] = ts.MkAbs(arg)
		}
	}
	var stdout, stderr bytes.Buffer
	cmd := newDumpCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(args)
	err := cmd.Execute()
	if err != nil {
		fmt.Fprintln(&stderr, "sluice:", err)
	}
	shorten := strings.NewReplacer(filepath.ToSlash(ts.MkAbs("."))+"/", "", ts.MkAbs(".")+string(filepath.Separator), "")
	for from, to := range map[*bytes.Buffer]io.Writer{&stdout: ts.Stdout(), &stderr: ts.Stderr()} {
		_, err := shorten.WriteString(to, from.String())
		ts.Check(err)
	}
	if (err != nil) != neg {
		ts.Fatalf("dump: %v", err)
	}
}

// pokeScript overwrites bytes of a file: poke FILE OFFSET HEX.
func pokeScript(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("poke FILE OFFSET HEX")
	}
	offset, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	content, err := hex.DecodeString(args[2])
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY|os.O_CREATE, 0o644)
	ts.Check(err)
	_, err = f.WriteAt(content, offset)
	ts.Check(err)
	ts.Check(f.Close())
}

// cutScript sets the size of a file: cut FILE SIZE.
func cutScript(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("cut FILE SIZE")
	}
	size, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), size))
}
