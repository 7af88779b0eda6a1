package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answer is what a broker says of its cluster.
type answer struct {
	clusterID  string
	controller int32
	brokers    []member
	topics     []kmsg.MetadataResponseTopic

	// settings are those of the broker that the address should lead to, by key; settingsErr is why there are none.
	settings    map[string]string
	settingsErr error
}

type member struct {
	id   int32
	host string
	port int32
}

// errHTTP is the answer of a web server.
var errHTTP = errors.New("it speaks HTTP")

// apisBytesMax bounds the answer to ApiVersions, in bytes; Kafka's has under one thousand.
const apisBytesMax = 64 << 10

// askAPIs asks on a fresh connection for the APIs, in the oldest version, which every broker answers.
func askAPIs(conn net.Conn, deadline time.Time) ([]kmsg.ApiVersionsResponseApiKey, error) {
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	request := kmsg.NewPtrApiVersionsRequest()
	if _, err := conn.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("sluice")).AppendRequest(nil, request, 1)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("it closes the connection when asked for its APIs")
		}
		return nil, err
	}
	if string(size[:]) == "HTTP" {
		return nil, errHTTP
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > apisBytesMax {
		return nil, fmt.Errorf("its answer starts with the bytes % x, which are no size of an answer", size)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, fmt.Errorf("its answer breaks off: %w", err)
	}
	response := kmsg.NewPtrApiVersionsResponse()        // of version 0, as the request
	if err := response.ReadFrom(body[4:]); err != nil { // after the correlation id
		return nil, fmt.Errorf("its answer cannot be decoded: %w", err)
	}
	return response.ApiKeys, kerr.ErrorForCode(response.ErrorCode)
}

func offers(apis []kmsg.ApiVersionsResponseApiKey, key kmsg.Key) bool {
	for _, api := range apis {
		if api.ApiKey == key.Int16() {
			return true
		}
	}
	return false
}

func askMetadata(ctx context.Context, b *kgo.Broker) (*answer, error) {
	request := kmsg.NewPtrMetadataRequest() // no topics named: all of them
	response, err := b.Request(ctx, request)
	if err != nil {
		return nil, err
	}
	m, ok := response.(*kmsg.MetadataResponse)
	if !ok {
		return nil, fmt.Errorf("the answer to Metadata is a %T", response)
	}
	a := &answer{controller: m.ControllerID, topics: m.Topics}
	if m.ClusterID != nil {
		a.clusterID = *m.ClusterID
	}
	for _, b := range m.Brokers {
		a.brokers = append(a.brokers, member{b.NodeID, b.Host, b.Port})
	}
	return a, nil
}

// The settings that diagnose compares with the number of brokers.
const (
	offsetsReplication     = "offsets.topic.replication.factor"
	transactionReplication = "transaction.state.log.replication.factor"
	defaultReplication     = "default.replication.factor"
	minInSyncReplicas      = "min.insync.replicas"
)

// errOtherBroker is the answer of a broker that has another id: a broker tells only its own settings.
var errOtherBroker = errors.New("another broker answers there")

func askSettings(ctx context.Context, b *kgo.Broker, id int32) (map[string]string, error) {
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(id))
	resource.ConfigNames = []string{offsetsReplication, transactionReplication, defaultReplication, minInSyncReplicas}
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.Resources = append(request.Resources, resource)
	response, err := b.Request(ctx, request)
	if err != nil {
		return nil, err
	}
	described, ok := response.(*kmsg.DescribeConfigsResponse)
	if !ok || len(described.Resources) != 1 {
		return nil, fmt.Errorf("the answer to DescribeConfigs is not one resource")
	}
	answered := described.Resources[0]
	if answered.ErrorCode == kerr.InvalidRequest.Code {
		return nil, errOtherBroker
	}
	if err := kerr.ErrorForCode(answered.ErrorCode); err != nil {
		return nil, err
	}
	settings := map[string]string{}
	for _, config := range answered.Configs {
		if config.Value != nil {
			settings[config.Name] = *config.Value
		}
	}
	return settings, nil
}
