package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	jobs      = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	jobSets   = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
	workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "workloads"}
)

// object is where an object is: what a native id says.
type object struct {
	namespace, name string
	resource        schema.GroupVersionResource
}

// String is the native id: "ml/train-6f3a" of a Job, "ml/jobsets.v1alpha2.jobset.x-k8s.io/train-6f3a" of anything else.
func (o object) String() string {
	if o.resource == jobs {
		return o.namespace + "/" + o.name
	}
	return o.namespace + "/" + formatResource(o.resource) + "/" + o.name
}

// parseID reads a native id.
func parseID(id string) (object, error) {
	parts := strings.Split(id, "/")
	switch len(parts) {
	case 2:
		return object{parts[0], parts[1], jobs}, nil
	case 3:
		resource, err := parseResource(parts[1])
		return object{parts[0], parts[2], resource}, err
	}
	return object{}, fmt.Errorf("%q is no native id of a Kubernetes cluster's", id)
}

// parseResource reads a resource as kubectl takes it, with its version: "pytorchjobs.v1.kubeflow.org".
func parseResource(s string) (schema.GroupVersionResource, error) {
	resource, _ := schema.ParseResourceArg(s)
	if resource == nil || resource.Resource == "" || resource.Version == "" || resource.Group == "" {
		return schema.GroupVersionResource{}, fmt.Errorf("%q is no kind of objects: write its plural name, its version and its group (pytorchjobs.v1.kubeflow.org)", s)
	}
	return *resource, nil
}

func formatResource(r schema.GroupVersionResource) string {
	return r.Resource + "." + r.Version + "." + r.Group
}

// resourceOf is the resource of a manifest, by the rule by which the API names them.
func resourceOf(manifest map[string]any) schema.GroupVersionResource {
	apiVersion, _ := manifest["apiVersion"].(string)
	kind, _ := manifest["kind"].(string)
	resource, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	return resource
}

// kinds are the resources that workloads can be of.
func (b *Backend) kinds() []schema.GroupVersionResource {
	all := []schema.GroupVersionResource{jobs, jobSets}
	for _, kind := range b.options.Kinds {
		resource, _ := parseResource(kind) // New has read it
		all = append(all, resource)
	}
	return all
}

// isLacking says whether a list failed since the cluster does not have that kind of object; every one has Jobs.
func isLacking(kind schema.GroupVersionResource, err error) bool {
	return kind != jobs && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err))
}

func (b *Backend) knows(r schema.GroupVersionResource) bool { return slices.Contains(b.kinds(), r) }

func (b *Backend) serves(namespace string) bool {
	return slices.Contains(b.options.Namespaces, namespace)
}
