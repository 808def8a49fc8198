package server

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/grpc-ecosystem/grpc-gateway/v2/utilities"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/translators"
)

// body is a request's body with a limit, and with what was wrong with it.
type body struct {
	io.ReadCloser
	// length as the client declares it; -1 when it does not.
	length int64
	// asksFirst: the client sends nothing before it is told to go on (Expect: 100-continue).
	asksFirst bool
	fault     error
}

// tooLarge: in gRPC's own words, so that both doors say the same.
type tooLarge struct{ size int64 }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("grpc: received message larger than max (%d vs. %d)", e.size, MaxMessage)
}

// refuse takes in what a client that has begun to send still sends, within reason: one whose connection is closed under its
// hands does not read why.
func (b *body) refuse(size int64) error {
	if !b.asksFirst {
		_, _ = io.CopyN(io.Discard, b, MaxMessage) // Whatever comes of it, it is refused.
	}
	return &tooLarge{size}
}

// decode reads a message from the whole body. An empty body is io.EOF: the message with nothing set.
func (b *body) decode(m proto.Message) error {
	b.fault = func() error {
		if b.length > MaxMessage {
			return b.refuse(b.length)
		}
		text, err := io.ReadAll(io.LimitReader(b, MaxMessage+1))
		switch {
		case err != nil:
			return translators.Faults{{Description: "the body could not be read: " + err.Error()}}
		case len(text) > MaxMessage:
			return b.refuse(int64(len(text)))
		case len(text) == 0:
			return io.EOF
		}
		return jsoncodec.Unmarshal(text, m)
	}()
	err := b.fault
	if errors.Is(err, io.EOF) {
		b.fault = nil
	}
	return err
}

// marshaler is the JSON form of the protocol, for the gateway's mux.
type marshaler struct{}

func (marshaler) ContentType(any) string { return "application/json" }

func (marshaler) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	return jsoncodec.Marshal(m)
}

func (marshaler) Unmarshal(text []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", v)
	}
	return jsoncodec.Unmarshal(text, m)
}

func (c marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		if b, ok := r.(*body); ok {
			return b.decode(v.(proto.Message))
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return c.Unmarshal(text, v)
	})
}

func (c marshaler) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		text, err := c.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
}

// queryParser sets a request's fields from a query. Other than the gateway's own it refuses what it does not know.
type queryParser struct{}

func (queryParser) Parse(m proto.Message, values url.Values, inPath *utilities.DoubleArray) error {
	return parseQuery(m, values, func(field string) bool { return inPath.HasCommonPrefix([]string{field}) })
}

// parseQuery is Parse; inPath says which fields the path has set.
func parseQuery(m proto.Message, values url.Values, inPath func(field string) bool) error {
	var faults translators.Faults
	fields := m.ProtoReflect().Descriptor().Fields()
	var known []string
	for i := range fields.Len() {
		if fd := fields.Get(i); !inPath(string(fd.Name())) {
			known = append(known, fd.JSONName())
		}
	}
	for name, texts := range values {
		fd := fields.ByJSONName(name)
		if fd == nil {
			fd = fields.ByTextName(name)
		}
		switch {
		case fd == nil || !slices.Contains(known, fd.JSONName()):
			faults.Add(name, "unknown parameter; there are %s", strings.Join(known, ", "))
			continue
		case len(texts) > 1 && !fd.IsList():
			faults.Add(name, "is there twice")
			continue
		}
		for _, text := range texts {
			if err := runtime.PopulateFieldFromPath(m, string(fd.Name()), text); err != nil {
				faults.Add(name, "%q is not %s", text, describeKind(fd))
			}
		}
	}
	slices.SortFunc(faults, func(a, b translators.Fault) int { return strings.Compare(a.Field, b.Field) })
	return faults.OrNil()
}

// describeKind says what a parameter takes.
func describeKind(fd protoreflect.FieldDescriptor) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return "true or false"
	case protoreflect.EnumKind:
		var words []string
		for i := 1; i < fd.Enum().Values().Len(); i++ {
			words = append(words, string(fd.Enum().Values().Get(i).Name()))
		}
		return "one of " + strings.Join(words, ", ")
	}
	return "a number of " + strings.TrimPrefix(fd.Kind().String(), "int") + " bits"
}
