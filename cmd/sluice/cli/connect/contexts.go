package connect

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice/broker/config"
	"sluice/cmd/sluice/cli/exit"
)

// Contexts are named connections from a file of the person's own. The file is in properties form, NAME.KEY=VALUE, as a broker's settings are:
// one syntax for everything that Sluice reads, and none that needs another parser in the program.
type Contexts struct {
	// Path is where the file is, or would be.
	Path string
	// Current is the context that is used when nothing names a cluster; empty for none.
	Current string

	properties map[string]string
}

// contextKeys are what a context can say, in the words of the flags.
var contextKeys = map[string]func(t *Target, value string) error{
	"bootstrap-server":   func(t *Target, v string) error { t.Seeds = splitAddresses(v); return nil },
	"tls":                func(t *Target, v string) error { return parseBool(&t.Security.TLS, v) },
	"tls-ca":             func(t *Target, v string) error { t.Security.CA = v; return nil },
	"tls-cert":           func(t *Target, v string) error { t.Security.Cert = v; return nil },
	"tls-key":            func(t *Target, v string) error { t.Security.Key = v; return nil },
	"tls-server-name":    func(t *Target, v string) error { t.Security.ServerName = v; return nil },
	"tls-insecure":       func(t *Target, v string) error { return parseBool(&t.Security.Insecure, v) },
	"sasl-mechanism":     func(t *Target, v string) error { t.Security.Mechanism = v; return nil },
	"sasl-user":          func(t *Target, v string) error { t.Security.User = v; return nil },
	"sasl-password-file": func(t *Target, v string) error { t.Security.PasswordFile = v; return nil },
}

// ContextKeys are the keys of a context, sorted.
func ContextKeys() []string { return slices.Sorted(maps.Keys(contextKeys)) }

func parseBool(to *bool, value string) (err error) {
	if *to, err = strconv.ParseBool(value); err != nil {
		return fmt.Errorf("%q is neither true nor false", value)
	}
	return nil
}

// ContextsPath is $SLUICE_CONTEXTS, or contexts.properties in the folder sluice of where this system keeps settings; empty when there is neither.
func ContextsPath() string {
	if path := os.Getenv("SLUICE_CONTEXTS"); path != "" {
		return path
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "sluice", "contexts.properties")
}

// ReadContexts reads the contexts file and checks all of it. A file that does not exist has no contexts.
func ReadContexts() (Contexts, error) {
	c := Contexts{Path: ContextsPath()}
	if c.Path == "" {
		return c, nil
	}
	file, err := os.Open(c.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("cannot read the contexts: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	if c.properties, err = config.ParseProperties(file); err != nil {
		return c, fmt.Errorf("%s: %w", c.Path, err)
	}
	c.Current = c.properties["current"]
	delete(c.properties, "current")
	for _, property := range slices.Sorted(maps.Keys(c.properties)) {
		_, key, ok := strings.Cut(property, ".")
		set, known := contextKeys[key]
		if !ok || !known {
			return c, fmt.Errorf("%s: %s is not a setting: want current=NAME, or NAME.KEY=VALUE with one of the keys %s", c.Path, property, strings.Join(ContextKeys(), ", "))
		}
		if err := set(&Target{}, c.properties[property]); err != nil {
			return c, fmt.Errorf("%s: %s: %w", c.Path, property, err)
		}
	}
	return c, nil
}

// Names are the names of the contexts, sorted.
func (c Contexts) Names() []string {
	names := map[string]bool{}
	for property := range c.properties {
		name, _, _ := strings.Cut(property, ".")
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Target is the cluster of a context. Paths in the file are relative to its folder.
func (c Contexts) Target(name string) (Target, error) {
	t := Target{Seeds: []string{DefaultAddress}, Source: "context " + name}
	if !slices.Contains(c.Names(), name) {
		return t, exit.With(exit.NotFound, fmt.Errorf("there is no context %s in %s, which has: %s", name, c.Path, strings.Join(c.Names(), ", ")))
	}
	for property, value := range c.properties {
		if of, key, _ := strings.Cut(property, "."); of == name {
			if err := contextKeys[key](&t, value); err != nil {
				return t, fmt.Errorf("%s: %s: %w", c.Path, property, err)
			}
		}
	}
	if len(t.Seeds) == 0 {
		return t, fmt.Errorf("%s: %s.bootstrap-server is empty: want HOST:PORT", c.Path, name)
	}
	for _, path := range []*string{&t.Security.CA, &t.Security.Cert, &t.Security.Key, &t.Security.PasswordFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(filepath.Dir(c.Path), *path)
		}
	}
	t.Security.TLS = t.Security.TLS || t.Security.CA != "" || t.Security.Cert != "" || t.Security.ServerName != "" || t.Security.Insecure
	return t, nil
}
