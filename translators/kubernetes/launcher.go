package kubernetes

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/dagbridge/dagbridge/translators"
)

const (
	// launcherFolder is where a step of a pipeline finds this program, whatever its image.
	launcherFolder  = "/dagbridge-bin"
	launcherProgram = launcherFolder + "/dagbridge"
	launcherVolume  = "dagbridge-bin"
	pipelinesVolume = "dagbridge-pipelines"
)

// launcher brings this program into the pod of a pipeline's step, and the folder that the steps share.
func (t *translation) launcher() {
	if !translators.Launches(t.task) {
		return
	}
	if t.site.Launcher == "" || t.site.Pipelines == "" {
		t.workload.Lacking.Add("container", "steps of pipelines need to find this program and the folder that they share: "+
			"name both in the cluster's configuration (kubernetes.launcher, kubernetes.pipelines)")
		return
	}
	if t.main.Image == "" { // it only judges a condition, lists or imports
		t.main.Image = t.site.Launcher
	}
	shared := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: t.site.Pipelines, Type: new(corev1.HostPathDirectoryOrCreate)}}
	if t.site.PipelinesClaim != "" {
		shared = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: t.site.PipelinesClaim}}
	}
	t.pod.Volumes = append(t.pod.Volumes,
		corev1.Volume{Name: launcherVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: pipelinesVolume, VolumeSource: shared})
	bin := corev1.VolumeMount{Name: launcherVolume, MountPath: launcherFolder}
	t.pod.InitContainers = append(t.pod.InitContainers, corev1.Container{
		Name: launcherVolume, Image: t.site.Launcher, Command: []string{"dagbridge", "kfp-step", "--install", launcherProgram}, VolumeMounts: []corev1.VolumeMount{bin},
	})
	t.main.VolumeMounts = append(t.main.VolumeMounts, bin, corev1.VolumeMount{Name: pipelinesVolume, MountPath: t.site.Pipelines})
	for _, v := range [][2]string{
		{translators.LauncherVariable, launcherProgram}, {translators.PipelinesVariable, t.site.Pipelines}, {translators.OutputLimitVariable, strconv.Itoa(maxMessageBytes - 1)},
	} {
		t.main.Env = append(t.main.Env, corev1.EnvVar{Name: v[0], Value: v[1]})
	}
}
