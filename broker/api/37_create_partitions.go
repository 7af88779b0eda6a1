package api

// CreatePartitions (key 37): more partitions for topics that exist.
//
// Versions 0–3: 1 as 0; 2 is flexible; 3 may answer THROTTLING_QUOTA_EXCEEDED.
//
// Differs from Apache Kafka: answers are in the order of the request.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/replication/metadata"
)

func (h *Handlers) createPartitions(c *Context, request *kmsg.CreatePartitionsRequest) Reply {
	return h.change(c, request.TimeoutMillis, metadata.CreatePartitions(request), func(code int16, message *string) kmsg.Response {
		response := kmsg.NewPtrCreatePartitionsResponse()
		for i := range request.Topics {
			t := kmsg.NewCreatePartitionsResponseTopic()
			t.Topic, t.ErrorCode, t.ErrorMessage = request.Topics[i].Topic, code, message
			response.Topics = append(response.Topics, t)
		}
		return response
	})
}
