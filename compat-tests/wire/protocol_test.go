package wire

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/compat-tests/sluicetest"
)

func apiVersions(name, version string) *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = name, version
	return req
}

// TestV01_ApiVersions: a version that the broker does not know is answered in version 0, with the range that it knows, on a connection that lives on.
func TestV01_ApiVersions(t *testing.T) {
	c := sluicetest.Dial(t, broker(t))
	// Key 18, version 127, correlation id 9, client id "x", an empty tag section; name and version, and one tagged field that nobody knows.
	future := []byte{0, 18, 0, 127, 0, 0, 0, 9, 0, 1, 'x', 0, 5, 'n', 'a', 'm', 'e', 2, '1', 1, 99, 1, 0}
	if _, err := c.Write(append([]byte{0, 0, 0, byte(len(future))}, future...)); err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 4096)
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	n, err := c.Read(frame)
	if err != nil || n < 14 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	resp := kmsg.NewPtrApiVersionsResponse()
	if err := resp.ReadFrom(frame[8:n]); err != nil {
		t.Fatalf("the answer is not of version 0: %v", err)
	}
	if frame[7] != 9 || resp.ErrorCode != unsupportedVersion || len(resp.ApiKeys) == 0 {
		t.Errorf("correlation id %d, error %d, %d keys", frame[7], resp.ErrorCode, len(resp.ApiKeys))
	}
	for _, k := range resp.ApiKeys {
		if k.ApiKey == 18 && (k.MinVersion != 0 || k.MaxVersion < 4) {
			t.Errorf("ApiVersions %d to %d", k.MinVersion, k.MaxVersion)
		}
	}
	for _, version := range []int16{3, 0, 4} {
		if resp := sluicetest.Ask[*kmsg.ApiVersionsResponse](c, apiVersions("wire", "1.0"), version); resp.ErrorCode != none {
			t.Errorf("version %d: error %d", version, resp.ErrorCode)
		}
	}
	for _, name := range []string{"", "-bad"} {
		if resp := sluicetest.Ask[*kmsg.ApiVersionsResponse](c, apiVersions(name, "1"), 3); resp.ErrorCode != invalidRequest {
			t.Errorf("software name %q: error %d, want %d", name, resp.ErrorCode, invalidRequest)
		}
		if resp := sluicetest.Ask[*kmsg.ApiVersionsResponse](c, apiVersions("wire", name), 3); resp.ErrorCode != invalidRequest {
			t.Errorf("software version %q: error %d, want %d", name, resp.ErrorCode, invalidRequest)
		}
	}
}

// TestV02_ProduceFromVersionZero: the range of Produce begins at 0, or librdkafka sends without compression; a real version 0 ends the connection.
func TestV02_ProduceFromVersionZero(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	resp := sluicetest.Ask[*kmsg.ApiVersionsResponse](c, apiVersions("wire", "1.0"), 3)
	found := false
	for _, k := range resp.ApiKeys {
		if k.ApiKey == int16(kmsg.Produce) {
			found = true
			if k.MinVersion != 0 {
				t.Errorf("Produce begins at version %d", k.MinVersion)
			}
		}
	}
	if !found {
		t.Error("Produce is not advertised")
	}
	for _, version := range []int16{0, 1, 2} {
		c := sluicetest.Dial(t, address)
		c.Send(produceRequest(1), version)
		c.WantClosed(5 * time.Second)
	}
}

// TestV03_AnswersInOrder: replies come in request order, also when a later one could be made first; acks=0 gets none.
func TestV03_AnswersInOrder(t *testing.T) {
	address := broker(t)
	c := sluicetest.Dial(t, address)
	topic := fresh("v03")
	createTopic(t, c, topic, 1)

	slow := fetchRequest(topic, [16]byte{}, 0, 0)
	slow.MaxWaitMillis = 1500
	start := time.Now()
	c.Send(slow, 12)
	c.Send(kmsg.NewPtrMetadataRequest(), 12)
	c.Send(apiVersions("wire", "1.0"), 3)
	for _, want := range []kmsg.Key{kmsg.Fetch, kmsg.Metadata, kmsg.ApiVersions} {
		if got := c.Receive(); got.Key() != int16(want) {
			t.Fatalf("%s before %s", kmsg.NameForKey(got.Key()), want.Name())
		}
		if took := time.Since(start); want == kmsg.Fetch && took < time.Second {
			t.Errorf("the empty fetch waited only %v", took)
		}
	}

	// Produce with acks=0 has no answer: the next one is that of Metadata.
	quiet := sluicetest.Dial(t, address)
	sendSilently(t, quiet, produceRequest(0, part{topic, 0, batch(t, plain(), values(1000, "silent")...)}))
	metadata(quiet, 12, false, topic)
	if end := listOffset(quiet, topic, 0, latest).Offset; end != 1 {
		t.Errorf("end offset %d after one record with acks=0", end)
	}

	lost := sluicetest.Dial(t, address)
	sendSilently(t, lost, produceRequest(0, part{fresh("nowhere"), 0, batch(t, plain(), values(1000, "lost")...)}))
	lost.WantClosed(5 * time.Second)
}

// sendSilently sends a request that gets no answer, outside of the connection's own count of them.
func sendSilently(t *testing.T, c *sluicetest.Raw, req kmsg.Request) {
	t.Helper()
	req.SetVersion(9)
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID("wire"))
	if _, err := c.Write(formatter.AppendRequest(nil, req, 1<<20)); err != nil {
		t.Fatal(err)
	}
}
