// Package output prints results: tables for people, JSON for scripts.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sluice/cmd/sluice/cli/exit"
)

// Format is what -o chose. The zero value is text.
type Format string

// The formats.
const (
	Text Format = "text"
	JSON Format = "json"
)

// AddFlag gives a command the flag -o.
func (f *Format) AddFlag(cmd *cobra.Command) {
	*f = Text
	cmd.Flags().VarP(f, "output", "o", "print text for people, or json for scripts")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// String, Set and Type make Format a flag.
func (f *Format) String() string { return string(*f) }

// Set refuses what is no format.
func (f *Format) Set(value string) error {
	switch Format(value) {
	case Text, JSON:
		*f = Format(value)
		return nil
	}
	return exit.Usagef("want text or json")
}

// Type is the word for the value in help texts.
func (f *Format) Type() string { return "FORMAT" }

// Print writes a result as JSON, or by the function for people, which writes to memory and need not check each write.
func (f *Format) Print(w io.Writer, result any, text func(w io.Writer) error) error {
	if *f == JSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(result)
	}
	var b bytes.Buffer
	if err := text(&b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Table is rows of columns. A column is as wide as its widest cell; columns of numbers are set to the right.
type Table struct {
	header []string
	rows   [][]string
	right  []bool
}

// NewTable starts a table with the names of its columns.
func NewTable(header ...string) *Table {
	return &Table{header: header, right: make([]bool, len(header))}
}

// Row adds a row. Numbers make their column a column of numbers; an empty cell prints as -.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(t.header))
	for i, cell := range cells {
		switch cell.(type) {
		case int, int16, int32, int64, float64:
			t.right[i] = true
		}
		if row[i] = Clean(fmt.Sprint(cell)); row[i] == "" {
			row[i] = "-"
		}
	}
	t.rows = append(t.rows, row)
}

// Write prints the table, its header too where there are no rows.
func (t *Table) Write(w io.Writer) error {
	all := append([][]string{t.header}, t.rows...)
	widths := make([]int, len(t.header))
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range all {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.right[i] {
				line.WriteString(pad + cell)
			} else {
				line.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Clean replaces control characters, so that a name or a client id that came over the network cannot drive the terminal.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\ufffd'
		}
		return r
	}, s)
}

// IsTerminal reports whether a stream of the program is a terminal. The null device counts as one: what is shown there disturbs nobody.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	stat, err := f.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}

// Bytes prints a number of bytes for people, in powers of 1000.
func Bytes(n float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if n < 1000 {
			if unit == "B" {
				return fmt.Sprintf("%.0f B", n)
			}
			return fmt.Sprintf("%.1f %s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.1f TB", n)
}
