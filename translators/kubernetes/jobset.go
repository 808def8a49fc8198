package kubernetes

import (
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A JobSet runs Jobs together: their pods have names that the others can look up, and the failure of one is the failure of
// all. These are the few of its fields that are needed here. The module that has them all is made for another release of
// Kubernetes' libraries and of a controller framework, which everything here would then have to follow.

// jobSet is jobset.x-k8s.io/v1alpha2's JobSet.
type jobSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              jobSetSpec `json:"spec"`
}

type jobSetSpec struct {
	ReplicatedJobs []replicatedJob `json:"replicatedJobs"`
	Suspend        bool            `json:"suspend,omitempty"`
}

type replicatedJob struct {
	Name     string                  `json:"name"`
	Replicas int32                   `json:"replicas"`
	Template batchv1.JobTemplateSpec `json:"template"`
}

// role is what a JobSet calls its pods here.
const role = "node"

// leader is the host name of a JobSet's first pod, as all of its pods find it.
func leader(name string) string { return name + "-" + role + "-0-0." + name }

// jobSet runs a Job's pods as a JobSet.
func (t *translation) jobSet(job batchv1.JobSpec) *jobSet {
	set := &jobSet{ObjectMeta: t.meta(), Spec: jobSetSpec{Suspend: t.suspended()}}
	set.APIVersion, set.Kind = "jobset.x-k8s.io/v1alpha2", "JobSet"
	template := batchv1.JobTemplateSpec{Spec: job}
	template.Labels = t.labels
	set.Spec.ReplicatedJobs = []replicatedJob{{Name: role, Replicas: 1, Template: template}}
	return set
}
