package connect

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sluice/cmd/sluice/cli/exit"
)

const contextsFile = `current=laptop
laptop.bootstrap-server=localhost:9192
prod.bootstrap-server = kafka-1:9093, kafka-2:9093
prod.tls-ca = ca.pem
prod.sasl-mechanism = SCRAM-SHA-512
prod.sasl-user = alice
prod.sasl-password-file = /secrets/prod
`

// TestTarget decides between flags, environment and contexts. A context's login goes only to that context's brokers.
func TestTarget(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "contexts.properties")
	if err := os.WriteFile(file, []byte(contextsFile), 0o600); err != nil {
		t.Fatal(err)
	}
	prod := Security{TLS: true, CA: filepath.Join(dir, "ca.pem"), Mechanism: "SCRAM-SHA-512", User: "alice", PasswordFile: "/secrets/prod"}
	for _, test := range []struct {
		name        string
		flags       Flags
		environment map[string]string
		want        Target
	}{
		{"the current context", Flags{}, nil, Target{Seeds: []string{"localhost:9192"}, Source: "context laptop"}},
		{"no file", Flags{}, map[string]string{"SLUICE_CONTEXTS": filepath.Join(dir, "none")}, Target{Seeds: []string{DefaultAddress}, Source: "the default"}},
		{"the environment's address, nothing of the current context", Flags{}, map[string]string{"SLUICE_BOOTSTRAP": "a:1,b:2"}, Target{Seeds: []string{"a:1", "b:2"}, Source: "$SLUICE_BOOTSTRAP"}},
		{"-b, nothing of the environment", Flags{Bootstrap: []string{"c:3"}}, map[string]string{"SLUICE_BOOTSTRAP": "a:1"}, Target{Seeds: []string{"c:3"}, Source: "--bootstrap-server"}},
		{"a context by flag", Flags{Context: "prod"}, map[string]string{"SLUICE_BOOTSTRAP": "a:1"}, Target{Seeds: []string{"kafka-1:9093", "kafka-2:9093"}, Source: "context prod", Security: prod}},
		{"a context by environment", Flags{}, map[string]string{"SLUICE_CONTEXT": "prod"}, Target{Seeds: []string{"kafka-1:9093", "kafka-2:9093"}, Source: "context prod", Security: prod}},
		{"another address in a named context", Flags{Context: "prod", Bootstrap: []string{"kafka-3:9093"}}, nil, Target{Seeds: []string{"kafka-3:9093"}, Source: "--bootstrap-server", Security: prod}},
		{"a login by flags", Flags{Bootstrap: []string{"c:3"}, SASLUser: "bob"}, map[string]string{"SLUICE_SASL_PASSWORD": "secret"},
			Target{Seeds: []string{"c:3"}, Source: "--bootstrap-server", Security: Security{Mechanism: "PLAIN", User: "bob", Password: "secret", passwordFromEnvironment: true}}},
		{"a TLS flag means TLS", Flags{Bootstrap: []string{"c:3"}, TLSName: "kafka"}, nil, Target{Seeds: []string{"c:3"}, Source: "--bootstrap-server", Security: Security{TLS: true, ServerName: "kafka"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{"SLUICE_BOOTSTRAP", "SLUICE_CONTEXT", "SLUICE_SASL_PASSWORD"} {
				t.Setenv(name, test.environment[name])
			}
			t.Setenv("SLUICE_CONTEXTS", file)
			if other := test.environment["SLUICE_CONTEXTS"]; other != "" {
				t.Setenv("SLUICE_CONTEXTS", other)
			}
			got, err := test.flags.Target()
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

// TestReadContexts_RefusesWhatItDoesNotKnow checks that a misspelt key is not a connection without what it said.
func TestReadContexts_RefusesWhatItDoesNotKnow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "contexts.properties")
	t.Setenv("SLUICE_CONTEXTS", file)
	for content, want := range map[string]string{
		"prod.tls-cap=x":            "prod.tls-cap is not a setting",
		"bootstrap-server=x":        "bootstrap-server is not a setting",
		"prod.tls=maybe":            `"maybe" is neither true nor false`,
		"prod.sasl-user=\\u00":      "line 1",
		"prod.sasl-password=secret": "prod.sasl-password is not a setting",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadContexts(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want the file and %q", content, err, want)
		}
	}
	if err := os.WriteFile(file, []byte("a.tls=true\na.bootstrap-server=,"), 0o600); err != nil {
		t.Fatal(err)
	}
	contexts, err := ReadContexts()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := contexts.Target("a"); err == nil {
		t.Error("a context without an address was taken")
	}
	if _, err := contexts.Target("b"); exit.Code(err) != exit.NotFound {
		t.Errorf("a context that is not there: %v", err)
	}
}
