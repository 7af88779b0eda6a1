package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/server"
)

// Null is an error where the schema has none, and a value where it has one. Compact and old encodings, lists, texts and bytes.
func TestDecode_Null(t *testing.T) {
	for _, test := range []struct {
		name    string
		request kmsg.Request
		version int16
		body    []byte
		ok      bool
	}{
		{"topics of DeleteTopics", kmsg.NewPtrDeleteTopicsRequest(), 1, []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1}, false},
		{"topics of DeleteTopics, compact", kmsg.NewPtrDeleteTopicsRequest(), 4, []byte{0, 0, 0, 0, 1, 0}, false},
		{"topics of Metadata 0", kmsg.NewPtrMetadataRequest(), 0, []byte{0xff, 0xff, 0xff, 0xff}, false},
		{"topics of Metadata 1", kmsg.NewPtrMetadataRequest(), 1, []byte{0xff, 0xff, 0xff, 0xff}, true},
		{"topics of Metadata 9", kmsg.NewPtrMetadataRequest(), 9, []byte{0, 1, 0, 0, 0}, true},
		{"name in Metadata 9", kmsg.NewPtrMetadataRequest(), 9, []byte{2, 0, 0, 1, 0, 0, 0}, false},
		{"name in Metadata 12", kmsg.NewPtrMetadataRequest(), 12, append(append([]byte{2}, make([]byte, 16)...), 0, 0, 1, 0, 0), true},
		{"group of Heartbeat", kmsg.NewPtrHeartbeatRequest(), 0, []byte{0xff, 0xff, 0, 0, 0, 1, 0, 1, 'm'}, false},
		{"instance of Heartbeat", kmsg.NewPtrHeartbeatRequest(), 3, []byte{0, 1, 'g', 0, 0, 0, 1, 0, 1, 'm', 0xff, 0xff}, true},
		{"transactional id of Produce", kmsg.NewPtrProduceRequest(), 3, []byte{0xff, 0xff, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}, true},
		{"topics of Produce", kmsg.NewPtrProduceRequest(), 3, []byte{0xff, 0xff, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.request.SetVersion(test.version)
			if err := decode(test.request, &server.Request{Body: test.body}); (err == nil) != test.ok {
				t.Errorf("error %v, want one: %v", err, !test.ok)
			}
		})
	}
}
