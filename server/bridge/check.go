package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/proto/jsoncodec"
	"github.com/dagbridge/dagbridge/server/auth"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/translators"
)

// sentences say in words what the patterns of the protocol mean.
var sentences = map[string]string{
	`^\P{Cc}*$`:            "must not have control characters",
	`^[^\x00]*$`:           "must not have NUL characters",
	`^[^=\x00-\x1f\x7f]+$`: "must be a name without '=' and control characters",
	`^[^=\p{Cc}]+$`:        "must be a name without '=' and control characters",
	`^[A-Za-z0-9._-]*$`:    "must be of letters, digits, '.', '_' and '-'",
	`^[A-Za-z0-9._-]*\$?$`: "must be of letters, digits, '.', '_' and '-', with a '$' at most at its end",
	`^[^\p{Cc}\s]*$`:       "must not have spaces or control characters",
	`^[a-z0-9-]+$`:         "must be a long option of sbatch's without the dashes: small letters, digits and '-'",
	`^(/\P{Cc}*)?$`:        "must be an absolute path without control characters",
	`^[^=]+=.*$`:           `must be of the form "name=value"`,
}

func newValidator() (protovalidate.Validator, error) {
	v, err := protovalidate.New(protovalidate.WithMessages(
		&dagbridgev1.SubmitTaskRequest{}, &dagbridgev1.Workflow{}, &dagbridgev1.GetJobRequest{}, &dagbridgev1.ListJobsRequest{}, &dagbridgev1.LookupJobRequest{},
	))
	if err != nil {
		return nil, fmt.Errorf("compiling the rules of the protocol: %w", err)
	}
	return v, nil
}

// Check finds all faults of a request that can be seen without the store: the rules that the protocol states on its fields,
// text that should be JSON, and, of a submission that has such faults, also what the engine would find. Errors are
// translators.Faults.
func (b *Bridge) Check(ctx context.Context, req proto.Message) error {
	return check(b.validator, req, func(w *dagbridgev1.Workflow) translators.Faults { return b.engine.Faults(auth.Owner(ctx), w) })
}

func check(validator protovalidate.Validator, req proto.Message, engineFaults func(*dagbridgev1.Workflow) translators.Faults) error {
	var faults translators.Faults
	var options []protovalidate.ValidationOption
	switch n := elements(req.ProtoReflect()); {
	case n > jsoncodec.MaxElements:
		faults.Add("", "%s", jsoncodec.TooManyElements)
		return faults
	case n > manyElements:
		options = append(options, protovalidate.WithFailFast())
	}
	if err := validator.Validate(req, options...); err != nil {
		var invalid *protovalidate.ValidationError
		if !errors.As(err, &invalid) {
			return err
		}
		// In the order of the fields; of a map, of its keys.
		slices.SortStableFunc(invalid.Violations, func(a, b *protovalidate.Violation) int { return comparePaths(a.Proto.GetField(), b.Proto.GetField()) })
		for _, v := range invalid.Violations {
			field := fieldPath(req.ProtoReflect().Descriptor(), v.Proto.GetField())
			if v.Proto.GetForKey() {
				field += " (the key)"
			}
			faults.Add(field, "%s", sentence(v))
		}
	}
	var document *jsoncodec.Error
	if errors.As(jsoncodec.Check(req), &document) {
		for _, v := range document.Violations {
			faults.Add(v.GetField(), "%s", v.GetDescription())
		}
	}
	if len(faults) > 0 && len(options) == 0 {
		faults = append(faults, newFaults(faults, submissionFaults(req, engineFaults))...)
	}
	return faults.OrNil()
}

// submissionFaults are what the engine would find in a submission; there are none in other requests.
func submissionFaults(req proto.Message, engineFaults func(*dagbridgev1.Workflow) translators.Faults) translators.Faults {
	switch req := req.(type) {
	case *dagbridgev1.Workflow:
		if req.GetAirflowDag() == nil && req.GetKfpPipeline() == "" { // else its tasks are not known yet
			return engineFaults(req)
		}
	case *dagbridgev1.SubmitTaskRequest:
		if req.GetTask() != nil {
			return engine.OneTaskFaults(engineFaults(engine.OneTask(req)))
		}
	}
	return nil
}

// newFaults are those of some faults whose fields have none yet.
func newFaults(known, found translators.Faults) (fresh translators.Faults) {
	seen := make(map[string]bool)
	for _, fault := range known {
		seen[fault.Field] = true
	}
	for _, fault := range found {
		if !seen[fault.Field] {
			fresh = append(fresh, fault)
		}
	}
	return fresh
}

func sentence(v *protovalidate.Violation) string {
	kind, rule, _ := strings.Cut(v.Proto.GetRuleId(), ".")
	atLeastOne := rule != "" && v.RuleValue.String() == "1"
	switch {
	case rule == "pattern":
		if words, ok := sentences[v.RuleValue.String()]; ok {
			return words
		}
	case kind == "required", rule == "min_bytes" && atLeastOne:
		return "is missing"
	case (rule == "min_items" || rule == "min_pairs") && atLeastOne:
		return "is empty"
	case rule == "in":
		var words []string
		for list, i := v.RuleValue.List(), 0; i < list.Len(); i++ {
			if word := list.Get(i).String(); word != "" {
				words = append(words, word)
			}
		}
		return fmt.Sprintf("%q is none of %s", v.FieldValue.String(), strings.Join(words, ", "))
	}
	return v.Proto.GetMessage()
}

func comparePaths(a, b *validatepb.FieldPath) int {
	return slices.CompareFunc(a.GetElements(), b.GetElements(), func(a, b *validatepb.FieldPathElement) int {
		return cmp.Or(cmp.Compare(a.GetFieldNumber(), b.GetFieldNumber()), cmp.Compare(a.GetIndex(), b.GetIndex()), cmp.Compare(a.GetStringKey(), b.GetStringKey()))
	})
}

// fieldPath writes a violation's path in the names of the JSON form.
func fieldPath(md protoreflect.MessageDescriptor, path *validatepb.FieldPath) string {
	var out []byte
	for _, element := range path.GetElements() {
		name := element.GetFieldName()
		var fd protoreflect.FieldDescriptor
		if md != nil {
			fd = md.Fields().ByName(protoreflect.Name(name))
		}
		if fd != nil {
			name = fd.JSONName()
			md = fd.Message()
			if fd.IsMap() {
				md = fd.MapValue().Message()
			}
		}
		out = jsoncodec.AppendName(out, name)
		switch s := element.GetSubscript().(type) {
		case *validatepb.FieldPathElement_Index:
			out = append(out, '[')
			out = strconv.AppendUint(out, s.Index, 10)
			out = append(out, ']')
		case *validatepb.FieldPathElement_StringKey:
			out = jsoncodec.AppendName(out, s.StringKey)
		}
	}
	return string(out)
}
