// JoinGroup, versions 0 to 9.
//
//	1: rebalance timeout, before that the session timeout counts. 2: throttle time. 4: a first join gets MEMBER_ID_REQUIRED and an id
//	(KIP-394). 5: group_instance_id (KIP-345). 6: flexible. 7: protocol type (KIP-559). 8: reason (KIP-800). 9: skip_assignment (KIP-814).
//
// The answer is held at the join barrier until all members of the group are back or the rebalance timeout has passed.
//
// Differences from Apache Kafka: a member that sends JoinGroup again while its first one waits has the first one answered with
// REBALANCE_IN_PROGRESS; Kafka never answers it. A group gives out at most 10,000 ids to members that have not joined yet, then
// GROUP_MAX_SIZE_REACHED. Of several protocols under one name the first counts.
package api

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"sluice/broker/coordinator/group"
	"sluice/broker/coordinator/machine"
)

// firstRebalanceTimeout is the version of JoinGroup that has a rebalance timeout.
const firstRebalanceTimeout = 1

// firstNullableProtocol is the version of JoinGroup from which on a protocol without a name is null in the answer.
const firstNullableProtocol = 7

func (h *Handlers) joinGroup(c *Context, request *kmsg.JoinGroupRequest) Reply {
	failed := func(memberID string, err error) *kmsg.JoinGroupResponse {
		response := request.ResponseKind().(*kmsg.JoinGroupResponse)
		response.Generation = -1
		response.MemberID, response.ErrorCode = memberID, c.code(err)
		return response
	}
	if request.Group == "" {
		return Respond(failed(request.MemberID, kerr.InvalidGroupID))
	}
	config := h.Config()
	if timeoutMs := int64(request.SessionTimeoutMillis); timeoutMs < config.GroupMinSessionTimeoutMs || timeoutMs > config.GroupMaxSessionTimeoutMs {
		return Respond(failed(request.MemberID, kerr.InvalidSessionTimeout))
	}
	if c.Version < firstRebalanceTimeout {
		request.RebalanceTimeoutMillis = request.SessionTimeoutMillis
	}
	for i := range request.Protocols {
		request.Protocols[i].Metadata = bytes.Clone(request.Protocols[i].Metadata)
	}
	c.Request.Release() // the answer may take minutes
	join := &group.JoinRequest{
		JoinGroupRequest: request,
		ClientID:         c.ClientID,
		ClientHost:       clientHost(c.RemoteAddr),
		RandomUUID:       randomUUID(),
	}
	reply, complete := c.Pending()
	h.parkGroup(request.Group, func(m *group.Machine, nowMs int64, t machine.Token) (machine.Effects, error) {
		return m.JoinGroup(nowMs, join, t)
	}, func(answer any, err error) {
		if err != nil {
			complete(failed("", err))
			return
		}
		response := answer.(*kmsg.JoinGroupResponse)
		if c.Version >= firstNullableProtocol && response.Protocol != nil && *response.Protocol == "" {
			response.Protocol = nil
		}
		complete(response)
	})
	return reply
}

// clientHost prints the address of a client as Kafka does.
func clientHost(a net.Addr) string {
	if a == nil {
		return "/"
	}
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		host = a.String()
	}
	return "/" + host
}

// randomUUID is a version 4 UUID in the form of RFC 9562, as the ids of members end with.
func randomUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
