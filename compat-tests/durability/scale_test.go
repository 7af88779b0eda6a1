package durability

import (
	"context"
	"flag"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"sluice/compat-tests/sluicetest"
)

var (
	scale  = flag.Int("partitions", 2000, "how many partitions TestScale makes")
	strict = flag.Bool("strict", false, "TestScale fails when 10,000 partitions take 5 s or more to open; on a machine with nothing else to do")
)

// TestScale makes many partitions with one record in each, and measures memory, the clean stop, the start after it, and the start after a kill.
func TestScale(t *testing.T) {
	p := sluicetest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cl := open(t, p.Address, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(10_000))
	adm := kadm.NewClient(cl)
	adm.SetTimeoutMillis(120_000)
	const perTopic = 100
	measure := func(what string, since time.Time) {
		t.Logf("%-34s %6.2f s, %4d MiB resident", what, time.Since(since).Seconds(), p.ResidentBytes()>>20)
	}
	begin := time.Now()
	for n := range *scale / perTopic {
		if _, err := adm.CreateTopic(ctx, perTopic, 1, nil, fmt.Sprintf("scale-%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	measure(fmt.Sprintf("created %d empty partitions", *scale), begin)
	begin = time.Now()
	for n := range *scale / perTopic {
		for partition := range int32(perTopic) {
			cl.Produce(ctx, &kgo.Record{Topic: fmt.Sprintf("scale-%d", n), Partition: partition, Value: []byte("a record")}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	measure("wrote a record to each", begin)
	cl.Close()

	stop := func(what string) {
		begin := time.Now()
		p.Signal(syscall.SIGTERM)
		if code := p.WaitEnd(2 * time.Minute); code != 0 {
			t.Fatalf("exit code %d: %s", code, p.Output())
		}
		t.Logf("%-34s %6.2f s", what, time.Since(begin).Seconds())
	}
	stop("stopped cleanly")
	start := func(what string) time.Duration {
		begin := time.Now()
		p.Launch()
		p.WaitReady()
		took := time.Since(begin)
		measure(what, begin)
		return took
	}
	clean := start("started after the clean stop")
	if mib := p.ResidentBytes() >> 20; mib >= 500 {
		t.Errorf("%d partitions take %d MiB when idle, want less than 500", *scale, mib)
	}
	if *strict && clean >= 5*time.Second {
		t.Errorf("%d partitions were opened in %v, want less than 5 s", *scale, clean)
	}
	p.Kill()
	start("started after a kill")
	if end := endOf(t, p.Address, "scale-0"); end != 1 {
		t.Errorf("partition 0 ends at %d, want 1", end)
	}
	stop("stopped cleanly again")
}
