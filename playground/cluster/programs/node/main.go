// Command node holds the programs of a Kubernetes node and its control plane, etcd included, in one binary: the name that
// it is called by decides which program it is. One link and one file of an image instead of eight. Its dependencies have
// the versions of those of images/tools/programs, so that Go compiles what both hold once.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	_ "time/tzdata" // time zones of CronJobs, as upstream's own binaries have them

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // clients' own metrics, on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
	"kube-proxy":              func() { run(proxy.NewProxyCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
	"kubeadm":                 prepareNode,
	"kubectl":                 func() { run(kubectl.NewDefaultKubectlCommand()) },
	"kubelet":                 func() { run(kubelet.NewKubeletCommand(context.Background())) },
}

func main() {
	name := filepath.Base(os.Args[0])
	program, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s is not one of the programs in here: call me as %s\n", name, strings.Join(names(), ", "))
		os.Exit(2)
	}
	program()
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func prepareNode() {
	if err := kubeadm.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func names() []string {
	var all []string
	for name := range programs {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}
