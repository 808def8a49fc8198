package jsoncodec_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
)

var jsonTexts = rapid.SampledFrom([]string{
	"null", "1", "3.0", "-0", "1e400", "12345678901234567890123", `"x\u00e9\ud83d\ude00"`, "true", "{}", "[]", "[ 1 , {\"a\" : null} ]", `{"b":1, "a":{"a":[[]]}}`,
})

// fill sets random fields of any message of the protocol.
func fill(t *rapid.T, m protoreflect.Message, depth int) {
	switch m := m.Interface().(type) {
	case *dagbridgev1.Json:
		m.Text = jsonTexts.Draw(t, "json")
		return
	case *timestamppb.Timestamp:
		m.Seconds = rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds")
		m.Nanos = rapid.Int32Range(0, 999999999).Draw(t, "nanos")
		return
	case *durationpb.Duration:
		m.Seconds = rapid.Int64Range(0, 315576000000).Draw(t, "seconds")
		m.Nanos = rapid.Int32Range(0, 999999999).Draw(t, "nanos")
		return
	}
	for i := range m.Descriptor().Fields().Len() {
		fd := m.Descriptor().Fields().Get(i)
		if depth > 4 || !rapid.Bool().Draw(t, "set") {
			continue
		}
		n := rapid.IntRange(0, 2).Draw(t, "n")
		switch {
		case fd.IsMap():
			for range n {
				key := protoreflect.ValueOfString(rapid.String().Draw(t, "key")).MapKey()
				if fd.MapValue().Kind() == protoreflect.MessageKind {
					fill(t, m.Mutable(fd).Map().Mutable(key).Message(), depth+1)
				} else {
					m.Mutable(fd).Map().Set(key, scalar(t, fd.MapValue()))
				}
			}
		case fd.IsList():
			for range n {
				if fd.Kind() == protoreflect.MessageKind {
					fill(t, m.Mutable(fd).List().AppendMutable().Message(), depth+1)
				} else {
					m.Mutable(fd).List().Append(scalar(t, fd))
				}
			}
		case fd.Kind() == protoreflect.MessageKind:
			fill(t, m.Mutable(fd).Message(), depth+1)
		default:
			m.Set(fd, scalar(t, fd))
		}
	}
}

func scalar(t *rapid.T, fd protoreflect.FieldDescriptor) protoreflect.Value {
	switch fd.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(rapid.String().Draw(t, "string"))
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, "bool"))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(t, "int32"))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64().Draw(t, "int64"))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(rapid.Float64().Draw(t, "double"))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(rapid.IntRange(0, 20).Draw(t, "enum")))
	}
	t.Fatalf("%s is of kind %s, which the codec does not write", fd.FullName(), fd.Kind())
	return protoreflect.Value{}
}

// messages are all messages of the protocol.
func messages(yield func(protoreflect.MessageDescriptor)) {
	for _, file := range []protoreflect.FileDescriptor{
		dagbridgev1.File_dagbridge_v1_task_proto, dagbridgev1.File_dagbridge_v1_job_proto,
		dagbridgev1.File_dagbridge_v1_workflow_proto, dagbridgev1.File_dagbridge_v1_bridge_proto,
	} {
		for i := range file.Messages().Len() {
			yield(file.Messages().Get(i))
		}
	}
}

func draw(t *rapid.T) proto.Message {
	var all []protoreflect.MessageDescriptor
	messages(func(md protoreflect.MessageDescriptor) { all = append(all, md) })
	m := newMessage(rapid.SampledFrom(all).Draw(t, "type"))
	fill(t, m.ProtoReflect(), 0)
	return m
}

// What is written can be read again, and is valid JSON; the same each time.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := draw(t)
		text, err := jsoncodec.Marshal(m)
		require.NoError(t, err)
		require.True(t, json.Valid(text))
		require.NoError(t, jsoncodec.Check(m))
		again := m.ProtoReflect().New().Interface()
		require.NoError(t, jsoncodec.Unmarshal(text, again), "%s", text)
		require.Empty(t, diff(m, again))
		yaml := m.ProtoReflect().New().Interface()
		require.NoError(t, jsoncodec.UnmarshalYAML(text, yaml))
		require.Empty(t, diff(m, yaml))
		second, err := jsoncodec.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(text), string(second))
	})
}

// Without Json in them, messages are written as protojson writes them, and what protojson writes is read.
func TestLikeProtojson(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := draw(t)
		if _, is := m.(*dagbridgev1.Json); is {
			t.Skip("protojson does not know it")
		}
		dropJSON(m.ProtoReflect())
		theirs, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
		require.NoError(t, err)
		ours, err := jsoncodec.Marshal(m)
		require.NoError(t, err)
		require.Equal(t, canonical(t, theirs), canonical(t, ours))
		again := m.ProtoReflect().New().Interface()
		require.NoError(t, jsoncodec.Unmarshal(theirs, again))
		require.Empty(t, diff(m, again))
	})
}

func dropJSON(m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		value := fd
		if fd.IsMap() {
			value = fd.MapValue()
		}
		switch {
		case value.Kind() != protoreflect.MessageKind:
		case value.Message().Name() == "Json":
			m.Clear(fd)
		case fd.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				dropJSON(v.Message())
				return true
			})
		case fd.IsList():
			for i := range v.List().Len() {
				dropJSON(v.List().Get(i).Message())
			}
		default:
			dropJSON(v.Message())
		}
		return true
	})
}

// Whatever comes in: no panic, and what is taken can be written and read again. Where protojson, which knows no Json, takes a
// document, so do we, and mean the same.
func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{
		`{"task":{"key":{"task":"a"},"script":{"text":"x"},"retryWindow":"1.5s","atMostOnce":null},"waitFor":"TERMINAL"}`,
		`{"task":{"kubernetes":{"template":{"a":[1, 2]}}}}`, `{"task":{"tryNumber":1e0,"skipExitCodes":["1",2.0]}}`, `{`, `[]`, "\"\\ud83d\\ude00\"", `{"task":{"env":{"\ud800":"x"}}}`,
		`{"task":{"resources":{"gpus":[{"count":1}]}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var m, theirs dagbridgev1.SubmitTaskRequest
		err := jsoncodec.Unmarshal(in, &m)
		if err == nil {
			text, err := jsoncodec.Marshal(&m)
			require.NoError(t, err)
			var again dagbridgev1.SubmitTaskRequest
			require.NoError(t, jsoncodec.Unmarshal(text, &again))
			require.Empty(t, diff(&m, &again))
		}
		if protojson.Unmarshal(in, &theirs) == nil && theirs.GetTask().GetKubernetes() == nil && json.Valid(in) && utf8.Valid(in) {
			require.NoError(t, err)
			require.Empty(t, diff(&theirs, &m))
		}
	})
}

func must(mt protoreflect.MessageType, err error) protoreflect.MessageType {
	if err != nil {
		panic(err)
	}
	return mt
}

func newMessage(md protoreflect.MessageDescriptor) proto.Message {
	return must(protoregistry.GlobalTypes.FindMessageByName(md.FullName())).New().Interface()
}
