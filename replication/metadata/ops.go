package metadata

import "github.com/twmb/franz-go/pkg/kmsg"

// CreateTopics creates topics; the response is a *kmsg.CreateTopicsResponse.
func CreateTopics(req *kmsg.CreateTopicsRequest) Op { panic("not written yet") }

// DeleteTopics deletes topics by name or id; the response is a *kmsg.DeleteTopicsResponse.
func DeleteTopics(req *kmsg.DeleteTopicsRequest) Op { panic("not written yet") }

// CreatePartitions adds partitions; the response is a *kmsg.CreatePartitionsResponse.
func CreatePartitions(req *kmsg.CreatePartitionsRequest) Op { panic("not written yet") }

// IncrementalAlterConfigs changes single configs; the response is a *kmsg.IncrementalAlterConfigsResponse.
func IncrementalAlterConfigs(req *kmsg.IncrementalAlterConfigsRequest) Op { panic("not written yet") }

// AlterConfigs replaces all configs of resources; the response is a *kmsg.AlterConfigsResponse.
func AlterConfigs(req *kmsg.AlterConfigsRequest) Op { panic("not written yet") }

// RegisterBroker registers a broker, fenced; the response is a *kmsg.BrokerRegistrationResponse.
func RegisterBroker(req *kmsg.BrokerRegistrationRequest) Op { panic("not written yet") }

// BrokerHeartbeat keeps a broker's session alive and moves it between fenced, unfenced and controlled shutdown; the response is a
// *kmsg.BrokerHeartbeatResponse.
func BrokerHeartbeat(req *kmsg.BrokerHeartbeatRequest) Op { panic("not written yet") }

// UnregisterBroker removes a broker's registration; the response is a *kmsg.UnregisterBrokerResponse.
func UnregisterBroker(req *kmsg.UnregisterBrokerRequest) Op { panic("not written yet") }

// FenceStaleBrokers fences the brokers whose sessions have expired; it has no response.
func FenceStaleBrokers() Op { panic("not written yet") }

// ElectLeaders elects preferred or unclean leaders; the response is a *kmsg.ElectLeadersResponse.
func ElectLeaders(req *kmsg.ElectLeadersRequest) Op { panic("not written yet") }

// AllocateProducerIDs hands a block of producer ids to a broker; the response is a *kmsg.AllocateProducerIDsResponse.
func AllocateProducerIDs(req *kmsg.AllocateProducerIDsRequest) Op { panic("not written yet") }
