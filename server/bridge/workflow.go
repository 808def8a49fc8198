package bridge

import (
	"cmp"
	"context"
	"errors"

	"buf.build/go/protovalidate"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	dagbridgev1 "github.com/dagbridge/dagbridge/proto/gen/dagbridge/v1"
	"github.com/dagbridge/dagbridge/server/auth"
	"github.com/dagbridge/dagbridge/server/engine"
	"github.com/dagbridge/dagbridge/translators"
	"github.com/dagbridge/dagbridge/translators/airflow"
	"github.com/dagbridge/dagbridge/translators/kfp"
)

// SubmitWorkflow submits a DAG.
func (b *Bridge) SubmitWorkflow(ctx context.Context, w *dagbridgev1.Workflow) (*dagbridgev1.SubmitWorkflowResponse, error) {
	native, err := translate(b.validator, w, uuid.NewString(), false)
	if err != nil {
		return nil, err
	}
	resp, err := b.engine.SubmitWorkflow(ctx, auth.Owner(ctx), native.Workflow)
	if err != nil {
		return nil, inTermsOf(native, err)
	}
	resp.Warnings = append(native.Warnings(), resp.GetWarnings()...)
	return resp, nil
}

// PlanWorkflow says what SubmitWorkflow would do.
func (b *Bridge) PlanWorkflow(ctx context.Context, w *dagbridgev1.Workflow) (*dagbridgev1.PlanWorkflowResponse, error) {
	plan, err := planned(b.validator, w, func(w *dagbridgev1.Workflow) (*dagbridgev1.Plan, error) { return b.engine.Plan(auth.Owner(ctx), w) })
	if err != nil {
		return nil, err
	}
	return &dagbridgev1.PlanWorkflowResponse{Plan: plan}, nil
}

// Plan is PlanWorkflow without a gateway, for these clusters. Errors are translators.Faults.
func Plan(w *dagbridgev1.Workflow, clusters []engine.Cluster) (*dagbridgev1.Plan, error) {
	validator, err := newValidator()
	if err != nil {
		return nil, err
	}
	engineFaults := func(w *dagbridgev1.Workflow) translators.Faults { return engine.Faults(w, clusters) }
	if err := check(validator, w, engineFaults); err != nil {
		return nil, err
	}
	return planned(validator, w, func(w *dagbridgev1.Workflow) (*dagbridgev1.Plan, error) { return engine.Plan(w, clusters) })
}

// planned plans a DAG's native tasks, and tells with each what its translation has to say.
func planned(validator protovalidate.Validator, w *dagbridgev1.Workflow, plan func(*dagbridgev1.Workflow) (*dagbridgev1.Plan, error)) (*dagbridgev1.Plan, error) {
	native, err := translate(validator, w, "plan", true)
	if err != nil {
		return nil, err
	}
	p, err := plan(native.Workflow)
	if err != nil {
		return nil, inTermsOf(native, err)
	}
	p.Notices = append(native.Notices, p.GetNotices()...)
	for _, task := range p.GetTasks() {
		task.Notices = append(native.TaskNotices[task.GetTask()], task.GetNotices()...)
	}
	return p, nil
}

// translate makes native tasks of a DAG in its orchestrator's form, before anything else is done with it; what is native stays as it is. A
// run without a name gets one. The tasks are checked as if they had come in the request. Errors are translators.Faults.
func translate(validator protovalidate.Validator, w *dagbridgev1.Workflow, run string, placeholders bool) (*translators.Translation, error) {
	var translator func(*dagbridgev1.Workflow, bool) (*translators.Translation, translators.Faults)
	forms := 0
	for _, form := range []struct {
		there     bool
		translate func(*dagbridgev1.Workflow, bool) (*translators.Translation, translators.Faults)
	}{
		{len(w.GetTasks()) > 0, nil},
		{w.GetAirflowDag() != nil, airflow.Translate},
		{w.GetKfpPipeline() != "", kfp.Translate},
	} {
		if form.there {
			forms, translator = forms+1, form.translate
		}
	}
	switch {
	case forms > 1:
		return nil, translators.Faults{{Field: "tasks", Description: "a workflow is one of tasks, airflowDag and kfpPipeline, and this one has several"}}
	case translator == nil:
		return &translators.Translation{Workflow: w}, nil
	}
	w = proto.CloneOf(w)
	w.Run = cmp.Or(w.Run, &dagbridgev1.Run{})
	if r := w.Run; r.GetOrchestrator() == "" && r.GetWorkflow() == "" && r.GetRun() == "" {
		r.Run, r.Uid = run, cmp.Or(r.GetUid(), run)
	}
	native, faults := translator(w, placeholders)
	if len(faults) > 0 {
		return nil, faults
	}
	noMore := func(*dagbridgev1.Workflow) translators.Faults { return nil }
	return native, inTermsOf(native, check(validator, native.Workflow, noMore))
}

// inTermsOf names, in faults of a translated DAG, its tasks: where they stand among the native ones its author does not see.
func inTermsOf(native *translators.Translation, err error) error {
	var faults translators.Faults
	if native.Field == "" || !errors.As(err, &faults) {
		return err
	}
	return native.Faults(faults).OrNil()
}
