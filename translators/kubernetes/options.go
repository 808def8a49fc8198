package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	sigsjson "sigs.k8s.io/json"
)

// podOptions sets what kubernetes.* says of a pod.
func (t *translation) podOptions() {
	o, pod, c := t.options, &t.pod, &t.main
	pod.ServiceAccountName = o.GetServiceAccount()
	pod.PriorityClassName = o.GetPriorityClass()
	pod.NodeSelector = maps.Clone(o.GetNodeSelector())
	for _, name := range o.GetImagePullSecrets() {
		pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	c.ImagePullPolicy = corev1.PullPolicy(o.GetImagePullPolicy())
	t.decode("kubernetes.tolerations", o.GetTolerations(), &pod.Tolerations)
	t.decode("kubernetes.volumes", o.GetVolumes(), &pod.Volumes)
	t.decode("kubernetes.affinity", o.GetAffinity(), &pod.Affinity)
	t.decode("kubernetes.topologySpreadConstraints", o.GetTopologySpreadConstraints(), &pod.TopologySpreadConstraints)
	t.decode("kubernetes.podSecurityContext", o.GetPodSecurityContext(), &pod.SecurityContext)
	t.decode("kubernetes.hostAliases", o.GetHostAliases(), &pod.HostAliases)
	t.decode("kubernetes.initContainers", o.GetInitContainers(), &pod.InitContainers)
	t.decode("kubernetes.resourceClaims", o.GetResourceClaims(), &pod.ResourceClaims)
	t.decode("kubernetes.volumeMounts", o.GetVolumeMounts(), &c.VolumeMounts)
	t.decode("kubernetes.securityContext", o.GetSecurityContext(), &c.SecurityContext)
	t.decode("kubernetes.envFrom", o.GetEnvFrom(), &c.EnvFrom)
	for _, claim := range pod.ResourceClaims {
		c.Resources.Claims = append(c.Resources.Claims, corev1.ResourceClaim{Name: claim.Name})
	}
	t.sidecars()
	for i, volume := range pod.Volumes {
		if volume.Name == volumeName || volume.Name == workVolume {
			t.fault(fmt.Sprintf("kubernetes.volumes[%d].name", i), "%s is the gateway's own: choose another name", volume.Name)
		}
	}
	for i, mount := range c.VolumeMounts {
		if mount.MountPath == folder || mount.MountPath == workFolder {
			t.fault(fmt.Sprintf("kubernetes.volumeMounts[%d].mountPath", i), "%s is the gateway's own: choose another path", mount.MountPath)
		}
	}
}

// sidecars are, as Kubernetes has them, init containers that go on: they start before the program, and do not keep the pod
// from ending with it.
func (t *translation) sidecars() {
	var sidecars []corev1.Container
	t.decode("kubernetes.sidecars", t.options.GetSidecars(), &sidecars)
	always := corev1.ContainerRestartPolicyAlways
	for _, c := range sidecars {
		c.RestartPolicy = &always
		t.pod.InitContainers = append(t.pod.InitContainers, c)
	}
	var names []string
	for _, c := range t.pod.InitContainers {
		if slices.Contains(names, c.Name) {
			t.fault("kubernetes.initContainers", "the container %q is there twice, sidecars included", c.Name)
		}
		names = append(names, c.Name)
	}
}

// volumeName is of the volume that has the pod's files, workVolume of the folder that the program runs in.
const (
	volumeName = "dagbridge"
	workVolume = "dagbridge-work"
)

// decodeText reads JSON as the API's own structure: what has no place in it is a fault, as it would be at the API server.
func (t *translation) decodeText(field, value string, into any) {
	strict, err := sigsjson.UnmarshalStrict([]byte(value), into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong) && wrong.Field != "":
		t.fault(field, "%s is %s, and Kubernetes wants %s there", wrong.Field, valueOf(wrong.Value), kindOf(wrong.Type.Kind()))
	case errors.As(err, &wrong):
		t.fault(field, "is %s, and Kubernetes wants %s there", valueOf(wrong.Value), kindOf(wrong.Type.Kind()))
	case err != nil:
		t.fault(field, "is not what Kubernetes wants there: %v", err)
	}
	for _, fault := range strict {
		t.fault(field, "%v", fault)
	}
}

// kindOf is what a Go type is in JSON.
func kindOf(kind reflect.Kind) string {
	switch kind {
	case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Interface:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	default:
		return "a number"
	}
}

// valueOf is a JSON decoder's word for a value, for a sentence.
func valueOf(word string) string {
	word, _, _ = strings.Cut(word, " ") // what follows is the value itself
	switch word {
	case "object":
		return "an object"
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	}
	return "a " + word
}
