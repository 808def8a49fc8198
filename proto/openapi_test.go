package proto_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dagbridge/dagbridge/proto"
	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
)

type schema struct {
	Properties map[string]any `json:"properties"`
}

// What is written by hand in the description has the fields that the protocol has, and every reference leads somewhere.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	text, err := proto.OpenAPI()
	require.NoError(t, err)
	var api struct {
		Paths       map[string]any    `json:"paths"`
		Definitions map[string]schema `json:"definitions"`
	}
	require.NoError(t, json.Unmarshal(text, &api))
	require.Contains(t, api.Paths, "/v1/jobs")
	require.Contains(t, api.Paths, "/v1/jobs:watch")
	for name, md := range map[string]protoreflect.MessageDescriptor{
		"v1JobFilter":         (*dagbridgev1.JobFilter)(nil).ProtoReflect().Descriptor(),
		"v1WatchJobsRequest":  (*dagbridgev1.WatchJobsRequest)(nil).ProtoReflect().Descriptor(),
		"v1WatchJobsResponse": (*dagbridgev1.WatchJobsResponse)(nil).ProtoReflect().Descriptor(),
		"v1Job":               (*dagbridgev1.Job)(nil).ProtoReflect().Descriptor(),
	} {
		var want []string
		for i := range md.Fields().Len() {
			want = append(want, md.Fields().Get(i).JSONName())
		}
		require.ElementsMatch(t, want, slices.Collect(maps.Keys(api.Definitions[name].Properties)), name)
	}
	require.Empty(t, api.Definitions["v1Json"].Properties, "any value")
	for i, part := range strings.Split(string(text), `"$ref":"#/definitions/`) {
		if name, _, _ := strings.Cut(part, `"`); i > 0 {
			require.Contains(t, api.Definitions, name)
		}
	}
}
