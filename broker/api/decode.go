package api

import "github.com/twmb/franz-go/pkg/kmsg"

// decode reads the body of a request, whose version is set.
func decode(request kmsg.Request, body []byte) error { return request.ReadFrom(body) }
