package diff

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	only         = flag.String("only", "", "run only scenarios whose name contains this")
	writePending = flag.Bool("write-pending", false, "write pending.md anew")
	verbose      = flag.Bool("all-differences", false, "print every difference, not the first forty of a scenario")
)

// TestSameAnswers is the differential test.
func TestSameAnswers(t *testing.T) {
	started := time.Now()
	addresses := startBrokers(t)
	t.Logf("brokers after %v", time.Since(started).Round(time.Millisecond))
	prepare(t, addresses)
	excuses, err := readExcuses(differencesFile)
	if err != nil {
		t.Fatal(err)
	}
	itself := os.Getenv("DIFF_ITSELF") != ""
	if itself {
		excuses = nil
	}
	report := newReport()
	all := scenarios()
	for _, key := range unasked() {
		if itself {
			break // a second Apache Kafka serves what the subjects are not written for yet
		}
		t.Errorf("no scenario takes the fields of %s to their bounds", kmsg.NameForKey(key))
	}
	t.Run("scenarios", func(t *testing.T) { runAll(t, all, addresses, report, excuses) })

	t.Logf("%d scenarios, %d answers compared, %v, in %v", len(all), report.steps, report.answers, time.Since(started).Round(time.Second))
	for _, name := range report.slowest()[:min(10, len(report.silent))] {
		t.Logf("%d steps without an answer: %s", report.silent[name], name)
	}
	if *only != "" || itself {
		return
	}
	judgePending(t)
	for _, e := range excuses {
		if e.used == 0 {
			t.Errorf("%s %s: nothing differs there any more: take the entry out", differencesFile, e.id)
		}
	}
}

// prepare learns what the two serve, and waits until their group coordinators do.
func prepare(t *testing.T, addresses [2]string) {
	t.Helper()
	var both [2]map[int16]versions
	for i, address := range addresses {
		var err error
		if both[i], err = askVersions(address); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(waitForGroups(address), waitForProducerIDs(address), waitForTransactions(address)); err != nil {
			t.Fatal(err)
		}
	}
	served.Store(&both)
}

func runAll(t *testing.T, all []Scenario, addresses [2]string, report *report, excuses []*excuse) {
	random := make([]byte, 3)
	_, _ = rand.Read(random)
	run := func(t *testing.T, i int, s Scenario) {
		r := newRun(t, s.Name, fmt.Sprintf("d%s-%03d-", hex.EncodeToString(random), i), addresses, report)
		defer r.close()
		s.Steps(r)
		judge(t, report.of(s.Name), excuses)
	}
	for i, s := range all {
		if s.Alone && strings.Contains(s.Name, *only) {
			t.Run(s.Name, func(t *testing.T) { run(t, i, s) })
		}
	}
	for i, s := range all {
		if !s.Alone && strings.Contains(s.Name, *only) {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				run(t, i, s)
			})
		}
	}
}

// judge fails the test for each difference that no entry excuses.
func judge(t *testing.T, list []found, excuses []*excuse) {
	t.Helper()
	shown := 0
next:
	for _, f := range list {
		for _, e := range excuses {
			if e.covers(f) {
				continue next
			}
		}
		if shown++; shown <= 40 || *verbose {
			t.Errorf("%s: %s\n\tkafka:  %s\n\tsluice: %s", f.step, f.at, f.values[0], f.values[1])
		}
	}
	if shown > 40 && !*verbose {
		t.Errorf("and %d more", shown-40)
	}
}

// TestDifferencesFile holds the entries against their rules: none excuses an error code.
func TestDifferencesFile(t *testing.T) {
	excuses, err := readExcuses(differencesFile)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range excuses {
		if seen[e.id] {
			t.Errorf("%s is there twice", e.id)
		}
		seen[e.id] = true
	}
	for _, bad := range []*excuse{
		{field: "FetchResponse.ErrorCode", reason: "because"}, {field: "FetchResponse.*", reason: "because"}, {field: "outcome", reason: "because"},
		{field: "FetchResponse.SessionID"}, {field: "ProduceResponse.Topics[].Partitions[].ErrorCode", refusal: "87", reason: "because"},
	} {
		if bad.check() == nil {
			t.Errorf("%+v is taken", bad.field)
		}
	}
}

// judgePending compares pending.md with what it should be, or writes it.
func judgePending(t *testing.T) {
	t.Helper()
	page := pendingPage()
	if *writePending {
		if err := os.WriteFile(pendingFile, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(pendingFile); err != nil || string(is) != page {
		t.Errorf("%s is stale (%v): `make diff` writes it", pendingFile, err)
	}
}
