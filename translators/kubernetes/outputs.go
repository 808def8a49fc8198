package kubernetes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/dagbridge/dagbridge/translators"
)

// What the kubelet keeps of termination messages: of one so many bytes, and of all of a pod's together.
const (
	maxMessageBytes     = 4096
	maxPodMessagesBytes = 12 << 10
)

// Outputs reads what a pod's program left as its outputs, a JSON object; nil when it left nothing, or has not succeeded. Of a
// message that is too long the kubelet keeps a part and does not say so: one that is as long as it may be is refused.
// Its errors are sentences.
func Outputs(pod *corev1.Pod) ([]byte, error) {
	c := mainStatus(pod)
	if c == nil || c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
		return nil, nil
	}
	containers := len(pod.Spec.InitContainers) + len(pod.Spec.Containers) + len(pod.Spec.EphemeralContainers)
	limit := min(maxMessageBytes, maxPodMessagesBytes/max(containers, 1))
	message := c.State.Terminated.Message
	if len(message) >= limit {
		return nil, fmt.Errorf("the outputs are %d bytes or more, of which Kubernetes keeps less than that: "+
			"push them to DAGBRIDGE_URL where the job has one, or write large results to a file, and its path to the outputs", limit)
	}
	return translators.Outputs([]byte(message), limit)
}
