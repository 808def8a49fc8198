package kubernetes

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// mainContainer is the name of the program's container, where a template has several and this is one of them.
const mainContainer = "main"

// podTemplate lays the task over a pod template, JSON that has been read before.
func (t *translation) podTemplate(field string, below []byte) corev1.PodTemplateSpec {
	var base corev1.PodTemplateSpec
	_ = json.Unmarshal(below, &base) // it has been read strictly
	main := t.main
	main.Name = t.mainName(field, base.Spec.Containers)
	pod := t.pod
	items := make([]corev1.DownwardAPIVolumeFile, 0, len(t.files))
	annotations := maps.Clone(t.annotations)
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		annotations[prefix+name] = t.files[name]
		items = append(items, corev1.DownwardAPIVolumeFile{
			Path: name, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + prefix + name + "']"},
		})
	}
	annotations[containerAnnotation] = main.Name
	pod.Volumes = append(slices.Clone(pod.Volumes), corev1.Volume{Name: volumeName, VolumeSource: t.folderSource(items)})
	main.VolumeMounts = append(slices.Clone(main.VolumeMounts), corev1.VolumeMount{Name: volumeName, MountPath: folder, ReadOnly: true})
	// The rest of the message may be outputs, and is read from there alone.
	main.TerminationMessagePath, main.TerminationMessagePolicy = outputPath, corev1.TerminationMessageReadFile
	env := main.Env
	main.Env = nil
	pod.Containers = []corev1.Container{main}

	over := corev1.PodTemplateSpec{Spec: pod}
	over.Labels, over.Annotations = t.labels, annotations
	merged := t.lay(field, below, text(over))
	var result corev1.PodTemplateSpec
	if err := json.Unmarshal(merged, &result); err != nil {
		t.fault(field, "cannot be merged with the task: %v", err)
	}
	for i := range result.Spec.Containers {
		if c := &result.Spec.Containers[i]; c.Name == main.Name {
			replaceProgram(c, main, env)
		}
	}
	t.finish(&result, main.Name)
	return result
}

// folderSource is what the pod's folder is made of: its files and, where programs may call the gateway, their token. The kubelet
// renews it, and it is none any more once the pod is gone.
func (t *translation) folderSource(items []corev1.DownwardAPIVolumeFile) corev1.VolumeSource {
	if t.site.URL == "" {
		return corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: items}}
	}
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: items}},
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: Audience, Path: tokenFile}},
	}}}
}

// replaceProgram sets what a patch cannot: it would leave the template's arguments behind the task's command, and its value of
// a variable that the task has empty. Variables keep their places, since later ones may refer to them.
func replaceProgram(c *corev1.Container, main corev1.Container, env []corev1.EnvVar) {
	if main.Command != nil {
		c.Args = main.Args
	}
	for _, v := range env {
		at := slices.IndexFunc(c.Env, func(below corev1.EnvVar) bool { return below.Name == v.Name })
		if at < 0 {
			c.Env = append(c.Env, v)
		} else {
			c.Env[at] = v
		}
	}
}

// mainName is the name of the program's container in a template.
func (t *translation) mainName(field string, containers []corev1.Container) string {
	switch {
	case slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Name == mainContainer }), len(containers) == 0:
		return mainContainer
	case len(containers) > 1:
		t.fault(field, "it has %d containers and none of them is called %s: give the program's container that name", len(containers), mainContainer)
	}
	return containers[0].Name
}

// lay merges a patch over JSON, as kubectl patch does it.
func (t *translation) lay(field string, below, over []byte) []byte {
	merged, err := strategicpatch.StrategicMergePatch(below, over, corev1.PodTemplateSpec{})
	if err != nil {
		t.fault(field, "cannot be merged: %v", err)
		return below
	}
	return merged
}

// finish sets what depends on the whole.
func (t *translation) finish(pod *corev1.PodTemplateSpec, main string) {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if c.Name == main {
			c.Image = cmp.Or(c.Image, t.site.Image)
		}
		if c.Name == main && c.Image == "" {
			c.Image = anyImage
			t.workload.Lacking.Add("container.image", "the task names no image, and the cluster's configuration has none for such tasks")
		}
		t.checkLimits(c)
	}
	t.ownFolder(pod, main)
	if pod.Spec.EnableServiceLinks == nil {
		// The variables of all of a namespace's services are no part of a program's environment.
		pod.Spec.EnableServiceLinks = new(false)
	}
	t.exclude(&pod.Spec)
	t.joinGang(pod)
	size := 0
	for name, value := range pod.Annotations {
		size += len(name) + len(value)
	}
	if size > maxAnnotationBytes {
		t.tooLarge(size)
	}
}

// ownFolder gives a command or a script that says nothing of it a folder to run in that is the job's own, as it has one
// everywhere. An image's own program runs where its image says.
func (t *translation) ownFolder(pod *corev1.PodTemplateSpec, main string) {
	if t.task.GetCommand() == nil && t.task.GetScript() == nil {
		return
	}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == main && c.WorkingDir == "" {
			c.WorkingDir = workFolder
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: workVolume, MountPath: workFolder})
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: workVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
	}
}

// tooLarge blames the file that takes the most.
func (t *translation) tooLarge(size int) {
	field, most := "", 0
	for name, where := range map[string]string{scriptFile: "script.text", prologueFile: "prologue", arrayFile: "array.items", inputsFile: "upstream"} {
		if len(t.files[name]) > most || len(t.files[name]) == most && where < field {
			field, most = where, len(t.files[name])
		}
	}
	t.fault(field, "%d of %d bytes of text that the pod's annotations would have; Kubernetes takes %d. Put data into files, or into the image, and hand over their names.",
		most, size, maxAnnotationBytes)
}

// exclude keeps the pods off nodes that failed earlier attempts. The terms of an affinity are alternatives: each has to say it.
func (t *translation) exclude(pod *corev1.PodSpec) {
	if len(t.submission.ExcludeNodes) == 0 {
		return
	}
	var not []corev1.NodeSelectorRequirement
	for _, node := range t.submission.ExcludeNodes {
		not = append(not, corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: corev1.NodeSelectorOpNotIn, Values: []string{node}})
	}
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if pod.Affinity.NodeAffinity == nil {
		pod.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := pod.Affinity.NodeAffinity
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchFields = append(terms[i].MatchFields, not...)
	}
}
