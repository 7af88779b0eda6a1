package group

import (
	"testing"

	"sluice/broker/coordinator/machine"
)

// The hashes and partitions are what Java computes.
func TestJavaHash(t *testing.T) {
	for _, test := range []struct {
		group           string
		hash, partition int32
	}{
		{"", 0, 0},
		{"a", 97, 47},
		{"group", 98629247, 47},
		{"my-consumer-group", 1513705513, 13},
		{"console-consumer-12345", 158455506, 6},
		{"polygenelubricants", -2147483648, 0}, // has no absolute value
		{"ä", 228, 28},
		{"😀", 1772899, 49},
		{"zürich-ß-€", 30582927, 27},
	} {
		if got := machine.JavaHash(test.group); got != test.hash {
			t.Errorf("hash of %q is %d, want %d", test.group, got, test.hash)
		}
		if got := Partition(test.group, 50); got != test.partition {
			t.Errorf("partition of %q is %d, want %d", test.group, got, test.partition)
		}
	}
}

// Ties between protocols are broken by their order in a Java HashMap of the votes, as in Kafka.
func TestJavaMapMax(t *testing.T) {
	names := []string{"sticky", "roundrobin", "cooperative-sticky", "range", "a", "b", "protocol-1"}
	votes := map[string]int{}
	for _, name := range names {
		votes[name] = 1
	}
	// The order that Java prints the key set in.
	for _, want := range []string{"a", "b", "sticky", "range", "roundrobin", "protocol-1", "cooperative-sticky"} {
		if got := javaMapMax(names, votes); got != want {
			t.Errorf("%q wins, want %q", got, want)
		}
		votes[want] = 0
	}
	votes["range"] = 2
	if got := javaMapMax(names, votes); got != "range" {
		t.Errorf("%q wins over two votes for range", got)
	}
}
