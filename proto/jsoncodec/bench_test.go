package jsoncodec_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

// Beside protojson, which knows no Json.
func BenchmarkJob(b *testing.B) {
	job := &dagbridgev1.Job{
		Id: "0196f3c4-8a00-7000-8000-000000000001", Key: &dagbridgev1.TaskKey{Deployment: "default", Orchestrator: "airflow", Workflow: "risk", Run: "manual__1", Task: "train"},
		TryNumber: 1, Owner: "airflow", Cluster: "hpc", NativeId: "123456", State: dagbridgev1.Job_RUNNING, CreateTime: timestamppb.Now(), StartTime: timestamppb.Now(), Labels: map[string]string{"team": "x"},
	}
	text, err := jsoncodec.Marshal(job)
	require.NoError(b, err)
	b.Run("marshal", func(b *testing.B) {
		for b.Loop() {
			_, _ = jsoncodec.Marshal(job)
		}
	})
	b.Run("marshal-protojson", func(b *testing.B) {
		for b.Loop() {
			_, _ = protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(job)
		}
	})
	b.Run("unmarshal", func(b *testing.B) {
		for b.Loop() {
			_ = jsoncodec.Unmarshal(text, &dagbridgev1.Job{})
		}
	})
	b.Run("unmarshal-protojson", func(b *testing.B) {
		for b.Loop() {
			_ = protojson.Unmarshal(text, &dagbridgev1.Job{})
		}
	})
}
