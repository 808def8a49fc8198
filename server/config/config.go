// Package config is the gateway's configuration: one struct, read from one YAML file.
//
// Load reports everything that is wrong with a file at once, each fault with its line. What a file leaves out has the value
// that Default, or the setDefaults of the part concerned, gives it. The reference page README.md beside this file is made
// from the doc comments of the fields below. The package opens no file but the configuration itself: that a certificate can
// be read, or a cluster answers, is found by those who use it.
package config

import "time"

//go:generate go test -run TestReference -update .

// Config is the whole configuration. Relative paths are taken from the working directory of the gateway.
type Config struct {
	// Where the gateway answers. Anything but a loopback address needs listen.tls and auth.
	Listen Listen `yaml:"listen"`
	// Folder of the gateway's own files: the store, and the jobs of local clusters. Made when it is not there.
	Data string `yaml:"data"`
	// Who may use the gateway.
	Auth Auth `yaml:"auth"`
	// Where jobs run. The first one takes the tasks that name none. Without any: one named "local", this machine.
	Clusters []Cluster `yaml:"clusters"`
	// For how long complete answers of a cluster must lack a job, its accounting included, before the job counts as gone: then
	// it is submitted again, if it has never started, or is LOST. More where files or accounting come late.
	LostAfter time.Duration `yaml:"lostAfter"`
	// How long jobs that have ended are remembered.
	Retention Retention `yaml:"retention"`
}

// Listen is where the gateway answers.
type Listen struct {
	// host:port of the gRPC API. Port 0 takes a free one.
	GRPC string `yaml:"grpc"`
	// host:port of the REST API, /openapi.json, /healthz, /readyz and /metrics. Port 0 takes a free one.
	HTTP string `yaml:"http"`
	// Certificate of both.
	TLS TLS `yaml:"tls"`
}

// TLS is a certificate and its key.
type TLS struct {
	// PEM file of the certificate and those that signed it.
	Cert string `yaml:"cert"`
	// PEM file of its key.
	Key string `yaml:"key"`
}

// Auth is who may use the gateway.
type Auth struct {
	// Bearer tokens. With none, and no serviceAccounts, everybody who reaches the gateway may use it, as the gateway's own user.
	Tokens []Token `yaml:"tokens"`
	// Pods of a Kubernetes cluster, by the tokens that are projected into them for this gateway.
	ServiceAccounts *ServiceAccounts `yaml:"serviceAccounts"`
}

// Token is one bearer token. The token itself is nowhere but with its user.
type Token struct {
	// Owner of the jobs that come with this token.
	Name string `yaml:"name"`
	// SHA-256 of the token, 64 hexadecimal digits: printf %s "$TOKEN" | sha256sum.
	SHA256 string `yaml:"sha256"`
	// Unix user that the token stands for, on clusters with slurm.impersonate. Left out: the token's name.
	User string `yaml:"user"`
	// Other Unix users that its jobs may run as, when task.slurm.user names them; "*" is everybody but root.
	ActAs []string `yaml:"actAs"`
}

// ServiceAccounts are those of one Kubernetes cluster. Its API server says whose a token is (TokenReview), so the gateway's own
// account there needs the right to create tokenreviews (server/deploy/serviceaccounts.yaml).
type ServiceAccounts struct {
	// Path of a kubeconfig. Left out: in-cluster.
	Kubeconfig string `yaml:"kubeconfig"`
	// Context in it. Left out: the current one.
	Context string `yaml:"context"`
	// Audience that a token must be for (serviceAccountToken.audience of a projected volume). One for the API server itself is
	// not taken: who has it could act as the pod.
	Audience string `yaml:"audience"`
	// Accounts that may use the gateway. Every pod can have a token for any audience, so there is nobody else in the cluster
	// who may.
	Allow []ServiceAccount `yaml:"allow"`
}

// ServiceAccount is one account, or all of a namespace. Jobs that come with its token belong to system:serviceaccount:NAMESPACE:NAME.
type ServiceAccount struct {
	// Its namespace.
	Namespace string `yaml:"namespace"`
	// Its name. Left out: every account of the namespace that is not named beside.
	Name string `yaml:"name"`
	// Unix user that it stands for, on clusters with slurm.impersonate. Left out: none, and its jobs are refused there.
	User string `yaml:"user"`
	// Other Unix users that its jobs may run as, when task.slurm.user names them; "*" is everybody but root.
	ActAs []string `yaml:"actAs"`
}

func (s *ServiceAccounts) setDefaults() { s.Audience = "dagbridge" }

// Cluster is one place to run jobs: a name and exactly one of local, slurm and kubernetes.
type Cluster struct {
	// What tasks call it.
	Name string `yaml:"name"`
	// Processes on the gateway's machine.
	Local *Local `yaml:"local"`
	// A Slurm cluster.
	Slurm *Slurm `yaml:"slurm"`
	// A Kubernetes cluster.
	Kubernetes *Kubernetes `yaml:"kubernetes"`
}

// Local is the gateway's machine as a cluster. Jobs wait until their CPUs and memory fit.
type Local struct {
	// CPUs that jobs share. 0: all of the machine's.
	CPUs int `yaml:"cpus"`
	// Memory that jobs share, as in Kubernetes ("8Gi"). Left out: all of the machine's.
	Memory Memory `yaml:"memory"`
	// What stands in for container images, of which this machine runs none. Left out: tasks with an image are refused.
	Images []Image `yaml:"images"`
	// Shell lines before every job's program.
	Prologue string `yaml:"prologue"`
}

// Image is what stands in for a container image.
type Image struct {
	// Name of the image, as tasks write it ("python:3.11-slim").
	Name string `yaml:"name"`
	// Absolute path of a folder with what tasks need of the image: a virtual environment of Python's, a conda environment, or any
	// folder with a bin, which goes before PATH.
	Folder string `yaml:"folder"`
}

// Slurm is a Slurm cluster. With rest beside cli or ssh, REST submits, changes and cancels, and the commands look.
type Slurm struct {
	// Through slurmrestd.
	REST *SlurmREST `yaml:"rest"`
	// Through sbatch, squeue, sacct, scancel, scontrol and sdiag. They are found in PATH; SLURM_CONF is honoured.
	CLI *SlurmCLI `yaml:"cli"`
	// Through the same commands on a login node. Not beside cli.
	SSH *SlurmSSH `yaml:"ssh"`
	// Let jobs, their files and their share of the cluster belong to the users who submit them (auth.tokens[].user) instead of
	// one. Needs a token of root's or SlurmUser's for rest; for cli, a gateway that is root, or sudo without a password; for
	// ssh, sudo without a password there; and always a gateway that is root or has CAP_CHOWN, for the jobs' folders. The user
	// that looks must see everybody's jobs: it is root, SlurmUser or an operator where slurm.conf has PrivateData=jobs.
	Impersonate bool `yaml:"impersonate"`
	// Absolute path of a folder that the gateway and the nodes see under the same name: logs, outputs and markers of jobs.
	WorkDir string `yaml:"workDir"`
	// How often the cluster is looked at while anything moves there. While nothing does, up to four times as long passes; while no
	// job is live there, it is not looked at.
	PollInterval time.Duration `yaml:"pollInterval"`
	// Shell lines before every job's program ("module load python").
	Prologue string `yaml:"prologue"`
	// Run programs from a login shell, so that the site's profile applies.
	LoginShell bool `yaml:"loginShell"`
	// Partition of tasks that name none. Left out: Slurm's default.
	Partition string `yaml:"partition"`
	// Account of tasks that name none. Left out: the user's default.
	Account string `yaml:"account"`
	// QOS of tasks that name none. Left out: the account's default.
	QOS string `yaml:"qos"`
	// Container runtime of tasks that name none: apptainer, charliecloud, oci or pyxis. Left out: such tasks are refused.
	Container string `yaml:"container"`
	// What stands in for container images on the nodes, where none run. Tasks with other images need container.
	Images []Image `yaml:"images"`
	// Absolute path of the folder that the steps of pipelines share; name the same one for all clusters that run parts of one
	// pipeline. Left out: workDir/<user>/pipelines.
	Pipelines string `yaml:"pipelines"`
	// What slurmrestd does not tell about the site, and what the gateway may do to it.
	Limits SlurmLimits `yaml:"limits"`
}

// SlurmREST is how slurmrestd is reached.
type SlurmREST struct {
	// Address of slurmrestd ("http://127.0.0.1:6820").
	URL string `yaml:"url"`
	// User that the jobs belong to.
	User string `yaml:"user"`
	// File with that user's JWT. It is read for every call, so that it may be renewed at any time.
	TokenFile string `yaml:"tokenFile"`
	// Version of its interface ("v0.0.45"), or auto: the newest that it and the gateway speak, which it is asked.
	Version string `yaml:"version"`
}

// SlurmCLI is how Slurm's commands are run.
type SlurmCLI struct {
	// Folder of the commands. Left out: they are found in PATH.
	Path string `yaml:"path"`
}

// SlurmSSH is how Slurm's commands are run on a login node.
type SlurmSSH struct {
	// Name or address of the login node.
	Host string `yaml:"host"`
	// Its port.
	Port int `yaml:"port"`
	// User to log in as, with a POSIX shell (sh, bash, dash, zsh). The jobs belong to it.
	User string `yaml:"user"`
	// Private key without a passphrase, read whenever the gateway logs in. Left out: the agent's keys.
	KeyFile string `yaml:"keyFile"`
	// Certificate of the key, as ssh-keygen -s writes it; read whenever the gateway logs in. Left out: none.
	CertFile string `yaml:"certFile"`
	// Socket of an ssh-agent. Left out: SSH_AUTH_SOCK of the gateway's environment.
	Agent string `yaml:"agent"`
	// Keys by which hosts are known, or authorities for them (@cert-authority), as in ~/.ssh/known_hosts. A host that is not in
	// it, or that shows another key, is refused.
	KnownHostsFile string `yaml:"knownHostsFile"`
	// Folder of the commands there. Left out: they are in /usr/local/bin, /usr/bin or /bin.
	Path string `yaml:"path"`
}

// SlurmLimits mirror the site's slurm.conf.
type SlurmLimits struct {
	// MaxArraySize: the greatest array index plus one.
	MaxArraySize int `yaml:"maxArraySize"`
	// MinJobAge: for how long slurmctld remembers an ended job.
	MinJobAge time.Duration `yaml:"minJobAge"`
	// Jobs a second that are submitted for one user, at most; an array is one. 0: as many as there are.
	SubmitRate float64 `yaml:"submitRate"`
}

// Kubernetes is a Kubernetes cluster.
type Kubernetes struct {
	// Path of a kubeconfig. Left out: in-cluster.
	Kubeconfig string `yaml:"kubeconfig"`
	// Context in it. Left out: the current one.
	Context string `yaml:"context"`
	// Namespace of tasks that name none. Left out: default.
	Namespace string `yaml:"namespace"`
	// Other namespaces that tasks may name.
	Namespaces []string `yaml:"namespaces"`
	// Image of tasks that name none. Left out: they are refused.
	Image string `yaml:"image"`
	// Shell lines before every program.
	Prologue string `yaml:"prologue"`
	// Kueue's queue of tasks that name none. Left out: they do not queue.
	Queue string `yaml:"queue"`
	// Path of a file with a pod's metadata and spec, in YAML, over which every task is laid.
	PodTemplateFile string `yaml:"podTemplateFile"`
	// Kinds that templates may be of, beside Job and JobSet: plural, version and group, as in pytorchjobs.v1.kubeflow.org.
	Kinds []string `yaml:"kinds"`
	// Image with this program (server/deploy), for steps of Kubeflow pipelines: an init container brings it from there into
	// their pods. Left out: they are refused.
	Launcher string `yaml:"launcher"`
	// Absolute path of the folder that the steps of pipelines share, on every node, or of where pods find pipelinesClaim.
	Pipelines string `yaml:"pipelines"`
	// PersistentVolumeClaim that they share, which all nodes can write to. Left out: the nodes' own folder.
	PipelinesClaim string `yaml:"pipelinesClaim"`
	// How GPUs of each type are asked for. Left out: nvidia.com/gpu, of no type.
	GPUs []KubernetesGPU `yaml:"gpus"`
	// Where jobs reach this gateway's REST, as in https://dagbridge.dagbridge:7071: they then have a token of their own in a file,
	// and may push outputs that are larger than 4 KiB. Left out: they have none.
	URL string `yaml:"url"`
	// Calls a second that are made of the API server at most. A job is one.
	CallRate float64 `yaml:"callRate"`
	// For how long an ended Job, and its log, is left in the cluster.
	Keep time.Duration `yaml:"keep"`
}

// KubernetesGPU is how GPUs of one type are asked for.
type KubernetesGPU struct {
	// The type as tasks name it. Left out: any.
	Type string `yaml:"type"`
	// The resource that counts them, as in nvidia.com/gpu.
	Resource string `yaml:"resource"`
	// Labels of the nodes that have them, as in nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB.
	NodeSelector []string `yaml:"nodeSelector"`
}

// Retention says when jobs that have ended are forgotten. Live ones never are.
type Retention struct {
	// After this long. 0: never.
	Age time.Duration `yaml:"age"`
	// The oldest, when there are more than this many. 0: no limit.
	Jobs int `yaml:"jobs"`
}

// Default is the configuration without a file: this machine, on loopback.
func Default() *Config {
	return &Config{
		Listen:    Listen{GRPC: "127.0.0.1:7070", HTTP: "127.0.0.1:7071"},
		Data:      "./dagbridge-data",
		Clusters:  []Cluster{{Name: "local", Local: &Local{}}},
		LostAfter: time.Minute,
		Retention: Retention{Age: 90 * 24 * time.Hour, Jobs: 1_000_000},
	}
}

func (s *Slurm) setDefaults() {
	s.PollInterval = 5 * time.Second
	s.Limits = SlurmLimits{MaxArraySize: 1001, MinJobAge: 300 * time.Second}
}

func (k *Kubernetes) setDefaults() { k.CallRate, k.Keep = 200, time.Hour }

func (r *SlurmREST) setDefaults() { r.Version = "auto" }

func (s *SlurmSSH) setDefaults() { s.Port = 22 }
